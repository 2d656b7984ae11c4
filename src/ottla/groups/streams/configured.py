"""A topology beside the topics of the cluster: how many tasks there are, and what is missing.

Kafka's InternalTopicManager and ConfiguredTopology.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from ottla.groups.consumer.topics import Topics
from ottla.groups.streams.partition_counts import (
    ConfigurationError,
    PartitionCounts,
    decide_partition_counts,
    incorrectly_partitioned,
)
from ottla.groups.streams.status import Status, StatusCode
from ottla.groups.streams.topology import Subtopology, TopicInfo, Topology

MAX_NAMED: Final = 3
"""Topics that a status names."""


class ConfiguredSubtopology(NamedTuple):
    """A subtopology with all numbers decided."""

    task_count: int
    source_topics: frozenset[str]
    repartition_sink_topics: frozenset[str]
    repartition_source_topics: tuple[TopicInfo, ...]
    changelog_topics: tuple[TopicInfo, ...]

    @property
    def is_stateful(self) -> bool:
        return bool(self.changelog_topics)

    def read_topics(self) -> list[str]:
        """Sorted."""
        names = {topic.name for topic in self.repartition_source_topics}
        return sorted(self.source_topics | names)


class ConfiguredTopology(NamedTuple):
    """The topology as it can run now, or why it cannot."""

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    """By id, sorted; None where topics do not fit or sources are missing."""
    missing_topics: tuple[TopicInfo, ...]
    """Internal topics to create."""
    problem: Status | None

    @property
    def is_ready(self) -> bool:
        """All topics are there, so there can be tasks."""
        return self.problem is None

    def task_count(self) -> int:
        """Without standby tasks."""
        return sum(each.task_count for each in (self.subtopologies or {}).values())


def configure(topology: Topology, topics: Topics) -> ConfiguredTopology:
    """Raises ApiError (STREAMS_INVALID_TOPOLOGY) for a topology that fits no topics."""
    topics = topics.only(topology.required_topics())
    try:
        _check_sources(topology, topics)
        counts = decide_partition_counts(topology, topics)
        subtopologies = {each.id: _configured(each, counts) for each in topology.subtopologies}
        missing = _missing(subtopologies, topics)
    except ConfigurationError as error:
        return ConfiguredTopology(topology.epoch, None, (), error.status)
    problem = None
    if missing:
        names = summary([topic.name for topic in missing])
        problem = Status(
            StatusCode.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {names}"
        )
    return ConfiguredTopology(topology.epoch, subtopologies, missing, problem)


def _check_sources(topology: Topology, topics: Topics) -> None:
    missing = {
        name
        for subtopology in topology.subtopologies
        for name in subtopology.source_topics
        if name not in topics.by_name
    }
    if missing:
        detail = f"Source topics {summary(sorted(missing))} are missing."
        raise ConfigurationError(Status(StatusCode.MISSING_SOURCE_TOPICS, detail))


def _configured(subtopology: Subtopology, counts: PartitionCounts) -> ConfiguredSubtopology:
    return ConfiguredSubtopology(
        counts.most_read(subtopology),
        frozenset(subtopology.source_topics),
        frozenset(subtopology.repartition_sink_topics),
        _decided(subtopology.repartition_source_topics, counts),
        _decided(subtopology.changelog_topics, counts),
    )


def _decided(infos: Collection[TopicInfo], counts: PartitionCounts) -> tuple[TopicInfo, ...]:
    """Sorted by name."""
    found = [
        info._replace(partitions=info.partitions or counts.decided[info.name]) for info in infos
    ]
    return tuple(sorted(found))


def _missing(
    subtopologies: Mapping[str, ConfiguredSubtopology], topics: Topics
) -> tuple[TopicInfo, ...]:
    """Raises ConfigurationError where one exists with another number of partitions."""
    wanted = {
        info.name: info
        for subtopology in subtopologies.values()
        for info in (*subtopology.repartition_source_topics, *subtopology.changelog_topics)
    }
    missing = []
    for name in sorted(wanted):
        found = topics.by_name.get(name)
        if found is None:
            missing.append(wanted[name])
        elif found.partition_count != wanted[name].partitions:
            raise incorrectly_partitioned(
                f"Existing topic {name} has different number of partitions: expected"
                f" {wanted[name].partitions}, found {found.partition_count}"
            )
    return tuple(missing)


def summary(names: Collection[str]) -> str:
    """The first few of them, and how many more there are."""
    named = ", ".join(list(names)[:MAX_NAMED])
    more = len(names) - MAX_NAMED
    return f"{named} and {more} additional topics" if more > 0 else named
