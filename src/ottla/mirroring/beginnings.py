"""Where to begin with partitions, by the positions that the target has for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from ottla.client.topic_partition import TopicPartition
from ottla.mirroring.position import Position, is_same
from ottla.mirroring.topic_plan import SourceTopic


class Beginnings(NamedTuple):
    """Partitions of the target. One that is in none of these is of another topic than before: the
    plan refuses it soon.
    """

    taken: dict[TopicPartition, Position]
    """Those that go on."""
    marked: dict[TopicPartition, Position]
    """Positions to write: they do not say yet whether the partition is left out."""
    fresh: list[TopicPartition]
    """Without a position in this topic of the target."""


def beginnings(
    ids: Mapping[TopicPartition, str | None],
    positions: Mapping[TopicPartition, Position],
    mirrored: Mapping[str, SourceTopic],
    out: Collection[TopicPartition],
) -> Beginnings:
    """`ids`: of the topics at the target, by the partitions in question. `out`: those of them that
    this instance has left out.
    """
    found = Beginnings({}, {}, [])
    for each, target_id in ids.items():
        position = positions.get(each)
        if each in out:
            if position is not None and not position.is_left_out:
                found.marked[each] = position._replace(is_left_out=True)
        elif position is None or not is_same(position.origin.target_id, target_id):
            found.fresh.append(each)
        elif is_same(position.origin.topic_id, mirrored[each.topic].id):
            # What an earlier process has left out is looked at again.
            found.taken[each] = position._replace(is_left_out=False)
            if position.is_left_out:
                found.marked[each] = found.taken[each]
    return found
