"""Metadata (key 3): which brokers, topics and partitions there are, and who leads them.

v0: an empty list of topics means all; from v1 null does, and an empty list means none. In v0 a
replica that cannot be reached is left out, and REPLICA_NOT_AVAILABLE says so. v4: the client may
forbid auto-creation. v5: offline replicas (KIP-112). v6: LISTENER_NOT_FOUND where the leader lives,
but lacks the listener by which the client came. v7: leader epochs (KIP-320). v8: authorized
operations (KIP-430). v9: flexible. v10: topic ids in the answer; v12: in the request too (KIP-516).
v11: no cluster operations any more (KIP-700). v13: an error for the whole answer.

Clients ask for all topics again and again, and with ten thousand partitions the answer is large:
each topic's part is kept until the topic or the brokers that can be reached change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID
from weakref import WeakKeyDictionary

from ottla.broker.call import Call
from ottla.broker.topic_creation import auto_create
from ottla.broker.waiting import Waiter
from ottla.controller.image import (
    NO_LEADER,
    BrokerImage,
    ClusterImage,
    PartitionState,
    TopicImage,
)
from ottla.controller.naming import check_topic_name
from ottla.controller.plan import Outcome, refused
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.internal_topics import INTERNAL_TOPICS

KEY: Final = 3

OPERATIONS_NOT_ASKED: Final = -(2**31)
TOPIC_OPERATIONS: Final = 3576
"""Bits of all operations on a topic: read, write, create, delete, alter, describe and both for
its settings. Without an authorizer everybody may do all of them."""
CLUSTER_OPERATIONS: Final = 8096

ELECTION_WITHIN_MS: Final = 500

_NO_ID: Final = UUID(int=0)
_LISTENER_NOT_FOUND_SINCE: Final = 6


async def handle(request: Any, call: Call) -> Any:
    await _let_election_end(call)
    image, build = call.node.image, call.messages
    everything = request.topics is None or (call.version == 0 and not request.topics)
    if everything:
        kept = _kept_answers(call)
        topics = [_known_topic(topic, kept, call) for topic in image.topics.values()]
    else:
        topics = await _asked_topics(request, call)
    if getattr(request, "include_topic_authorized_operations", False):
        topics = [_with_operations(topic, call) for topic in topics]
    cluster_operations = getattr(request, "include_cluster_authorized_operations", False)
    return build.MetadataResponse(
        brokers=tuple(
            build.MetadataResponseBroker(node_id=broker_id, host=host, port=port, rack=rack)
            for broker_id, host, port, rack in _addresses(
                (*image.brokers.values(), *call.node.departed.named_still()), call
            )
        ),
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=tuple(topics),
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if cluster_operations else OPERATIONS_NOT_ASKED
        ),
    )


async def _let_election_end(call: Call) -> None:
    """A killed leader's clients ask at once who leads now, some milliseconds before it is decided.

    Told the old leader once more, librdkafka asks again only a second later. So where a broker's
    connections to us broke off a moment ago, the answer waits for the next metadata delta, within
    limits.
    """
    node, loop = call.node, asyncio.get_running_loop()
    for broker_id in tuple(node.image.brokers):
        lost_at = node.peers.lost_at(broker_id)
        if lost_at is None:
            continue
        while broker_id in node.image.brokers:
            left_ms = ELECTION_WITHIN_MS - int((loop.time() - lost_at) * 1000)
            if left_ms <= 0:
                break
            await Waiter((node.view,)).wait(left_ms)


def broker_addresses(call: Call) -> list[tuple[int, str, int, str | None]]:
    """Number, host, port and rack of each live broker, as the listener of this call tells them."""
    return _addresses(call.node.image.brokers.values(), call)


def _addresses(
    brokers: Iterable[BrokerImage], call: Call
) -> list[tuple[int, str, int, str | None]]:
    addresses: list[tuple[int, str, int, str | None]] = []
    for broker in brokers:
        if broker.broker_id == call.node.config.id:
            host, port = call.listener_host, call.listener_port
        else:
            # KIP-103: a broker without this listener cannot be reached over it, and is left out.
            endpoint = broker.endpoint(call.listener)
            if endpoint is None:
                continue
            host, port = endpoint.host, endpoint.port
        addresses.append((broker.broker_id, host, port, broker.rack))
    return addresses


async def _asked_topics(request: Any, call: Call) -> list[Any]:
    """The answers for the topics that the request names, each once, in its order."""
    image = call.node.image
    wanted: dict[tuple[str | None, UUID | None], None] = dict.fromkeys(
        (topic.name, getattr(topic, "topic_id", None)) for topic in request.topics
    )
    by_id = any(topic_id is not None and topic_id != _NO_ID for _, topic_id in wanted)
    created = {} if by_id else await _create_missing(request, wanted, call)
    kept, answers = _kept_answers(call), []
    for name, topic_id in wanted:
        topic: TopicImage | None = None
        if topic_id is not None and topic_id != _NO_ID:
            if call.version < 12:
                # Version 10 and 11 have ids, but no answer without a name.
                answers.append(_refusal(name or "", None, ErrorCode.invalid_request, call))
                continue
            topic = image.topic_by_id(topic_id)
            if topic is None:
                answers.append(_refusal(None, topic_id, ErrorCode.unknown_topic_id, call))
                continue
        elif name is None:
            answers.append(_refusal("", None, ErrorCode.invalid_request, call))
            continue
        else:
            topic = image.topic(name)
        if topic is not None:
            answers.append(_known_topic(topic, kept, call))
            continue
        assert name is not None
        answers.append(_refusal(name, None, _missing_code(name, created), call))
    return answers


async def _create_missing(
    request: Any, wanted: Iterable[tuple[str | None, UUID | None]], call: Call
) -> dict[str, Outcome]:
    """Make the unknown topics where client and broker allow it; the outcome of each."""
    node = call.node
    allowed = getattr(request, "allow_auto_topic_creation", True)
    if not (allowed and node.config.auto_create_topics_enable):
        return {}
    missing = [name for name, _ in wanted if name is not None and name not in node.image.topics]
    created: dict[str, Outcome]
    try:
        created = await auto_create(node, missing)
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
    # Made, and deleted again by someone else: the client finds out at its next look.
    return outcome.code if outcome.failed else ErrorCode.leader_not_available


def _refusal(name: str | None, topic_id: UUID | None, code: ErrorCode, call: Call) -> Any:
    return call.messages.MetadataResponseTopic(
        error_code=code,
        name=name,
        topic_id=topic_id,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=OPERATIONS_NOT_ASKED,
    )


class Reach(NamedTuple):
    """Which brokers there are for a client that came by one listener (KIP-103)."""

    alive: frozenset[int]
    endpoints: frozenset[int]
    """Those of them that this listener leads to."""

    def offline(self, replicas: Sequence[int]) -> tuple[int, ...]:
        """The replicas that this client cannot reach (KRaftMetadataCache.getOfflineReplicas)."""
        return tuple(broker for broker in replicas if broker not in self.endpoints)

    def online(self, replicas: Sequence[int]) -> tuple[int, ...]:
        """The others."""
        return tuple(broker for broker in replicas if broker in self.endpoints)


def reach(call: Call) -> Reach:
    """Whom the client of this call can reach."""
    return Reach(
        frozenset(call.node.image.brokers),
        frozenset(broker_id for broker_id, _, _, _ in broker_addresses(call)),
    )


class _Answers:
    """The answers of one version, to one listener's clients, by topic."""

    def __init__(self, there: Reach) -> None:
        self.there = there
        self.topics: dict[str, tuple[TopicImage, Any]] = {}


_kept: WeakKeyDictionary[ClusterImage, dict[tuple[int, str], _Answers]] = WeakKeyDictionary()


def _kept_answers(call: Call) -> _Answers:
    """What was answered before to such clients; nothing where that may be true no more."""
    image, there = call.node.image, reach(call)
    kind = (call.version, call.listener)
    kinds = _kept.setdefault(image, {})
    answers = kinds.get(kind)
    if answers is None or answers.there != there or len(answers.topics) > 2 * len(image.topics):
        answers = kinds[kind] = _Answers(there)
    return answers


def _known_topic(topic: TopicImage, answers: _Answers, call: Call) -> Any:
    """The answer for a topic that is there."""
    kept = answers.topics.get(topic.name)
    if kept is None or kept[0] is not topic:
        kept = answers.topics[topic.name] = (topic, _topic(topic, answers.there, call))
    return kept[1]


def _topic(topic: TopicImage, there: Reach, call: Call) -> Any:
    return call.messages.MetadataResponseTopic(
        error_code=ErrorCode.none,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=tuple(
            _partition(index, state, there, call) for index, state in enumerate(topic.partitions)
        ),
        topic_authorized_operations=OPERATIONS_NOT_ASKED,
    )


def _partition(index: int, state: PartitionState, there: Reach, call: Call) -> Any:
    replicas, isr = state.replicas, state.isr
    offline = there.offline(replicas)
    if call.version == 0:
        replicas, isr = there.online(replicas), there.online(isr)
    code = _leader_code(state.leader, there, call.version)
    return call.messages.MetadataResponsePartition(
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


def _leader_code(leader: int, there: Reach, version: int) -> ErrorCode:
    """As KRaftMetadataCache.partitionMetadata: a leader without the listener is a fault of the
    settings, and the client is to hear of it.
    """
    if leader in there.endpoints:
        return ErrorCode.none
    if leader in there.alive and version >= _LISTENER_NOT_FOUND_SINCE:
        return ErrorCode.listener_not_found
    return ErrorCode.leader_not_available


def _with_operations(topic: Any, call: Call) -> Any:
    """The same answer with the operations that the client may do."""
    fields = {name: getattr(topic, name) for name in _TOPIC_FIELDS if hasattr(topic, name)}
    return call.messages.MetadataResponseTopic(
        **fields, topic_authorized_operations=TOPIC_OPERATIONS
    )


_TOPIC_FIELDS: Final = ("error_code", "name", "topic_id", "is_internal", "partitions")
