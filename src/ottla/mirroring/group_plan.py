"""Which offsets of groups to set at the target.

As MirrorMaker 2 (KIP-545), a group is only moved while it has no members there, and never back;
unless the offset that it has is the one that this mirror set, so that a reset at the source is
followed too.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.client.topic_partition import TopicPartition

Offsets = Mapping[TopicPartition, int]


def offsets_to_set(
    translated: Offsets, there: Offsets, last_set: Offsets
) -> dict[TopicPartition, int]:
    """By partition at the target. `there`: what the group has committed there; `last_set`: what
    this mirror has set since it runs.
    """
    return {
        each: offset
        for each, offset in translated.items()
        if may_set(offset, there.get(each), last_set.get(each))
    }


def may_set(offset: int, there: int | None, last_set: int | None) -> bool:
    """Whether the group's offset may become this one."""
    if there is None:
        return True
    if last_set is None:
        return offset > there
    # Another offset than ours: the group has read at the target itself.
    return there == last_set and offset != there
