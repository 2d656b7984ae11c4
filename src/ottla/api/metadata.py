"""Metadata (key 3): the brokers, the topics, and the leaders of their partitions.

v0: an empty list of topics means all; from v1 null does, and an empty list means none. v0 omits
unreachable replicas and then returns REPLICA_NOT_AVAILABLE. v4: the client may forbid
auto-creation. v5: offline replicas (KIP-112). v6: LISTENER_NOT_FOUND if the leader is live but does
not have the client's listener. v7: leader epochs (KIP-320). v8: authorized operations (KIP-430).
v9: flexible. v10: topic ids in the response; v12: in the request too (KIP-516). v11: no cluster
operations any more (KIP-700). v13: an error for the whole response.

Clients request all topics again and again, and with ten thousand partitions the response is large.
So each topic's part is cached until the topic or the reachable brokers change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID
from weakref import WeakKeyDictionary

from ottla.api.context import Context
from ottla.api.mutation_quota import MutationQuota
from ottla.controller.image import (
    NO_LEADER,
    BrokerImage,
    ClusterImage,
    PartitionState,
    TopicImage,
)
from ottla.controller.naming import check_topic_name
from ottla.controller.plan import Outcome, refused
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.internal_topics import INTERNAL_TOPICS
from ottla.protocol.versioned_field import VersionedField
from ottla.runtime.slices import SLICE, Slices
from ottla.runtime.waiting import Waiter

KEY: Final = 3
ACCESS: Final = (
    Access(Operation.DESCRIBE, Resource.TOPIC),
    Access(Operation.CREATE, Resource.TOPIC),
)

OPERATIONS_NOT_REQUESTED: Final = -(2**31)
TOPIC_OPERATIONS: Final = 3576
"""Bits of all operations on a topic: read, write, create, delete, alter, describe, and the last
two for its settings. Without an authorizer every client may use all of them."""
CLUSTER_OPERATIONS: Final = 8096

ELECTION_WITHIN_MS: Final = 500
PROBE_WITHIN_MS: Final = 50
MAX_TOPICS_PROBED: Final = 10

_NO_ID: Final = UUID(int=0)
_LISTENER_NOT_FOUND_SINCE: Final = 6

_INCLUDE_TOPIC_AUTHORIZED_OPERATIONS: Final = VersionedField(
    KEY, "MetadataRequest", "include_topic_authorized_operations", False
)
_INCLUDE_CLUSTER_AUTHORIZED_OPERATIONS: Final = VersionedField(
    KEY, "MetadataRequest", "include_cluster_authorized_operations", False
)
_TOPIC_ID: Final = VersionedField[UUID | None](KEY, "MetadataRequestTopic", "topic_id", None)
_ALLOW_AUTO_TOPIC_CREATION: Final = VersionedField(
    KEY, "MetadataRequest", "allow_auto_topic_creation", True
)


async def handle(request: Any, context: Context) -> Any:
    await _wait_for_election(request, context)
    image, build = context.broker.image, context.messages
    everything = request.topics is None or (context.version == 0 and not request.topics)
    if everything:
        cached = _cached_answers(context)
        topics, slices = [], Slices()
        for known in tuple(image.topics.values()):  # they may change during a pause
            await slices.count()
            topics.append(await _known_topic(known, cached, slices, context))
    else:
        topics = await _requested_topics(request, context)
    if _INCLUDE_TOPIC_AUTHORIZED_OPERATIONS(request):
        topics = await _with_operations(topics, context)
    cluster_operations = _INCLUDE_CLUSTER_AUTHORIZED_OPERATIONS(request)
    return build.MetadataResponse(
        brokers=tuple(
            build.MetadataResponseBroker(node_id=broker_id, host=host, port=port, rack=rack)
            for broker_id, host, port, rack in _addresses(
                (*image.brokers.values(), *context.broker.departed.visible()), context
            )
        ),
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=tuple(topics),
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if cluster_operations else OPERATIONS_NOT_REQUESTED
        ),
    )


async def _wait_for_election(request: Any, context: Context) -> None:
    """Wait briefly for a new leader, because clients ask just before it is elected.

    If the response still has the killed leader, librdkafka retries up to a second later. So if a
    broker's connections to this one have just broken, or a leader refuses one, the response waits
    for the next metadata delta, within limits.
    """
    broker, loop = context.broker, asyncio.get_running_loop()
    found = {each: broker.peers.lost_at(each) for each in broker.image.brokers}
    lost = {each: lost_at for each, lost_at in found.items() if lost_at is not None}
    if leaders := _leaders(request, context) - lost.keys():
        lost |= dict.fromkeys(await _refusing(leaders, context), loop.time())
    for broker_id, lost_at in lost.items():
        while broker_id in broker.image.brokers:
            left_ms = ELECTION_WITHIN_MS - int((loop.time() - lost_at) * 1000)
            if left_ms <= 0:
                break
            await Waiter((broker.view,)).wait(left_ms)


def _leaders(request: Any, context: Context) -> set[int]:
    """Other brokers that lead partitions of the topics that the client names: it may ask because
    one of them has just closed its connection.
    """
    image, own = context.broker.image, context.broker.config.id
    leaders: set[int] = set()
    for named in (request.topics or ())[:MAX_TOPICS_PROBED]:
        topic_id = _TOPIC_ID(named)
        if named.name:
            topic = image.topic(named.name)
        else:
            topic = None if topic_id is None else image.topic_by_id(topic_id)
        if topic is not None:
            leaders.update(each.leader for each in topic.partitions)
    return (leaders & image.brokers.keys()) - {own}


async def _refusing(broker_ids: Iterable[int], context: Context) -> list[int]:
    """Those whose listener is closed. The system closes a killed process's sockets one by one: its
    client may notice before this broker's own connection to it is lost.
    """
    asked = tuple(broker_ids)
    peers = context.broker.peers
    found = await asyncio.gather(*(peers.refuses(each, PROBE_WITHIN_MS) for each in asked))
    return [each for each, refuses in zip(asked, found, strict=True) if refuses]


def broker_addresses(context: Context) -> list[tuple[int, str, int, str | None]]:
    """Number, host, port and rack of each live broker, on this client's listener."""
    return _addresses(context.broker.image.brokers.values(), context)


def _addresses(
    brokers: Iterable[BrokerImage], context: Context
) -> list[tuple[int, str, int, str | None]]:
    addresses: list[tuple[int, str, int, str | None]] = []
    for broker in brokers:
        if broker.broker_id == context.broker.config.id:
            host, port = context.session.advertised_host, context.session.advertised_port
        else:
            # KIP-103: a broker without this listener cannot be reached through it; omit it.
            endpoint = broker.endpoint(context.session.listener)
            if endpoint is None:
                continue
            host, port = endpoint.host, endpoint.port
        addresses.append((broker.broker_id, host, port, broker.rack))
    return addresses


async def _requested_topics(request: Any, context: Context) -> list[Any]:
    """The responses for the requested topics, each once, in their order."""
    image = context.broker.image
    wanted: dict[tuple[str | None, UUID | None], None] = {}
    slices = Slices()
    for named in request.topics:
        await slices.count()
        wanted[named.name, _TOPIC_ID(named)] = None
    by_id = any(topic_id is not None and topic_id != _NO_ID for _, topic_id in wanted)
    created = {} if by_id else await _create_missing(request, wanted, context)
    cached, answers = _cached_answers(context), []
    for name, topic_id in wanted:
        await slices.count()
        topic: TopicImage | None = None
        if topic_id is not None and topic_id != _NO_ID:
            if context.version < 12:
                # Versions 10 and 11 have ids, but no response without a name.
                answers.append(_refusal(name or "", None, ErrorCode.invalid_request, context))
                continue
            topic = image.topic_by_id(topic_id)
            if topic is None:
                answers.append(_refusal(None, topic_id, ErrorCode.unknown_topic_id, context))
                continue
        elif name is None:
            answers.append(_refusal("", None, ErrorCode.invalid_request, context))
            continue
        else:
            topic = image.topic(name)
        if topic is not None:
            answers.append(await _known_topic(topic, cached, slices, context))
            continue
        assert name is not None
        answers.append(_refusal(name, None, _missing_code(name, created), context))
    return answers


async def _create_missing(
    request: Any, wanted: Iterable[tuple[str | None, UUID | None]], context: Context
) -> dict[str, Outcome]:
    """Create the unknown topics if client and broker allow it; the outcome of each."""
    broker = context.broker
    allowed = _ALLOW_AUTO_TOPIC_CREATION(request)
    if not (allowed and broker.config.auto_create_topics_enable):
        return {}
    missing = [name for name, _ in wanted if name is not None and name not in broker.image.topics]
    charge = MutationQuota(context, strict_since=0).charge
    created: dict[str, Outcome]
    try:
        if missing:
            charge(len(missing) * broker.config.num_partitions)
    except ApiError:
        return {}  # as in Kafka, they are unknown: the client will ask again
    try:
        created = await broker.topic_creation.auto_create(missing)
    except ApiError as error:
        created = dict.fromkeys(missing, refused(error))
    return created


def _missing_code(name: str, created: dict[str, Outcome]) -> ErrorCode:
    try:
        check_topic_name(name)
    except ApiError as error:
        return error.code
    outcome = created.get(name)
    if outcome is None:
        return ErrorCode.unknown_topic_or_partition
    # Created, and deleted again by another client: this client learns so at its next request.
    return outcome.code if outcome.failed else ErrorCode.leader_not_available


def _refusal(name: str | None, topic_id: UUID | None, code: ErrorCode, context: Context) -> Any:
    return context.messages.MetadataResponseTopic(
        error_code=code,
        name=name,
        topic_id=topic_id,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=OPERATIONS_NOT_REQUESTED,
    )


class ReachableBrokers(NamedTuple):
    """The brokers as seen by a client of one listener (KIP-103)."""

    alive: frozenset[int]
    endpoints: frozenset[int]
    """The live brokers that this listener reaches."""

    def offline(self, replicas: Sequence[int]) -> tuple[int, ...]:
        """The replicas that this client cannot reach (KRaftMetadataCache.getOfflineReplicas)."""
        return tuple(broker for broker in replicas if broker not in self.endpoints)

    def online(self, replicas: Sequence[int]) -> tuple[int, ...]:
        """The other replicas."""
        return tuple(broker for broker in replicas if broker in self.endpoints)


def reachable_brokers(context: Context) -> ReachableBrokers:
    """The brokers that this client can reach."""
    return ReachableBrokers(
        frozenset(context.broker.image.brokers),
        frozenset(broker_id for broker_id, _, _, _ in broker_addresses(context)),
    )


class _Answers:
    """The cached responses of one version, for one listener's clients, by topic."""

    def __init__(self, reachable: ReachableBrokers) -> None:
        self.reachable = reachable
        self.topics: dict[str, tuple[TopicImage, Any]] = {}


_kept: WeakKeyDictionary[ClusterImage, dict[tuple[int, str], _Answers]] = WeakKeyDictionary()


def _cached_answers(context: Context) -> _Answers:
    """The cached responses for such clients; empty if they may be out of date."""
    image, reachable = context.broker.image, reachable_brokers(context)
    kind = (context.version, context.session.listener)
    kinds = _kept.setdefault(image, {})
    answers = kinds.get(kind)
    if (
        answers is None
        or answers.reachable != reachable
        or len(answers.topics) > 2 * len(image.topics)
    ):
        answers = kinds[kind] = _Answers(reachable)
    return answers


async def _known_topic(
    topic: TopicImage, answers: _Answers, slices: Slices, context: Context
) -> Any:
    """The response for an existing topic."""
    cached = answers.topics.get(topic.name)
    if cached is None or cached[0] is not topic:
        partitions: list[Any] = []
        for start in range(0, len(topic.partitions), SLICE):
            some = topic.partitions[start : start + SLICE]
            await slices.count(len(some))
            partitions += [
                _partition(index, state, answers.reachable, context)
                for index, state in enumerate(some, start)
            ]
        answer = _topic(topic, tuple(partitions), context)
        cached = answers.topics[topic.name] = (topic, answer)
    return cached[1]


def _topic(topic: TopicImage, partitions: tuple[Any, ...], context: Context) -> Any:
    return context.messages.MetadataResponseTopic(
        error_code=ErrorCode.none,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=partitions,
        topic_authorized_operations=OPERATIONS_NOT_REQUESTED,
    )


def _partition(
    index: int, state: PartitionState, reachable: ReachableBrokers, context: Context
) -> Any:
    replicas, isr = state.replicas, state.isr
    offline = reachable.offline(replicas)
    if context.version == 0:
        replicas, isr = reachable.online(replicas), reachable.online(isr)
    code = _leader_code(state.leader, reachable, context.version)
    return context.messages.MetadataResponsePartition(
        error_code=(
            ErrorCode.replica_not_available
            if code is ErrorCode.none and len(replicas) < len(state.replicas)
            else code
        ),
        partition_index=index,
        leader_id=state.leader if code is ErrorCode.none else NO_LEADER,
        leader_epoch=state.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=offline,
    )


def _leader_code(leader: int, reachable: ReachableBrokers, version: int) -> ErrorCode:
    """As KRaftMetadataCache.partitionMetadata: a leader without the listener is an error in the
    settings, and the client should learn of it.
    """
    if leader in reachable.endpoints:
        return ErrorCode.none
    if leader in reachable.alive and version >= _LISTENER_NOT_FOUND_SINCE:
        return ErrorCode.listener_not_found
    return ErrorCode.leader_not_available


async def _with_operations(topics: Iterable[Any], context: Context) -> list[Any]:
    """The same responses with the operations that the client may use."""
    answers, slices = [], Slices()
    for topic in topics:
        await slices.count()
        fields = {name: getattr(topic, name) for name in _TOPIC_FIELDS if hasattr(topic, name)}
        answers.append(
            context.messages.MetadataResponseTopic(
                **fields, topic_authorized_operations=TOPIC_OPERATIONS
            )
        )
    return answers


_TOPIC_FIELDS: Final = ("error_code", "name", "topic_id", "is_internal", "partitions")
