"""`uniform` where members subscribe to different topics.

Members keep what they hold of the topics that they subscribe to. What nobody holds goes, topic by
topic, to the subscribers with the least; then partitions move from the subscribers with the most to
those with the least, topic by topic, until a whole round has moved none. Balance comes before
stickiness. Kafka's counterpart is UniformHeterogeneousAssignmentBuilder.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from ottla.groups.consumer.assignors.load import Load
from ottla.groups.consumer.assignors.spec import Assignment, GroupSpec, java_order

MAX_ROUNDS: Final = 16
"""Over all topics, to balance them; each round halves the imbalance or better."""
_NOBODY: Final = -1


class _Builder:
    """Members are numbered in the order of the spec."""

    def __init__(self, spec: GroupSpec) -> None:
        self.spec = spec
        self.subscribers: dict[UUID, list[int]] = {}
        self.sizes = [0] * len(spec.members)
        for index, member in enumerate(spec.members.values()):
            for topic in member.subscribed:
                self.subscribers.setdefault(topic, []).append(index)
        self.owners = {topic: [_NOBODY] * spec.partition_count(topic) for topic in self.subscribers}
        self.topics = sorted(self.subscribers, key=self._topic_order)

    def _topic_order(self, topic: UUID) -> tuple[float, int, tuple[int, int]]:
        """Most partitions a subscriber first, then fewest subscribers, then by id."""
        subscriber_count = len(self.subscribers[topic])
        return -len(self.owners[topic]) / subscriber_count, subscriber_count, java_order(topic)

    def keep(self) -> None:
        for index, member in enumerate(self.spec.members.values()):
            for topic, partitions in member.assigned.items():
                if topic in member.subscribed:
                    self.sizes[index] += len(partitions)
                    for partition in partitions:
                        self.owners[topic][partition] = index

    def fill(self) -> None:
        for topic in self.topics:
            owners = self.owners[topic]
            unassigned = [each for each, owner in enumerate(owners) if owner == _NOBODY]
            if not unassigned:
                continue
            load = Load(self.subscribers[topic], self.sizes)
            for partition in unassigned:
                self._move(owners, partition, load.next_least())

    def balance(self) -> None:
        topics = [topic for topic in self.topics if len(self.subscribers[topic]) >= 2]
        last_changed = -1
        for _ in range(MAX_ROUNDS):
            for index, topic in enumerate(topics):
                if index == last_changed:
                    return
                if self._balance_topic(topic) or last_changed == -1:
                    last_changed = index

    def _balance_topic(self, topic: UUID) -> bool:
        """Whether any partition of the topic moved."""
        load = Load(self.subscribers[topic], self.sizes)
        if load.imbalance <= 1:
            return False
        owners = self.owners[topic]
        to_give: dict[int, list[int]] = {}
        for partition, owner in enumerate(owners):
            to_give.setdefault(owner, []).append(partition)
        has_moved = False
        while not load.is_balanced:
            most = load.next_most()
            while most is not None and not to_give.get(most):
                load.exclude_most()
                most = load.next_most()
            if most is None:
                break
            partition = to_give[most].pop()
            least = load.next_least()
            if load.is_balanced:
                break
            self._move(owners, partition, least)
            has_moved = True
        return has_moved

    def _move(self, owners: list[int], partition: int, member: int) -> None:
        if owners[partition] != _NOBODY:
            self.sizes[owners[partition]] -= 1
        owners[partition] = member
        self.sizes[member] += 1

    def assignment(self) -> Assignment:
        targets: list[dict[UUID, set[int]]] = [{} for _ in self.sizes]
        for topic, owners in self.owners.items():
            for partition, owner in enumerate(owners):
                targets[owner].setdefault(topic, set()).add(partition)
        return {
            member_id: {topic: frozenset(partitions) for topic, partitions in target.items()}
            for member_id, target in zip(self.spec.members, targets, strict=True)
        }


def assign(spec: GroupSpec) -> Assignment:
    """The new target of each member; raises AssignorError for an unknown topic."""
    builder = _Builder(spec)
    if not builder.topics:
        return {}
    builder.keep()
    builder.fill()
    builder.balance()
    return builder.assignment()
