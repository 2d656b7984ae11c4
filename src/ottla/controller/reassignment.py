"""Moving partitions to other brokers (KIP-455): AlterPartitionReassignments and its listing.

A reassignment has three stages, as in Kafka's ReplicationControlManager:

    1. the new replicas are put before the old ones, recorded as adding and removing
    2. the new ones copy, until all of them are in sync
    3. the removing ones are dropped; if one of them led, another replica leads

If there is nothing to copy, stage 3 follows at once.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence

from ottla.config.broker import BrokerConfig
from ottla.controller.image import NO_LEADER, ClusterImage, PartitionState, TopicImage
from ottla.controller.leadership import Brokers, all_brokers, unclean_allowed, with_leader
from ottla.controller.partition_changes import PartitionChanges
from ottla.controller.placement import check_assignment
from ottla.controller.plan import DONE, Outcome, PlanBuilder, Step, Steps, refused
from ottla.protocol.errors import ApiError, ErrorCode

Target = tuple[int, ...] | None
"""The target replicas of a partition; None cancels its reassignment."""


def alter_reassignments(
    wanted: Mapping[str, Mapping[int, Target]],
    image: ClusterImage,
    config: BrokerConfig,
    *,
    shutting_down: Collection[int] = (),
    allow_factor_change: bool = True,
) -> Steps[dict[str, dict[int, Outcome]]]:
    """Begin or cancel the reassignment of each partition; the other outcomes give the reason.

    With `allow_factor_change` False a different number of replicas is refused (KIP-860).
    """
    builder, step = PlanBuilder(), Step()
    changes = PartitionChanges(image)
    brokers = all_brokers(image, shutting_down)
    reply: dict[str, dict[int, Outcome]] = {}
    for name, partitions in wanted.items():
        topic = image.topic(name)
        outcomes = reply.setdefault(name, {})
        if step.is_full(5):
            yield
        for index, target in partitions.items():
            # Of a target with hundreds of thousands of replicas, each costs.
            if step.is_full(20 + (0 if target is None else 2 * len(target))):
                yield
            try:
                known, state = _find(name, topic, index)
                unclean = unclean_allowed(known, config.unclean_leader_election_enable)
                if target is None:
                    after = _cancelled(known, index, state, brokers, unclean=unclean)
                else:
                    if not allow_factor_change:
                        _check_factor(state, target)
                    after = _reassigned(state, target, image)
                    _check_revert(known, index, state, after, unclean=unclean)
                    after = repaired(_without_dropped(state, after), brokers, unclean=unclean)
            except ApiError as error:
                outcomes[index] = refused(error)
                continue
            outcomes[index] = DONE
            if after != state:
                changes.put(known, index, after)
    yield from changes.add_in_steps(builder)
    return builder.plan(reply)


def list_reassignments(
    wanted: Mapping[str, Sequence[int]] | None, image: ClusterImage
) -> Generator[None, None, dict[str, dict[int, PartitionState]]]:
    """The reassigning partitions among those named, or among all (None); others are left out. In
    steps (see `plan`), between which the image may change.
    """
    found: dict[str, dict[int, PartitionState]] = {}
    step = Step()
    for name in list(image.topics) if wanted is None else wanted:
        if step.is_full(5):
            yield
        topic = image.topic(name)
        if topic is None:
            continue
        count = len(topic.partitions)
        for index in range(count) if wanted is None else wanted[name]:
            if step.is_full(1):
                yield
            if 0 <= index < count and topic.partitions[index].is_reassigning:
                found.setdefault(name, {})[index] = topic.partitions[index]
    return found


def repaired(state: PartitionState, brokers: Brokers, *, unclean: bool) -> PartitionState:
    """The state with the leader that it should have; completes the reassignment if possible."""
    state = with_leader(state, brokers, unclean=unclean)
    return _completed(state, brokers) if state.is_reassigning else state


def _completed(state: PartitionState, brokers: Brokers) -> PartitionState:
    """Stage 3 if all added replicas are in sync; else `state` itself."""
    replicas = tuple(b for b in state.replicas if b not in state.removing)
    isr = tuple(b for b in state.isr if b not in state.removing)
    if not isr or not replicas or not set(state.adding) <= set(isr):
        return state
    # If the replication factor shrinks, all remaining replicas must be in sync, or a partition with
    # two in-sync replicas would be left with one.
    if len(state.adding) < len(state.removing) and not set(replicas) <= set(isr):
        return state
    after = with_leader(
        state._replace(replicas=replicas, isr=isr, adding=(), removing=()), brokers, unclean=False
    )
    if after.leader == NO_LEADER:
        return state
    # Dropped replicas must stop following: a new leader epoch makes them notice (KRaft's
    # PartitionChangeBuilder.triggerLeaderEpochBumpForReplicaReassignmentIfNeeded).
    if state.removing and after.leader_epoch == state.leader_epoch:
        after = after._replace(leader_epoch=state.leader_epoch + 1)
    return after


def _find(name: str, topic: TopicImage | None, index: int) -> tuple[TopicImage, PartitionState]:
    if topic is None:
        raise ApiError(
            ErrorCode.unknown_topic_or_partition, f"Unable to find a topic named {name}."
        )
    if not 0 <= index < len(topic.partitions):
        raise ApiError(
            ErrorCode.unknown_topic_or_partition, f"Unable to find partition {name}:{index}."
        )
    return topic, topic.partitions[index]


def _cancelled(
    topic: TopicImage, index: int, state: PartitionState, brokers: Brokers, *, unclean: bool
) -> PartitionState:
    if not state.is_reassigning:
        raise ApiError(
            ErrorCode.no_reassignment_in_progress, "No partition reassignment is in progress."
        )
    after = state._replace(replicas=_origin(state), adding=(), removing=())
    _check_revert(topic, index, state, after, unclean=unclean)
    return with_leader(_without_dropped(state, after), brokers, unclean=unclean)


def _reassigned(
    state: PartitionState, target: tuple[int, ...], image: ClusterImage
) -> PartitionState:
    """Stage 1. Replicas that only an earlier reassignment was adding are dropped.

    A dead broker may stay a replica, but cannot become one.
    """
    check_assignment(target, {*image.brokers, *state.replicas})
    origin = _origin(state)
    removing = tuple(b for b in sorted(origin) if b not in target)
    adding = tuple(b for b in sorted(target) if b not in origin)
    return state._replace(replicas=target + removing, adding=adding, removing=removing)


def _origin(state: PartitionState) -> tuple[int, ...]:
    """The replicas before the present reassignment."""
    return tuple(b for b in state.replicas if b not in state.adding)


def _without_dropped(before: PartitionState, after: PartitionState) -> PartitionState:
    """Dropped replicas leave the ISR; if none is left in it, the first replica is.

    `_check_revert` has made sure that this is allowed.
    """
    dropped = set(before.replicas) - set(after.replicas)
    if not dropped:
        return after
    isr = tuple(b for b in before.isr if b not in dropped)
    if not isr and before.isr:
        isr = after.replicas[:1]
    return after._replace(isr=isr, leader_epoch=before.leader_epoch + 1)


def _check_revert(
    topic: TopicImage,
    index: int,
    before: PartitionState,
    after: PartitionState,
    *,
    unclean: bool,
) -> None:
    """A cancelled reassignment must not drop the last in-sync replica (KIP-455)."""
    if unclean or not before.isr or set(before.isr) & set(after.replicas):
        return
    raise ApiError(
        ErrorCode.invalid_replica_assignment,
        f"Unable to revert partition assignment for {topic.name}:{index} because it would "
        "require an unclean leader election.",
    )


def _check_factor(state: PartitionState, target: tuple[int, ...]) -> None:
    present = len(set(state.replicas) - set(state.removing))
    if present != len(target):
        raise ApiError(
            ErrorCode.invalid_replication_factor,
            f"The replication factor is changed from {present} to {len(target)}",
        )
