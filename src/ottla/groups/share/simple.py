"""`simple`, the assignor of share groups: every partition to as many members, and every member with
as many partitions, as the numbers allow, and what members have stays where it can.

With fewer members than partitions each partition has one member; with more, each has as many as
are needed for every member to get one. Members that do not all subscribe to the same topics are
assigned topic by topic. Kafka's counterparts are SimpleAssignor and its two builders, which walk
through Java's hash maps; here members and partitions come in the order in which they are given.

Where all members that could take one more partition have it already, Kafka's builders also give
nothing of the following partitions to them; here those are given out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias
from uuid import UUID

from ottla.groups.consumer.assignors.spec import (
    Assignment,
    GroupSpec,
    MemberSpec,
    Partitions,
    java_order,
)

TopicPartition: TypeAlias = tuple[UUID, int]


def assign(spec: GroupSpec, assignable: Mapping[UUID, Collection[int]]) -> Assignment:
    """The new target of each member, of assignable partitions."""
    members = list(spec.members.values())
    topics = sorted(frozenset().union(*(member.subscribed for member in members)), key=java_order)
    given: list[dict[UUID, set[int]]] = [{} for _ in members]
    if spec.is_homogeneous:
        _share(topics, assignable, list(enumerate(members)), given)
    else:
        subscribers: dict[UUID, list[tuple[int, MemberSpec]]] = {topic: [] for topic in topics}
        for number, member in enumerate(members):
            for topic in member.subscribed:
                subscribers[topic].append((number, member))
        for topic in topics:
            _share([topic], assignable, subscribers[topic], given)
    return {
        name: {topic: frozenset(numbers) for topic, numbers in its.items()}
        for name, its in zip(spec.members, given, strict=True)
    }


def _share(
    topics: Sequence[UUID],
    assignable: Mapping[UUID, Collection[int]],
    members: Sequence[tuple[int, MemberSpec]],
    given: Sequence[dict[UUID, set[int]]],
) -> None:
    """Adds to what each of these members, by its number, is given."""
    holders: dict[TopicPartition, set[int]] = {
        (topic, partition): set()
        for topic in topics
        for partition in sorted(assignable.get(topic, ()))
    }
    if not holders or not members:
        return
    count = len(members)
    sharing = -(-count // len(holders))
    total = sharing * len(holders)
    room = {}
    for rank, (number, member) in enumerate(members):
        left = -(-total * (rank + 1) // count) - -(-total * rank // count)
        room[number] = left - _keep(topics, member.assigned, number, left, sharing, holders)
    _fill(holders.values(), sharing, room)
    for (topic, partition), its in holders.items():
        for number in its:
            given[number].setdefault(topic, set()).add(partition)


def _keep(
    topics: Sequence[UUID],
    held: Partitions,
    number: int,
    room: int,
    sharing: int,
    holders: dict[TopicPartition, set[int]],
) -> int:
    """How many partitions a member keeps: not more than it has room for, and none that enough
    others have.
    """
    kept = 0
    for topic in topics if len(topics) < len(held) else sorted(held, key=java_order):
        for partition in sorted(held.get(topic, ())):
            if kept == room:
                return kept
            its = holders.get((topic, partition))
            if its is not None and len(its) < sharing:
                its.add(number)
                kept += 1
    return kept


def _fill(holders: Iterable[set[int]], sharing: int, room: dict[int, int]) -> None:
    """Members with room take partitions in turn, as long as there are any."""
    unfilled = [number for number, left in room.items() if left]
    turn = 0
    for its in holders:
        passed = 0
        while len(its) < sharing and passed < len(unfilled):
            turn %= len(unfilled)
            number = unfilled[turn]
            if number in its:
                passed += 1
                turn += 1
                continue
            passed = 0
            its.add(number)
            room[number] -= 1
            if room[number]:
                turn += 1
            else:
                del unfilled[turn]
