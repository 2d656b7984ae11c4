"""Who may lead a partition: the rule for one partition, without looking at any other.

The first live in-sync replica in assignment order leads. Brokers that are gone leave the in-sync
replicas, except where none would be left: then all stay, nobody leads, and any of them may when it
is back, for each of them has all that was committed. With an unclean election the first live
replica leads, in sync or not, and what only the others had is lost.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from ottla.controller.image import NO_LEADER, ClusterImage, PartitionState, TopicImage

_NOBODY: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Brokers:
    """What matters of the brokers to an election."""

    live: Collection[int]
    shutting_down: Collection[int] = _NOBODY
    """Alive, may go on leading, are not chosen."""
    gone: Collection[int] = _NOBODY
    """Were away: dead now, or in a new life (then in `live` too)."""
    without_disk: Collection[int] = _NOBODY
    """Came back with another data folder: what they had is lost."""

    def eligible(self, broker: int) -> bool:
        """True for a broker that may be chosen to lead."""
        return broker in self.live and broker not in self.shutting_down


class Election(NamedTuple):
    """A partition's leader is another, or in a new epoch; for logs, metrics and the journey."""

    topic: str
    partition: int
    former: int
    leader: int
    leader_epoch: int
    unclean: bool
    """The leader was not in sync, or lost its disk: committed records may be lost."""


def with_leader(state: PartitionState, brokers: Brokers, *, unclean: bool) -> PartitionState:
    """The state as it must be with these brokers; `state` itself where nothing is to change.

    The partition epoch stays as it is: whoever writes the state counts it up.
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
    """True when the new leader does not have all that was committed."""
    elected = after.leader != NO_LEADER and after.leader_epoch != before.leader_epoch
    return elected and (after.leader not in before.isr or after.leader in brokers.without_disk)


def unclean_allowed(topic: TopicImage, default: bool) -> bool:
    """unclean.leader.election.enable of the topic, or else of the brokers (`default`)."""
    text = topic.overrides.get("unclean.leader.election.enable")
    return default if text is None else text.strip().lower() == "true"


def all_brokers(image: ClusterImage, shutting_down: Collection[int] = ()) -> Brokers:
    """The brokers of an image, where none has just come or gone."""
    return Brokers(image.brokers.keys(), frozenset(shutting_down))


def _still_in_sync(state: PartitionState, brokers: Brokers) -> tuple[int, ...]:
    """Who of the in-sync replicas stays one; may be empty where every disk was lost."""
    replicas = state.replicas
    kept = tuple(b for b in state.isr if b in replicas and b not in brokers.without_disk)
    here = tuple(b for b in kept if b in brokers.live and b not in brokers.gone)
    if here:
        return here
    # Nobody was here all the time. One in a new life has its log, and may lead again.
    return kept


def _may_stay(state: PartitionState, isr: tuple[int, ...], brokers: Brokers) -> bool:
    """True where the leader may go on in its epoch.

    One that began anew gets a new epoch, so that what it lost by it can be told apart. With one
    replica there is nobody to tell it from, and a broker alone starts without a write a partition.
    """
    leader = state.leader
    stayed = leader not in brokers.gone or len(state.replicas) == 1
    return leader in isr and leader in brokers.live and stayed


def _unclean_leader(
    state: PartitionState, isr: tuple[int, ...], brokers: Brokers, unclean: bool
) -> int:
    """The first live replica, those with a log before those that lost it.

    A partition with one replica that lost its disk begins anew, empty: nobody else ever had it.
    """
    eligible = [b for b in state.replicas if brokers.eligible(b)]
    if not unclean:
        alone = len(state.replicas) == 1 and not isr
        return eligible[0] if alone and eligible else NO_LEADER
    with_log = [b for b in eligible if b not in brokers.without_disk]
    return next(iter(with_log or eligible), NO_LEADER)
