"""The topics of a Kafka Streams application, as its streams group is described (KIP-1071)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from ottla.client.topic_partition import TopicPartition

_STATE: Final = (
    "The application's state is as it was, and what is read again is added to it ({topics}). To"
    " begin without it, delete these topics and the instances' folders (state.dir)."
)


class Topology(NamedTuple):
    """Topics, each sorted."""

    sources: tuple[str, ...]
    """What the application reads and others write."""
    repartitions: tuple[str, ...]
    """What it writes for itself, to read it by another key."""
    changelogs: tuple[str, ...]
    """Its state."""
    readers: Mapping[str, tuple[str, ...]]
    """What each subtopology reads."""

    @property
    def what_stays(self) -> str:
        """What a user that moves the group's offsets should know; empty for an application without
        state.
        """
        return _STATE.format(topics=", ".join(self.changelogs)) if self.changelogs else ""

    @property
    def read_topics(self) -> tuple[str, ...]:
        return tuple(sorted({*self.sources, *self.repartitions}))


def topology_of(described: Any) -> Topology:
    """Of a described group; empty if it has none."""
    topology = described.topology
    sources: set[str] = set()
    repartitions: set[str] = set()
    changelogs: set[str] = set()
    readers: dict[str, tuple[str, ...]] = {}
    for each in (None if topology is None else topology.subtopologies) or ():
        own = [topic.name for topic in each.repartition_source_topics]
        readers[each.subtopology_id] = (*each.source_topics, *own)
        sources.update(each.source_topics)
        repartitions.update(own)
        changelogs.update(topic.name for topic in each.state_changelog_topics)
    external = sorted(sources - repartitions)
    return Topology(
        tuple(external), tuple(sorted(repartitions)), tuple(sorted(changelogs)), readers
    )


def active_partitions(
    member: Any, topology: Topology, existing: Collection[TopicPartition]
) -> tuple[TopicPartition, ...]:
    """What a member reads by its active tasks: a task has this partition of each topic that its
    subtopology reads, if the topic has so many.
    """
    found = {
        TopicPartition(topic, partition)
        for task in member.assignment.active_tasks
        for partition in task.partitions
        for topic in topology.readers.get(task.subtopology_id, ())
    }
    return tuple(sorted(found.intersection(existing)))
