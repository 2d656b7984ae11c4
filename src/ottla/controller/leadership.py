"""Who may lead a partition: the rule for a single partition.

The first live in-sync replica in assignment order leads. Dead brokers leave the ISR, unless it
would become empty: then all stay in it, and there is no leader until one of them returns. Any of
them may lead then, because each has all committed records. In an unclean election the first live
replica leads, in sync or not, and the records that only the others had are lost.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from ottla.controller.image import NO_LEADER, ClusterImage, PartitionState, TopicImage

_NOBODY: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Brokers:
    """The facts about brokers that an election needs."""

    live: Collection[int]
    shutting_down: Collection[int] = _NOBODY
    """Live brokers that may go on leading but are not elected."""
    gone: Collection[int] = _NOBODY
    """Brokers that were away: dead now, or in a new incarnation (then in `live` too)."""
    without_disk: Collection[int] = _NOBODY
    """Returned with another data folder: their records are lost."""
    unclean: Collection[int] = _NOBODY
    """Brokers in a new incarnation that may have lost the last records of any log: the one before
    did not stop cleanly."""

    def eligible(self, broker: int) -> bool:
        """True for a broker that may be elected."""
        return broker in self.live and broker not in self.shutting_down


class Election(NamedTuple):
    """A partition has a new leader or epoch; for logs, metrics and the journey."""

    topic: str
    partition: int
    former: int
    leader: int
    leader_epoch: int
    unclean: bool
    """The leader was not in sync, or lost its disk: committed records may be lost."""


def with_leader(state: PartitionState, brokers: Brokers, *, unclean: bool) -> PartitionState:
    """The state that the partition must have with these brokers; `state` itself if nothing changes.

    The partition epoch does not change here: the writer of the state increments it.
    """
    isr = _still_in_sync(state, brokers)
    leader = state.leader if _may_stay(state, isr, brokers) else NO_LEADER
    if leader == NO_LEADER:
        leader = next((b for b in state.replicas if b in isr and brokers.eligible(b)), NO_LEADER)
        if leader == NO_LEADER and not any(b in brokers.live for b in isr):
            leader = _unclean_leader(state, isr, brokers, unclean)
            isr = (leader,) if leader != NO_LEADER else isr
        if leader != NO_LEADER:
            isr = tuple(b for b in isr if b in brokers.live)
        elif state.leader == NO_LEADER:
            return state if isr == state.isr else state._replace(isr=isr)
        return state._replace(leader=leader, leader_epoch=state.leader_epoch + 1, isr=isr)
    return state if isr == state.isr else state._replace(isr=isr)


def is_unclean(before: PartitionState, after: PartitionState, brokers: Brokers) -> bool:
    """True if the new leader may lack committed records."""
    elected = after.leader != NO_LEADER and after.leader_epoch != before.leader_epoch
    return elected and (after.leader not in before.isr or after.leader in brokers.without_disk)


def unclean_allowed(topic: TopicImage, default: bool) -> bool:
    """unclean.leader.election.enable of the topic, else of the brokers (`default`)."""
    text = topic.overrides.get("unclean.leader.election.enable")
    return default if text is None else text.strip().lower() == "true"


def all_brokers(image: ClusterImage, shutting_down: Collection[int] = ()) -> Brokers:
    """The brokers of an image, none of which has just started or stopped."""
    return Brokers(image.brokers.keys(), frozenset(shutting_down))


def _still_in_sync(state: PartitionState, brokers: Brokers) -> tuple[int, ...]:
    """The in-sync replicas that stay; empty only if every one of them lost its disk."""
    replicas = state.replicas
    kept = tuple(b for b in state.isr if b in replicas and b not in brokers.without_disk)
    here = tuple(b for b in kept if b in brokers.live and b not in brokers.gone)
    if here:
        return here
    # No in-sync replica was live all the time. One in a new incarnation has its log and may lead.
    return kept


def _may_stay(state: PartitionState, isr: tuple[int, ...], brokers: Brokers) -> bool:
    """True if the leader may go on in its epoch.

    A leader that restarted gets a new epoch, so that followers and consumers detect which records
    it lost in the restart (KIP-101, KIP-320); otherwise a consumer that was ahead skips the records
    that have those offsets now. Kafka changes the epoch at every restart. Here a partition with one
    replica keeps it over a clean stop, so that a single broker starts without a write for each
    partition: such a stop has synced every log, so no record is missing.
    """
    leader = state.leader
    stayed = leader not in brokers.gone or (
        len(state.replicas) == 1 and leader not in brokers.unclean
    )
    return leader in isr and leader in brokers.live and stayed


def _unclean_leader(
    state: PartitionState, isr: tuple[int, ...], brokers: Brokers, unclean: bool
) -> int:
    """The first live replica, preferring those that still have their log.

    A partition whose only replica lost its disk starts again, empty: there is no other copy.
    """
    eligible = [b for b in state.replicas if brokers.eligible(b)]
    if not unclean:
        alone = len(state.replicas) == 1 and not isr
        return eligible[0] if alone and eligible else NO_LEADER
    with_log = [b for b in eligible if b not in brokers.without_disk]
    return next(iter(with_log or eligible), NO_LEADER)
