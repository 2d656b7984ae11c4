"""Which member answers interactive queries for which partitions (KIP-1071, IQ).

Kafka's EndpointToPartitionsManager. It tells each member of all others, whatever that takes: 1,000
members of an application with 5,000 source topics are 5,000,000 topics in each answer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from typing import Final, TypeAlias

from ottla.groups.consumer.topics import Topics
from ottla.groups.streams.configured import ConfiguredTopology
from ottla.groups.streams.member import Member
from ottla.groups.streams.requests import EndpointPartitions
from ottla.groups.streams.tasks import Partitions

MAX_TOPICS: Final = 200_000
"""Of all members with their endpoints: more is not told. That has some 10 MB."""
_Read: TypeAlias = list[tuple[str, int]]
"""Topics, each with the number of its partitions."""


def endpoint_partitions(
    members: Collection[Member], configured: ConfiguredTopology, topics: Topics
) -> tuple[EndpointPartitions, ...] | None:
    """Of the members that have an endpoint; None if that is too much.

    Copies are standby and warm-up tasks. A topic or subtopology that is gone is left out: Kafka
    fails then. A topic has the tasks that it has partitions for.
    """
    reads: dict[str, _Read] = {
        name: [
            (topic, found.partition_count)
            for topic in subtopology.read_topics()
            if (found := topics.by_name.get(topic)) is not None
        ]
        for name, subtopology in (configured.subtopologies or {}).items()
    }
    if count_topics(members, {name: len(its) for name, its in reads.items()}) > MAX_TOPICS:
        return None
    return tuple(
        EndpointPartitions(
            member.endpoint,
            _partitions(member.assigned.active, reads),
            _partitions(_united(member.assigned.standby, member.assigned.warmup), reads),
        )
        for member in members
        if member.endpoint is not None
    )


def count_topics(members: Iterable[Member], counts: Mapping[str, int]) -> int:
    """Of all members that have an endpoint; `counts`: how many each subtopology reads."""
    return sum(
        counts.get(name, 0)
        for member in members
        if member.endpoint is not None
        for held in member.assigned
        for name in held
    )


def _partitions(
    tasks: Mapping[str, Collection[int]], reads: Mapping[str, _Read]
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """What the tasks read."""
    found = []
    for name in sorted(tasks):
        numbers = tuple(sorted(tasks[name]))
        for topic, count in reads.get(name, ()):
            read = numbers[: bisect_left(numbers, count)]
            if read:
                found.append((topic, read))
    return tuple(found)


def _united(some: Partitions, others: Partitions) -> Partitions:
    if not others:
        return some
    empty: frozenset[int] = frozenset()
    return {
        name: some.get(name, empty) | others.get(name, empty)
        for name in some.keys() | others.keys()
    }
