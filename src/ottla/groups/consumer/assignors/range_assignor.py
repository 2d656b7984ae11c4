"""`range`: each topic's partitions in contiguous ranges, one a subscriber.

Static members come first, in the order of their instance ids, then the others in the order of their
member ids, so that a static member keeps its range when it comes back under another id. The first
subscribers get the partitions that are left over. Topics with equally many partitions and the same
subscribers are thus partitioned alike. Kafka's counterpart is RangeAssignor.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from ottla.groups.consumer.assignors.spec import Assignment, GroupSpec, Partitions


@dataclass(slots=True)
class _Topic:
    """How far a topic is handed out."""

    partition_count: int
    subscriber_count: int = 0
    turn: int = 0
    """How many of its subscribers have had their range."""
    next_partition: int = 0

    def next_range(self) -> range:
        quota, extras = divmod(self.partition_count, self.subscriber_count)
        start = self.next_partition
        self.next_partition = start + quota + (self.turn < extras)
        self.turn += 1
        return range(start, self.next_partition)


def assign(spec: GroupSpec) -> Assignment:
    """The ranges of each member; raises AssignorError for an unknown topic."""
    topics: dict[UUID, _Topic] = {}
    for member in spec.members.values():
        for topic in member.subscribed:
            if topic not in topics:
                topics[topic] = _Topic(spec.partition_count(topic))
            topics[topic].subscriber_count += 1
    assignment: Assignment = {}
    for member_id in _sorted_ids(spec):
        ranges: dict[UUID, frozenset[int]] = {}
        for topic in spec.members[member_id].subscribed:
            partitions = frozenset(topics[topic].next_range())
            if partitions:
                ranges[topic] = partitions
        target: Partitions = ranges
        assignment[member_id] = target
    return assignment


def _sorted_ids(spec: GroupSpec) -> list[str]:
    def order(member_id: str) -> tuple[bool, bytes]:
        instance_id = spec.members[member_id].instance_id
        # Java compares strings by UTF-16 code units.
        key = member_id if instance_id is None else instance_id
        return instance_id is None, key.encode("utf-16-be")

    return sorted(spec.members, key=order)
