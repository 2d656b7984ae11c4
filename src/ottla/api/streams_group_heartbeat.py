"""StreamsGroupHeartbeat (key 88, KIP-1071): a member joins a streams group, is alive, leaves.

It brings the application's topology and says which tasks it has, and gets to know which it is to
have. Internal topics that are missing are created for it, if it may create them. At level 0 of
`streams.version` the response is UNSUPPORTED_VERSION, as Apache Kafka's
(KafkaApis.isStreamsGroupProtocolEnabled).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ottla.api.context import Context
from ottla.api.group_assignments import task_ids
from ottla.api.permissions import Need, may, split
from ottla.api.streams_topology import topology_of
from ottla.controller.features import STREAMS_VERSION
from ottla.controller.topics import NewTopic
from ottla.groups.streams.large import MAX_TOPOLOGY_NAMES
from ottla.groups.streams.member import Endpoint
from ottla.groups.streams.offsets import MAX_TASK_OFFSETS, TaskOffsets
from ottla.groups.streams.requests import EndpointPartitions, HeartbeatRequest, HeartbeatResult
from ottla.groups.streams.status import Status, StatusCode
from ottla.groups.streams.tasks import Partitions, TaskId
from ottla.groups.streams.topology import TopicInfo
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.slices import Slices, parts

KEY: Final = 88
ACCESS: Final = (
    Access(Operation.READ, Resource.GROUP),
    Access(Operation.DESCRIBE, Resource.TOPIC),
)

TAKES_TURNS: Final = True
"""All members of a group may send it at the same time."""

DISABLED: Final = (
    "This cluster does not use streams groups (KIP-1071): its feature streams.version is at level"
    " 0. Use group.protocol=classic, or raise it (kafka-features.sh upgrade --feature"
    " streams.version=1)."
)
MAX_ERRORS_TOLD: Final = 3
MAX_TAGS: Final = 100
"""Of a member. Kafka Streams allows 5 itself (StreamsConfig)."""
MAX_OWNED: Final = 100_000
"""Tasks that a member has in one role. Kafka has no limit."""
MAX_TASK_NAME_CHARACTERS: Final = 100_000
"""Of all subtopologies of which a member says how far it is: that is kept."""
MAX_TOLD_CHARACTERS: Final = 4_000
"""Of an error or a status: Java's clients fail at a string of more than 32,767 bytes. Kafka does
not answer then.
"""
_CREATE_TOPIC: Final = Need(Operation.CREATE, Resource.TOPIC)
_CREATE: Final = Need(Operation.CREATE, Resource.CLUSTER)


def is_enabled(context: Context) -> bool:
    """Whether the cluster has streams groups."""
    return context.broker.image.features.get(STREAMS_VERSION, 0) >= 1


async def handle(request: Any, context: Context) -> Any:
    build, slices = context.messages, Slices()
    if not is_enabled(context):
        return build.StreamsGroupHeartbeatResponse(
            error_code=ErrorCode.unsupported_version, error_message=DISABLED, status=()
        )
    try:
        result = await context.broker.groups.streams.heartbeat(
            await _request(request, context, slices)
        )
    except ApiError as error:
        return build.StreamsGroupHeartbeatResponse(
            error_code=error.code, error_message=_told(error.message or "") or None, status=()
        )
    statuses = await _with_creation(result, context)
    tasks = result.tasks
    return build.StreamsGroupHeartbeatResponse(
        member_id=result.member_id,
        member_epoch=result.epoch,
        heartbeat_interval=result.heartbeat_interval_ms,
        task_offset_interval=result.task_offset_interval_ms,
        # Of another type in version 0, where Kafka says 0.
        acceptable_recovery_lag=result.acceptable_recovery_lag if build.version > 0 else 0,
        status=tuple(
            build.Status(status_code=each.code, status_detail=_told(each.detail))
            for each in statuses
        ),
        active_tasks=None if tasks is None else await task_ids(tasks.active, build, slices),
        standby_tasks=None if tasks is None else await task_ids(tasks.standby, build, slices),
        warmup_tasks=None if tasks is None else await task_ids(tasks.warmup, build, slices),
        topology_description_required=result.is_to_describe,
        endpoint_information_epoch=result.endpoint_epoch,
        partitions_by_user_endpoint=await _endpoints(result.endpoints, build, slices),
    )


async def _request(request: Any, context: Context, slices: Slices) -> HeartbeatRequest:
    endpoint, tags = request.user_endpoint, request.client_tags
    return HeartbeatRequest(
        group=request.group_id,
        member_id=request.member_id,
        epoch=request.member_epoch,
        client_id=context.client_id,
        client_host=context.session.address,
        endpoint_epoch=request.endpoint_information_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout,
        topology=await topology_of(request.topology, slices),
        active=await _owned(request.active_tasks, slices),
        standby=await _owned(request.standby_tasks, slices),
        warmup=await _owned(request.warmup_tasks, slices),
        process_id=request.process_id,
        endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        client_tags=None if tags is None else _tags(tags),
        task_offsets=await _offsets(request.task_offsets, slices),
        task_end_offsets=await _offsets(request.task_end_offsets, slices),
        knows_descriptions=context.messages.version > 0,
        shuts_down=request.shutdown_application,
    )


def _tags(tags: Sequence[Any]) -> tuple[tuple[str, str], ...]:
    """Raises ApiError (INVALID_REQUEST) where a name comes twice, or for too many."""
    found = {tag.key: tag.value for tag in tags[: MAX_TAGS + 1]}
    if len(tags) > MAX_TAGS:
        raise ApiError(
            ErrorCode.invalid_request,
            f"ClientTags are {len(tags)}; at most {MAX_TAGS} are allowed.",
        )
    if len(found) < len(tags):
        raise ApiError(ErrorCode.invalid_request, "ClientTags have the same name twice.")
    return tuple(sorted(found.items()))


async def _owned(tasks: Any, slices: Slices) -> Partitions | None:
    """Raises ApiError (INVALID_REQUEST) for more than a topology can have."""
    if tasks is None:
        return None
    owned: dict[str, set[int]] = {}
    count = 0
    for each in tasks:
        await slices.count()
        numbers = owned.setdefault(each.subtopology_id, set())
        count += len(each.partitions)
        if len(owned) > MAX_TOPOLOGY_NAMES or count > MAX_OWNED:
            raise ApiError(
                ErrorCode.invalid_request,
                f"A member may say that it has {MAX_OWNED:,} tasks of {MAX_TOPOLOGY_NAMES:,}"
                " subtopologies at most. Start more instances.",
            )
        await slices.add_all(numbers, each.partitions)
    return {name: frozenset(numbers) for name, numbers in owned.items()}


async def _offsets(said: Sequence[Any] | None, slices: Slices) -> TaskOffsets | None:
    """Raises ApiError (INVALID_REQUEST) where a task comes twice, or for too many."""
    if said is None:
        return None
    if len(said) > MAX_TASK_OFFSETS:
        raise ApiError(
            ErrorCode.invalid_request,
            f"Task offsets are {len(said)}; at most {MAX_TASK_OFFSETS} are allowed.",
        )
    found: dict[TaskId, int] = {}
    names: dict[str, str] = {}
    """Each is kept once."""
    for some in parts(said):
        await slices.count(len(some))
        for each in some:
            task = names.setdefault(each.subtopology_id, each.subtopology_id), each.partition
            if task in found:
                raise ApiError(
                    ErrorCode.invalid_request,
                    "Task offsets contain a duplicate entry for subtopology"
                    f" {each.subtopology_id} and partition {each.partition}.",
                )
            found[task] = each.offset
        if sum(map(len, names)) > MAX_TASK_NAME_CHARACTERS:
            raise ApiError(
                ErrorCode.invalid_request,
                "Task offsets name subtopologies with more than"
                f" {MAX_TASK_NAME_CHARACTERS:,} characters.",
            )
    return found


async def _endpoints(
    endpoints: tuple[EndpointPartitions, ...] | None, build: Any, slices: Slices
) -> Any:
    if endpoints is None:
        return None
    made = []
    for each in endpoints:
        parts = []
        for topics in (each.active, each.standby):
            await slices.count(1 + len(topics))
            parts.append(
                tuple(
                    build.TopicPartition(topic=name, partitions=numbers) for name, numbers in topics
                )
            )
        made.append(
            build.EndpointToPartitions(
                user_endpoint=build.Endpoint(host=each.endpoint.host, port=each.endpoint.port),
                active_partitions=parts[0],
                standby_partitions=parts[1],
            )
        )
    return tuple(made)


async def _with_creation(result: HeartbeatResult, context: Context) -> tuple[Status, ...]:
    """Has missing topics created, beside this request; what prevents it is added to the status."""
    missing = result.missing_topics
    if not missing:
        return result.statuses
    unauthorized = await _unauthorized(missing, context)
    if unauthorized:
        return _with_detail(result, f"Unauthorized to CREATE on topics {', '.join(unauthorized)}.")
    topics = context.broker.topic_creation.streams
    topics.create(
        [
            NewTopic(
                each.name, each.partitions, each.replication_factor or -1, configs=each.configs
            )
            for each in missing
        ],
        2 * result.heartbeat_interval_ms,
    )
    failed = topics.errors([each.name for each in missing])
    if not failed:
        return result.statuses
    told = ", ".join(f"{name} ({why})" for name, why in failed[:MAX_ERRORS_TOLD])
    more = len(failed) - MAX_ERRORS_TOLD
    told += f" and {more} more" if more > 0 else ""
    return _with_detail(result, f"Creation failed: {told}.")


async def _unauthorized(missing: Sequence[TopicInfo], context: Context) -> list[str]:
    broker = context.broker
    if broker.authorization is None or broker.is_broker(context.session):
        return []
    if may(context, _CREATE, log=False):
        return []
    _, refused = await split(missing, _CREATE_TOPIC, lambda each, context: str(each.name), context)
    return [each.name for each in refused]


def _told(text: str) -> str:
    return text if len(text) <= MAX_TOLD_CHARACTERS else f"{text[:MAX_TOLD_CHARACTERS]}..."


def _with_detail(result: HeartbeatResult, what: str) -> tuple[Status, ...]:
    return tuple(
        each._replace(detail=f"{each.detail}; {what}")
        if each.code is StatusCode.MISSING_INTERNAL_TOPICS
        else each
        for each in result.statuses
    )
