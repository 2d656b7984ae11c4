"""`uniform` where all members subscribe to the same topics.

Each member has a quota: partitions divided by members. The remainder is one extra partition each
for members that have it already, else for the last ones. What a member holds beyond its quota is
taken away; what nobody holds goes to those below their quota, in order. Balance comes before
stickiness. Kafka's counterpart is UniformHomogeneousAssignmentBuilder (without the racks that it
had before 4.0).
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from ottla.groups.consumer.assignors.spec import (
    Assignment,
    GroupSpec,
    Partitions,
    java_order,
)


@dataclass(slots=True)
class _Unfilled:
    """A member that can take more partitions: its quota allows it, or there are extra ones."""

    member_id: str
    quota_left: int


class _Builder:
    def __init__(self, spec: GroupSpec, topics: frozenset[UUID]) -> None:
        self.spec = spec
        self.topics = topics
        self.alone = next(iter(topics)) if len(topics) == 1 else None
        """The topic, if there is but one, as in nearly all groups: it is compared by
        identity, as Python computes the hash of an id each time it is looked up.
        """
        self.unassigned: list[tuple[UUID, int]] = []
        self.unfilled: list[_Unfilled] = []
        self.assignment: Assignment = {}
        self.counts: list[int | None] = []
        """How many each member holds; None if it holds some of a topic that it does not read."""
        total = self._find_unassigned()
        self.quota, self.extras = divmod(total, len(spec.members))
        """`extras`: how many members may still have one partition more than the quota."""

    def _find_unassigned(self) -> int:
        held: dict[UUID, set[int]] = {topic: set() for topic in self.topics}
        alone = self.alone
        of_alone = set() if alone is None else held[alone]
        for member in self.spec.members.values():
            number: int | None = 0
            for topic, partitions in member.assigned.items():
                if topic is alone:
                    of_alone.update(partitions)
                elif topic in held:
                    held[topic].update(partitions)
                else:
                    number = None
                if number is not None:
                    number += len(partitions)
            self.counts.append(number)
        total = 0
        for topic in sorted(self.topics, key=java_order):
            count = self.spec.partition_count(topic)
            taken = held[topic]
            self.unassigned += [(topic, each) for each in range(count) if each not in taken]
            total += count
        return total

    def keep(self, member_id: str, held: Partitions, count: int | None) -> None:
        """The member keeps what it holds, as far as its quota goes."""
        has_extra = self.extras > 0
        quota = self.quota + has_extra
        kept = held
        if count is not None and count <= quota:
            quota -= count
        else:
            kept, quota = self._within(kept, quota)
        if has_extra and quota > 0:
            # It does not fill it now, so another one may have the extra partition.
            quota -= 1
            has_extra = False
        if has_extra:
            self.extras -= 1
        if quota > 0 or (self.extras > 0 and not has_extra):
            self.unfilled.append(_Unfilled(member_id, quota))
        self.assignment[member_id] = kept

    def _within(self, held: Partitions, quota: int) -> tuple[Partitions, int]:
        """What of it is subscribed to and within the quota, and what is left of the quota."""
        kept: dict[UUID, frozenset[int]] = {}
        for topic, partitions in held.items():
            if topic not in self.topics:
                continue
            ordered = sorted(partitions)
            self.unassigned += [(topic, each) for each in ordered[quota:]]
            if ordered[:quota]:
                kept[topic] = frozenset(ordered[:quota])
            quota = max(0, quota - len(ordered))
        return kept, quota

    def fill(self) -> None:
        """What nobody holds goes to the members with quota left; the last ones get the extras."""
        for unfilled in reversed(self.unfilled):
            if self.extras > 0:
                self.extras -= 1
                unfilled.quota_left += 1
        position = 0
        for member_id, quota in ((each.member_id, each.quota_left) for each in self.unfilled):
            given = self.unassigned[position : position + quota]
            position += len(given)
            if given:
                self.assignment[member_id] = _joined(self.assignment[member_id], given)
        assert position == len(self.unassigned), "the quotas add up to all partitions"


def assign(spec: GroupSpec) -> Assignment:
    """The new target of each member; raises AssignorError for an unknown topic."""
    topics = next(iter(spec.members.values())).subscribed
    if not topics:
        return {}
    builder = _Builder(spec, topics)
    for (member_id, member), count in zip(spec.members.items(), builder.counts, strict=True):
        builder.keep(member_id, member.assigned, count)
    builder.fill()
    return builder.assignment


def _joined(kept: Partitions, given: list[tuple[UUID, int]]) -> Partitions:
    joined = {topic: set(partitions) for topic, partitions in kept.items()}
    for topic, partition in given:
        joined.setdefault(topic, set()).add(partition)
    return {topic: frozenset(partitions) for topic, partitions in joined.items()}
