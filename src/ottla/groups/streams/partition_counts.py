"""How many partitions the internal topics of a topology must have.

1. A repartition topic: its fixed number, or the most that the subtopologies writing to it read.
2. Topics that must be partitioned alike get the same number; sources that differ are an error.
3. A changelog: as many as the most that its subtopology reads.

Kafka's RepartitionTopics, CopartitionedTopicsEnforcer and ChangelogTopics.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from heapq import heappop, heappush
from typing import TypeAlias

from ottla.groups.consumer.topics import Topics
from ottla.groups.streams.status import Status, StatusCode
from ottla.groups.streams.topology import CopartitionGroup, Subtopology, Topology, invalid

Counts: TypeAlias = dict[str, int]


class ConfigurationError(Exception):
    """The topics of the cluster do not fit the topology (Kafka's TopicConfigurationException)."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.detail)
        self.status = status


def incorrectly_partitioned(detail: str) -> ConfigurationError:
    return ConfigurationError(Status(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail))


class PartitionCounts:
    """Of the topics that exist, and of those that were decided."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self.decided: Counts = {}

    def get(self, name: str) -> int | None:
        """None: not known yet."""
        topic = self._topics.by_name.get(name)
        return self.decided.get(name) if topic is None else topic.partition_count

    def most_read(self, subtopology: Subtopology) -> int:
        """The most that it reads: it has as many tasks. Raises ApiError."""
        counts = [self.get(name) for name in subtopology.read_topics()]
        known = [count for count in counts if count is not None]
        assert len(known) == len(counts), "sources exist, repartition topics are decided"
        if not known:
            raise invalid(f"No source topics found for subtopology {subtopology.id}")
        return max(known)


def decide_partition_counts(topology: Topology, topics: Topics) -> PartitionCounts:
    """For a topology whose source topics exist; raises ConfigurationError, and ApiError
    (STREAMS_INVALID_TOPOLOGY) where the topology itself has no solution.
    """
    counts = PartitionCounts(topics)
    counts.decided.update(_repartition_counts(topology, counts))
    fixed = {
        topic.name
        for subtopology in topology.subtopologies
        for topic in subtopology.repartition_source_topics
        if topic.partitions
    }
    flexible = {
        topic.name
        for subtopology in topology.subtopologies
        for topic in subtopology.repartition_source_topics
        if not topic.partitions
    }
    # Of all fixed topics, once a group has needed it: it does not change.
    fixed_count: list[int] = []
    for subtopology in topology.subtopologies:
        for group in subtopology.copartition_groups:
            names = _names(subtopology, group)
            if names:
                counts.decided.update(_copartitioned(names, fixed, flexible, counts, fixed_count))
    for subtopology in topology.subtopologies:
        most = counts.most_read(subtopology)
        counts.decided.update((topic.name, most) for topic in subtopology.changelog_topics)
    return counts


def _repartition_counts(topology: Topology, counts: PartitionCounts) -> Counts:
    found: Counts = {
        topic.name: topic.partitions
        for subtopology in topology.subtopologies
        for topic in subtopology.repartition_source_topics
        if topic.partitions
    }
    # Kafka looks at all subtopologies in rounds, in their order, until each sink has a number. A
    # chain in the wrong order has as many rounds as links, so here one that knows nothing of what
    # it reads waits for that, and is looked at in the round in which Kafka would find it.
    waiting: dict[str, list[int]] = {}
    due = [(0, position) for position in range(len(topology.subtopologies))]
    while due:
        round_, position = heappop(due)
        subtopology = topology.subtopologies[position]
        unknown = [name for name in subtopology.repartition_sink_topics if name not in found]
        count = _most_known(subtopology, found, counts) if unknown else None
        for name in unknown:
            if count is None:
                for topic in subtopology.repartition_source_topics:
                    waiting.setdefault(topic.name, []).append(position)
                break
            found[name] = count
            for other in waiting.pop(name, ()):
                heappush(due, (round_ if other > position else round_ + 1, other))
    for subtopology in topology.subtopologies:
        if any(name not in found for name in subtopology.repartition_sink_topics):
            raise invalid(
                "Failed to compute number of partitions for all repartition topics. There may be"
                " loops in the topology that cannot be resolved."
            )
    for subtopology in topology.subtopologies:
        if any(topic.name not in found for topic in subtopology.repartition_source_topics):
            raise invalid(
                "Failed to compute number of partitions for all repartition topics, because a"
                " repartition source topic is never used as a sink topic."
            )
    return found


def _most_known(subtopology: Subtopology, found: Counts, counts: PartitionCounts) -> int | None:
    """What it writes to gets as many partitions as the most that it reads, as far as known."""
    known = [found.get(topic.name) for topic in subtopology.repartition_source_topics]
    known += [counts.get(name) for name in subtopology.source_topics]
    return max((count for count in known if count is not None), default=None)


def _names(subtopology: Subtopology, group: CopartitionGroup) -> set[str]:
    sources = {subtopology.source_topics[position] for position in group.source_topics}
    return sources | {
        subtopology.repartition_source_topics[position].name
        for position in group.repartition_source_topics
    }


def _copartitioned(
    names: Collection[str],
    fixed: set[str],
    flexible: set[str],
    counts: PartitionCounts,
    fixed_count: list[int],
) -> Counts:
    """The number of each repartition topic among them."""
    repartition: Counts = {}
    others: Counts = {}
    for name in names:
        count = counts.get(name)
        assert count is not None, "sources exist, repartition topics are decided"
        (repartition if name in fixed or name in flexible else others)[name] = count
    if others:
        count = _same(others.values(), others)
    elif fixed:
        # Kafka compares all fixed topics of the application here, not only those of the group.
        if not fixed_count:
            fixed_count.append(_same([counts.get(name) for name in sorted(fixed)], repartition))
        (count,) = fixed_count
    else:
        count = max(repartition.values())
    for name in sorted(repartition):
        if name in fixed and repartition[name] != count:
            raise incorrectly_partitioned(
                f"Number of partitions [{repartition[name]}] of repartition topic [{name}] doesn't"
                f" match number of partitions [{count}] of the source topic."
            )
    return dict.fromkeys(repartition, count)


def _same(found: Collection[int | None], told: Mapping[str, int]) -> int:
    first = next(iter(found))
    assert first is not None, "fixed numbers are known"
    if any(count != first for count in found):
        listed = ", ".join(f"{name}={told[name]}" for name in sorted(told))
        raise incorrectly_partitioned(
            f"Following topics do not have the same number of partitions: [{{{listed}}}]"
        )
    return first
