"""Creating topics and adding partitions to them (CreateTopics, CreatePartitions; KIP-4).

Pure: the caller passes the ids of new topics and the start of the placement. A broker that is
shutting down gets no replica. If a manual assignment names it, it is not in the ISR and so does not
lead (as in Kafka's ReplicationControlManager).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from ottla.config.broker import BrokerConfig
from ottla.config.error import ConfigError
from ottla.config.synonym import topic_defaults
from ottla.config.topic import check_topic_overrides
from ottla.controller import layout
from ottla.controller.config_changes import check_length, check_size
from ottla.controller.image import (
    BrokerImage,
    ClusterImage,
    PartitionsAdded,
    PartitionState,
    TopicCreated,
    TopicImage,
)
from ottla.controller.naming import check_new_topic_name
from ottla.controller.placement import check_active, check_assignment, place
from ottla.controller.plan import (
    DONE,
    Charge,
    Outcome,
    PlanBuilder,
    Step,
    Steps,
    free,
    refused,
)
from ottla.coordination.tree import Create, SetData
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.internal_topics import (
    METADATA_TOPIC,
    OFFSETS_TOPIC,
    SHARE_TOPIC,
    TRANSACTIONS_TOPIC,
)

PARTITIONS_PER_REQUEST_MAX: Final = 10_000
"""Kafka's limit for one request (QuorumController.MAX_RECORDS_PER_USER_OP)."""
TOPICS_PER_PLAN: Final = 100
"""About 20 ms to decide, write and open."""
PARTITIONS_PER_STEP: Final = 1_000
TOPIC_US: Final = 100
PARTITION_US: Final = 5
"""What deciding about a topic costs, and about each of its new partitions."""

Replicas = Generator[None, None, tuple[tuple[int, ...], ...]]
"""The brokers of each partition, found in steps."""

_INTERNAL_FACTOR_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class NewTopic:
    """One topic to create. -1 for `partitions` and `factor` means the broker's default."""

    name: str
    partitions: int = -1
    factor: int = -1
    assignments: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """Partition number and its brokers, for a manual assignment."""
    configs: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class MorePartitions:
    """A topic that should have `count` partitions in all."""

    name: str
    count: int
    assignments: tuple[tuple[int, ...], ...] | None = None
    """The brokers of each added partition, or None for automatic placement."""


@dataclass(frozen=True, slots=True)
class TopicResult:
    """The outcome for one topic; `topic` is set only if it was (or would be) created."""

    name: str
    outcome: Outcome
    topic: TopicImage | None = None


def all_refused(
    wanted: Iterable[NewTopic | MorePartitions], error: ApiError, known: Collection[str] = ()
) -> Iterator[TopicResult | None]:
    """The results of a request that is refused as a whole: one for each name that is not `known`.
    None for a topic without a result.
    """
    outcome, names = refused(error), set(known)
    for each in wanted:
        if each.name in names:
            yield None
            continue
        names.add(each.name)
        yield TopicResult(each.name, outcome)


@dataclass(slots=True)
class CreationSoFar:
    """What the earlier plans of a request have created: each plan has a part of its topics."""

    names: dict[str, str] = field(default_factory=dict)
    """The topics, by their names with "_" for "."."""
    partitions: int = 0


def in_parts(wanted: Sequence[NewTopic]) -> Iterator[Sequence[NewTopic] | None]:
    """The topics in parts, each for a plan: the event loop is free in between. None is a pause
    without a part. A name that is repeated has all its repetitions in the first part, which refuses
    them.
    """
    step = Step()
    counts: dict[str, int] = {}
    for topic in wanted:
        if step.is_full(1):
            yield None
        counts[topic.name] = counts.get(topic.name, 0) + 1
    repeated: list[NewTopic] = []
    once: list[NewTopic] = []
    for topic in wanted:
        if step.is_full(1):
            yield None
        (repeated if counts[topic.name] > 1 else once).append(topic)
    yield [*repeated, *once[:TOPICS_PER_PLAN]]
    for at in range(TOPICS_PER_PLAN, len(once), TOPICS_PER_PLAN):
        yield once[at : at + TOPICS_PER_PLAN]


def create_topics(
    wanted: Sequence[NewTopic],
    image: ClusterImage,
    config: BrokerConfig,
    *,
    new_id: Callable[[], UUID],
    start: int,
    shutting_down: Collection[int] = (),
    validate_only: bool = False,
    so_far: CreationSoFar | None = None,
    charge: Charge = free,
) -> Steps[tuple[TopicResult, ...]]:
    """Create each valid topic; the other outcomes give the reason. `so_far` grows by what the plan
    creates. `charge` gets the partitions of each topic.
    """
    builder, step = PlanBuilder(), Step()
    counts, results = yield from _counted(wanted, step)
    so_far = CreationSoFar() if so_far is None else so_far
    made = so_far.names
    defaults = topic_defaults(config)
    for requested in wanted:
        if step.is_full(1):
            yield
        if counts[requested.name] > 1:
            continue
        try:
            _check_allowed(requested.name)
            check_new_topic_name(requested.name, image)
            _check_collision(requested.name, made)
            overrides = _overrides(requested.configs, defaults)
            room = PARTITIONS_PER_REQUEST_MAX - so_far.partitions
            at = start + len(made)
            replicas = yield from _replicas(requested, image, shutting_down, config, at, room)
            charge(len(replicas))
        except ApiError as error:
            results.append(TopicResult(requested.name, refused(error)))
            continue
        if step.is_full(TOPIC_US + PARTITION_US * len(replicas)):
            yield
        so_far.partitions += len(replicas)
        made[requested.name.replace(".", "_")] = requested.name
        topic = _new_topic(requested.name, new_id(), replicas, overrides, shutting_down)
        _write_topic(builder, topic, image)
        results.append(TopicResult(requested.name, DONE, topic))
    return builder.plan(tuple(results), validate_only=validate_only)


def add_partitions(
    wanted: Sequence[MorePartitions],
    image: ClusterImage,
    *,
    start: int,
    shutting_down: Collection[int] = (),
    validate_only: bool = False,
    charge: Charge = free,
) -> Steps[tuple[TopicResult, ...]]:
    """Add partitions to each topic; the other outcomes give the reason. `charge` gets the number of
    those added to each.
    """
    builder, step = PlanBuilder(), Step()
    counts, results = yield from _counted(wanted, step)
    for requested in wanted:
        if step.is_full(10):
            yield
        if counts[requested.name] > 1:
            continue
        try:
            topic, replicas = yield from _further_replicas(requested, image, shutting_down, start)
            charge(len(replicas))
        except ApiError as error:
            results.append(TopicResult(requested.name, refused(error)))
            continue
        first = len(topic.partitions)
        if step.is_full(TOPIC_US + first + PARTITION_US * len(replicas)):
            yield
        states = tuple(first_state(each, shutting_down) for each in replicas)
        grown = replace(
            topic, partitions=topic.partitions + states, node_version=topic.node_version + 1
        )
        builder.writes.append(
            SetData(
                layout.topic_path(topic.name),
                layout.write_topic(topic.topic_id, grown.partitions),
                topic.node_version,
            )
        )
        _write_states(builder, grown, first, image.controller_epoch)
        builder.deltas.append(PartitionsAdded(grown, first))
        results.append(TopicResult(requested.name, DONE, grown))
    return builder.plan(tuple(results), validate_only=validate_only)


def _counted(
    wanted: Sequence[NewTopic | MorePartitions], step: Step
) -> Generator[None, None, tuple[dict[str, int], list[TopicResult]]]:
    """How often each name is given. One given more than once is refused once, as in Kafka."""
    outcome = Outcome(ErrorCode.invalid_request, "Duplicate topic name.")
    counts: dict[str, int] = {}
    results: list[TopicResult] = []
    for each in wanted:
        if step.is_full(2):
            yield
        count = counts[each.name] = counts.get(each.name, 0) + 1
        if count == 2:
            results.append(TopicResult(each.name, outcome))
    return counts, results


def _check_allowed(name: str) -> None:
    """ControllerApis.createTopics. Here it also protects the topic's records: a start passes over a
    folder of that name, which is KRaft's (`storage.log_store`).
    """
    if name == METADATA_TOPIC:
        raise ApiError(
            ErrorCode.invalid_request, f"Creation of internal topic {METADATA_TOPIC} is prohibited."
        )


def _check_collision(name: str, made: Mapping[str, str]) -> None:
    """Two topics of one request must not collide either."""
    other = made.get(name.replace(".", "_"))
    if other is not None:
        raise ApiError(
            ErrorCode.invalid_topic_exception,
            f"Topic '{name}' collides with existing topic: {other}",
        )


def _overrides(
    given: Sequence[tuple[str, str | None]], defaults: Mapping[str, str]
) -> dict[str, str]:
    """The settings of a new topic; raises INVALID_CONFIG."""
    empty = [name for name, value in given if value is None]
    if empty:
        raise ApiError(
            ErrorCode.invalid_config,
            f"Null value not supported for topic configs: {','.join(empty)}",
        )
    overrides = {name: value for name, value in given if value is not None}
    if not overrides:
        return {}
    for value in overrides.values():
        check_length(value)
    check_size(overrides, {})
    try:
        check_topic_overrides(defaults, overrides)
    except ConfigError as error:
        raise ApiError(ErrorCode.invalid_config, str(error)) from None
    return overrides


def _usable(image: ClusterImage, shutting_down: Collection[int]) -> list[BrokerImage]:
    return [each for each in image.brokers.values() if each.broker_id not in shutting_down]


def _replicas(
    requested: NewTopic,
    image: ClusterImage,
    shutting_down: Collection[int],
    config: BrokerConfig,
    start: int,
    room: int,
) -> Replicas:
    if requested.assignments:
        return (yield from _assigned(requested, image, shutting_down))
    if requested.factor < -1 or requested.factor == 0:
        raise ApiError(
            ErrorCode.invalid_replication_factor,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if requested.partitions < -1 or requested.partitions == 0:
        raise ApiError(
            ErrorCode.invalid_partitions,
            "Number of partitions was set to an invalid non-positive value.",
        )
    partitions = config.num_partitions if requested.partitions == -1 else requested.partitions
    _check_room(partitions, room)
    brokers = _usable(image, shutting_down)
    factor = (
        requested.factor
        if requested.factor != -1
        else default_factor(requested.name, image, config)
    )
    return (yield from _placed(brokers, partitions, factor, 0, start))


def _placed(
    brokers: Sequence[BrokerImage], partitions: int, factor: int, first: int, start: int
) -> Replicas:
    """As `place`."""
    placed: list[tuple[int, ...]] = []
    for at in range(first, first + partitions, PARTITIONS_PER_STEP):
        if at > first:
            yield
        count = min(PARTITIONS_PER_STEP, first + partitions - at)
        placed += place(brokers, count, factor, at, start)
    return tuple(placed)


def default_factor(topic: str, image: ClusterImage, config: BrokerConfig) -> int:
    """The replication factor of a topic whose creator does not specify one.

    `__consumer_offsets` and `__transaction_state` get three replicas if there are three brokers
    (Kafka's default), else one for each broker, so that a single broker can serve them. A broker
    that is away counts: a topic created while one of three is live would otherwise keep one replica
    for good. So its creation waits (KIP-115).
    """
    if topic == OFFSETS_TOPIC:
        factor = config.offsets_topic_replication_factor
    elif topic == TRANSACTIONS_TOPIC:
        factor = config.transaction_state_log_replication_factor
    elif topic == SHARE_TOPIC:
        factor = config.share_coordinator_state_topic_replication_factor
    else:
        return config.default_replication_factor
    known = len({*image.brokers, *image.directories})
    return factor if factor > 0 else min(_INTERNAL_FACTOR_MAX, max(known, 1))


def _check_room(partitions: int, room: int) -> None:
    if partitions > room:
        raise ApiError(
            ErrorCode.policy_violation,
            f"Excessively large number of partitions per request: at most "
            f"{PARTITIONS_PER_REQUEST_MAX}.",
        )


def _assigned(requested: NewTopic, image: ClusterImage, shutting_down: Collection[int]) -> Replicas:
    manual = "A manual partition assignment was specified, but "
    if requested.factor != -1:
        message = f"{manual}replication factor was not set to -1."
        raise ApiError(ErrorCode.invalid_request, message)
    if requested.partitions != -1:
        message = f"{manual}numPartitions was not set to -1."
        raise ApiError(ErrorCode.invalid_request, message)
    found: dict[int, tuple[int, ...]] = {}
    factor: int | None = None
    step = Step()
    for partition, replicas in requested.assignments:
        if step.is_full(5 + 2 * len(replicas)):
            yield
        if partition in found:
            raise ApiError(
                ErrorCode.invalid_replica_assignment,
                f"Found multiple manual partition assignments for partition {partition}",
            )
        check_assignment(replicas, image.brokers, factor)
        check_active(partition, replicas, shutting_down)
        factor = len(replicas)
        found[partition] = replicas
    if sorted(found) != list(range(len(found))):
        raise ApiError(
            ErrorCode.invalid_replica_assignment,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return tuple(found[partition] for partition in range(len(found)))


def _further_replicas(
    requested: MorePartitions, image: ClusterImage, shutting_down: Collection[int], start: int
) -> Generator[None, None, tuple[TopicImage, tuple[tuple[int, ...], ...]]]:
    topic = image.topic(requested.name)
    if topic is None:
        raise ApiError(
            ErrorCode.unknown_topic_or_partition,
            "This server does not host this topic-partition.",
        )
    present = len(topic.partitions)
    if requested.count == present:
        raise ApiError(ErrorCode.invalid_partitions, f"Topic already has {present} partition(s).")
    if requested.count < present:
        raise ApiError(
            ErrorCode.invalid_partitions,
            f"The topic {requested.name} currently has {present} partition(s); {requested.count} "
            "would not be an increase.",
        )
    added = requested.count - present
    _check_room(added, PARTITIONS_PER_REQUEST_MAX)
    factor = len(topic.partitions[0].replicas)
    if requested.assignments is None:
        usable = _usable(image, shutting_down)
        return topic, (yield from _placed(usable, added, factor, present, start))
    if len(requested.assignments) != added:
        raise ApiError(
            ErrorCode.invalid_replica_assignment,
            f"Attempted to add {added} additional partition(s), but only "
            f"{len(requested.assignments)} assignment(s) were specified.",
        )
    step = Step()
    for partition, replicas in enumerate(requested.assignments, start=present):
        if step.is_full(5 + 2 * len(replicas)):
            yield
        check_assignment(replicas, image.brokers, factor)
        check_active(partition, replicas, shutting_down)
    return topic, requested.assignments


def _new_topic(
    name: str,
    topic_id: UUID,
    replicas: tuple[tuple[int, ...], ...],
    overrides: dict[str, str],
    shutting_down: Collection[int],
) -> TopicImage:
    # Thousands of partitions have few different replicas.
    states = {each: first_state(each, shutting_down) for each in set(replicas)}
    return TopicImage(
        name=name,
        topic_id=topic_id,
        partitions=tuple(map(states.__getitem__, replicas)),
        overrides=overrides,
        config_version=0,
    )


def first_state(replicas: tuple[int, ...], shutting_down: Collection[int] = ()) -> PartitionState:
    """The state of a new partition; at least one of its brokers must not be shutting down."""
    isr = replicas
    if shutting_down:
        isr = tuple(broker for broker in replicas if broker not in shutting_down)
    return PartitionState(
        leader=isr[0], leader_epoch=0, replicas=replicas, isr=isr, partition_epoch=0
    )


def _write_topic(builder: PlanBuilder, topic: TopicImage, image: ClusterImage) -> None:
    config_path = layout.topic_config_path(topic.name)
    builder.writes += (
        Create(config_path, layout.write_config(topic.overrides)),
        Create(layout.topic_path(topic.name), layout.write_topic(topic.topic_id, topic.partitions)),
        Create(layout.partitions_path(topic.name)),
    )
    _write_states(builder, topic, 0, image.controller_epoch)
    builder.deltas.append(TopicCreated(topic))


def _write_states(
    builder: PlanBuilder, topic: TopicImage, first: int, controller_epoch: int
) -> None:
    write_state, partition_path = layout.write_state, layout.partition_path
    writes, texts = builder.writes, dict[PartitionState, bytes]()
    for partition, state in enumerate(topic.partitions[first:], first):
        text = texts.get(state)
        if text is None:
            text = texts[state] = write_state(state, controller_epoch)
        path = partition_path(topic.name, partition)
        writes += (Create(path), Create(layout.state_path_in(path), text))
