"""Which leaders a metadata delta elects, and why: seen from the image before it, by any broker."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import Enum
from typing import NamedTuple

from ottla.controller.image import (
    NO_LEADER,
    ClusterImage,
    MetadataDelta,
    PartitionsChanged,
    PartitionState,
)


class Why(Enum):
    """Why a partition has a new leader or leader epoch. Of several reasons the first counts."""

    UNCLEAN = "unclean"
    """The new leader was not in sync: what only the others had is lost."""
    RETURNED = "returned"
    """The partition had no leader, and a replica that may lead has come back."""
    OFFLINE = "offline"
    """Nobody may lead it now."""
    REMOVED = "removed"
    """The former leader holds no replica any more."""
    DOWN = "down"
    """The former leader is not live."""
    RESTARTED = "restarted"
    """The former leader is another process than before."""
    STOPS = "stops"
    """The former leader has asked to stop."""
    PREFERRED = "preferred"
    """The first replica leads again, in balance or because somebody asked."""
    MOVED = "moved"
    """The former leader is live; somebody asked, or it had to stop."""


class Elected(NamedTuple):
    """`former` and `leader`: -1 for none."""

    topic: str
    partition: int
    former: int
    leader: int
    leader_epoch: int
    why: Why


def elected(
    image: ClusterImage,
    delta: MetadataDelta,
    *,
    stopping: Collection[int] = (),
    restarted: Collection[int] = (),
) -> Iterator[Elected]:
    """The elections of a delta that is not in the image yet. `stopping` and `restarted`: brokers
    that have asked to stop, and those of whom another process has just come.
    """
    if not isinstance(delta, PartitionsChanged):
        return
    known = image.topics.get(delta.topic.name)
    if known is None:
        return
    for number in delta.partitions:
        before, after = known.partitions[number], delta.topic.partitions[number]
        if before.leader_epoch == after.leader_epoch and before.leader == after.leader:
            continue
        why = _why(before, after, image, stopping, restarted)
        yield Elected(
            delta.topic.name, number, before.leader, after.leader, after.leader_epoch, why
        )


def _why(
    before: PartitionState,
    after: PartitionState,
    image: ClusterImage,
    stopping: Collection[int],
    restarted: Collection[int],
) -> Why:
    if after.leader == NO_LEADER:
        return Why.OFFLINE
    if after.leader not in before.isr:
        return Why.UNCLEAN
    if before.leader == NO_LEADER:
        return Why.RETURNED
    if before.leader not in after.replicas:
        return Why.REMOVED
    if before.leader not in image.brokers:
        return Why.DOWN
    if before.leader in restarted:
        return Why.RESTARTED
    if before.leader in stopping:
        return Why.STOPS
    if after.leader == after.replicas[0] and after.leader != before.leader:
        return Why.PREFERRED
    return Why.MOVED
