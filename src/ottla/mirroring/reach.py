"""Whether a mirror has come to an end that it was given, whichever instance mirrors what."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import NamedTuple

from ottla.client.topic_partition import TopicPartition
from ottla.mirroring.position import Position


class Reach(NamedTuple):
    """What is not mirrored to the end."""

    behind: list[TopicPartition]
    left_out: list[str]
    """Topics that an instance does not mirror on."""
    unplanned: list[str]
    """Topics that are not mirrored any more."""


def reach(
    until: Mapping[TopicPartition, int],
    there: Mapping[TopicPartition, Position],
    mirrored: Container[str],
) -> Reach:
    """`until`: offsets of the source by partition at the target; `there`: what all instances have
    committed; `mirrored`: topics at the target.
    """
    behind: list[TopicPartition] = []
    left_out: set[str] = set()
    unplanned: set[str] = set()
    for each, end in sorted(until.items()):
        position = there.get(each)
        if position is not None and position.offset >= end:
            continue
        if each.topic not in mirrored:
            unplanned.add(each.topic)
        elif position is not None and position.is_left_out:
            left_out.add(each.topic)
        else:
            behind.append(each)
    return Reach(behind, sorted(left_out), sorted(unplanned))
