"""Groups to be assigned, in short: topics are numbers."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from ottla.groups.consumer.assignors.spec import Assignment, GroupSpec, MemberSpec

TOPICS = {number: UUID(int=number) for number in range(1, 7)}


def member(
    topics: Iterable[int],
    held: dict[int, set[int]] | None = None,
    instance: str | None = None,
) -> MemberSpec:
    return MemberSpec(
        frozenset(TOPICS[topic] for topic in topics),
        {TOPICS[topic]: frozenset(numbers) for topic, numbers in (held or {}).items()},
        instance,
    )


def group(counts: dict[int, int], **members: MemberSpec) -> GroupSpec:
    subscriptions = {each.subscribed for each in members.values()}
    return GroupSpec(
        members,
        {TOPICS[topic]: count for topic, count in counts.items()},
        len(subscriptions) <= 1,
    )


def numbers_of(assignment: Assignment) -> dict[str, dict[int, set[int]]]:
    return {
        member_id: {topic.int: set(partitions) for topic, partitions in target.items()}
        for member_id, target in assignment.items()
    }
