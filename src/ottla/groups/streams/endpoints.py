"""Which member answers interactive queries for which partitions (KIP-1071, IQ).

Kafka's EndpointToPartitionsManager.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ottla.groups.consumer.topics import Topics
from ottla.groups.streams.configured import ConfiguredSubtopology, ConfiguredTopology
from ottla.groups.streams.member import Member
from ottla.groups.streams.requests import EndpointPartitions


def endpoint_partitions(
    members: Iterable[Member], configured: ConfiguredTopology, topics: Topics
) -> tuple[EndpointPartitions, ...]:
    """Of the members that have an endpoint."""
    subtopologies = configured.subtopologies or {}
    return tuple(
        EndpointPartitions(
            member.endpoint,
            _partitions(member.assigned.active, subtopologies, topics),
            _partitions(member.assigned.standby, subtopologies, topics),
        )
        for member in members
        if member.endpoint is not None
    )


def _partitions(
    tasks: Mapping[str, Collection[int]],
    subtopologies: Mapping[str, ConfiguredSubtopology],
    topics: Topics,
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """What the tasks read. A topic or subtopology that is gone is left out: Kafka fails then.

    A topic with fewer partitions than there are tasks here gets as many as it has, as in Kafka.
    """
    found = []
    for name in sorted(tasks):
        subtopology = subtopologies.get(name)
        if subtopology is None:
            continue
        numbers = tuple(sorted(tasks[name]))
        for topic in subtopology.read_topics():
            there = topics.by_name.get(topic)
            if there is not None:
                found.append((topic, numbers[: there.partition_count]))
    return tuple(found)
