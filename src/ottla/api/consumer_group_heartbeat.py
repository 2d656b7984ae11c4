"""ConsumerGroupHeartbeat (key 68, KIP-848): a member joins a group, is alive, leaves.

It says what it subscribes to and what it owns, and gets to know which partitions it may read. At
level 0 of `group.version` the response is UNSUPPORTED_VERSION, as Apache Kafka's
(KafkaApis.isConsumerGroupProtocolEnabled). v1: the client makes its own member id; a subscription
by regular expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final
from uuid import UUID

from ottla.api.context import Context
from ottla.api.group_assignments import assignment, subscribed_topics
from ottla.api.permissions import Need, split
from ottla.controller.features import GROUP_VERSION
from ottla.groups.consumer.assignors.spec import Partitions
from ottla.groups.consumer.requests import HeartbeatRequest
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.versioned_field import VersionedField
from ottla.runtime.slices import Slices

KEY: Final = 68
ACCESS: Final = (
    Access(Operation.READ, Resource.GROUP),
    Access(Operation.DESCRIBE, Resource.TOPIC),
)

TAKES_TURNS: Final = True
"""All members of a group may send it at the same time."""

DISABLED: Final = (
    "This cluster does not use the consumer group protocol (KIP-848): its feature group.version is"
    " at level 0. Use group.protocol=classic, or raise it (kafka-features.sh upgrade --feature"
    " group.version=1)."
)
MAX_OWNED_TOPICS: Final = 100_000
"""Of which a member says that it owns partitions. Kafka has no limit."""
_DESCRIBE: Final = Need(Operation.DESCRIBE, Resource.TOPIC)
_REGEX: Final = VersionedField[str | None](
    KEY, "ConsumerGroupHeartbeatRequest", "subscribed_topic_regex", None
)


def is_enabled(context: Context) -> bool:
    """Whether the cluster has consumer groups of KIP-848."""
    return context.broker.image.features.get(GROUP_VERSION, 0) >= 1


async def handle(request: Any, context: Context) -> Any:
    build, slices = context.messages, Slices()
    if not is_enabled(context):
        return build.ConsumerGroupHeartbeatResponse(
            error_code=ErrorCode.unsupported_version, error_message=DISABLED
        )
    try:
        asked = await _request(request, context, slices)
        result = await context.broker.groups.consumer_heartbeat(
            asked, context.version, partial(_may_describe, context)
        )
    except ApiError as error:
        return build.ConsumerGroupHeartbeatResponse(
            error_code=error.code, error_message=error.message or None
        )
    return build.ConsumerGroupHeartbeatResponse(
        member_id=result.member_id,
        member_epoch=result.epoch,
        heartbeat_interval=result.heartbeat_interval_ms,
        assignment=await assignment(result.assignment, build, slices),
    )


async def _may_describe(context: Context, names: Sequence[str]) -> Sequence[str]:
    """Those of these topics that the member may know of: an expression matches no others."""
    broker = context.broker
    if broker.authorization is None or broker.is_broker(context.session):
        return names
    shown, _ = await split(names, _DESCRIBE, lambda name, context: str(name), context, log=False)
    return shown


async def _request(request: Any, context: Context, slices: Slices) -> HeartbeatRequest:
    return HeartbeatRequest(
        group=request.group_id,
        member_id=request.member_id,
        epoch=request.member_epoch,
        client_id=context.client_id,
        client_host=context.session.address,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout,
        subscribed_topics=subscribed_topics(request),
        subscribed_regex=_REGEX(request),
        server_assignor=request.server_assignor,
        owned=await _owned(request.topic_partitions, slices),
    )


async def _owned(topics: Any, slices: Slices) -> Partitions | None:
    """Raises ApiError (INVALID_REQUEST) for more than the broker takes over."""
    if topics is None:
        return None
    owned: dict[UUID, set[int]] = {}
    for topic in topics:
        await slices.count()
        if topic.topic_id is None:
            continue
        # One that is named again and again must not be copied each time.
        mine = owned.setdefault(topic.topic_id, set())
        if len(owned) > MAX_OWNED_TOPICS:
            raise ApiError(
                ErrorCode.invalid_request,
                f"A member may say that it owns partitions of {MAX_OWNED_TOPICS:,} topics at most."
                " Start more members.",
            )
        await slices.add_all(mine, topic.partitions)
    found = {}
    for topic_id, partitions in owned.items():
        await slices.count(1 + len(partitions) // 100)
        found[topic_id] = frozenset(partitions)
    return found
