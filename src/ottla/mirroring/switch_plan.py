"""Whether a group can be moved over now, without leaving out or repeating a record."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from ottla.client.topic_partition import TopicPartition
from ottla.mirroring.topic_plan import TopicPlan

Offsets = Mapping[TopicPartition, int]


class SwitchPlan(NamedTuple):
    """What stands between a group and its move."""

    refused: str | None
    """Why it must not be moved, as a sentence."""
    behind: dict[TopicPartition, int]
    """The source offsets up to which has to be mirrored before, by partition at the target."""
    aside: list[str]
    """Topics of the source for which the group has offsets, and that are not meant to be
    mirrored.
    """


def plan_switch(
    commits: Offsets,
    ends: Offsets,
    plan: TopicPlan,
    out: Collection[str],
    positions: Offsets,
    *,
    prefix: str,
) -> SwitchPlan:
    """`commits`: of the group at the source; `ends`: of the mirrored ones there. `out`: topics at
    the target that are not mirrored on. `positions`: what is mirrored, by partition at the target.
    """
    names = {topic.name: name for name, topic in plan.mirrored.items()}
    behind: dict[TopicPartition, int] = {}
    aside: set[str] = set()
    refused: list[str] = []
    for each, offset in sorted(commits.items()):
        name = f"{prefix}{each.topic}"
        reason = plan.refused.get(each.topic)
        if reason is not None:
            refused.append(f"topic {each.topic} is not mirrored: {reason}")
        elif name in out:
            refused.append(f"topic {each.topic} is not mirrored on.")
        elif name in plan.deleted:
            refused.append(f"the source has no topic {each.topic} any more.")
        elif each.topic not in names or each not in ends:
            aside.add(each.topic)
        elif offset > ends[each]:
            refused.append(
                f"its offset in {each}, {offset:,}, is past the end of the source's log, "
                f"{ends[each]:,}."
            )
        else:
            there = TopicPartition(name, each.partition)
            if there not in positions or positions[there] < offset:
                behind[there] = offset
    if not refused and aside == {each.topic for each in commits}:
        refused.append("it has no offsets in topics of this mirror.")
    return SwitchPlan(refused[0] if refused else None, behind, sorted(aside))
