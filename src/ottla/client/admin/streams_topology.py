"""The topics of a Kafka Streams application, as its streams group is described (KIP-1071)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from ottla.client.topic_partition import TopicPartition

_STATE: Final = (
    "The application's state is as it was, and what is read again is added to it ({topics}). To"
    " begin without it, delete these topics and the instances' folders (state.dir)."
)


_KINDS: Final = {1: "source", 2: "processor", 3: "sink"}
GLOBAL: Final = "global"
"""In place of the subtopology of a store that each instance has all of."""


class TopologyNode(NamedTuple):
    """A processing node of the application."""

    subtopology: str
    name: str
    kind: str
    """`source`, `processor` or `sink`."""
    topics: tuple[str, ...]
    """What a source reads or a sink writes; none where that is known only when it runs."""
    stores: tuple[str, ...]
    successors: tuple[str, ...]


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
    nodes: tuple[TopologyNode, ...] = ()
    """As the application describes them (KIP-1331); none where the broker does not know them."""

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
        tuple(external),
        tuple(sorted(repartitions)),
        tuple(sorted(changelogs)),
        readers,
        tuple(_nodes(getattr(described, "topology_description", None))),
    )


def _nodes(description: Any) -> Iterator[TopologyNode]:
    if description is None:
        return
    for subtopology in description.subtopologies:
        for node in subtopology.nodes:
            yield _node(subtopology.subtopology_id, node)
    for store in description.global_stores:
        yield _node(GLOBAL, store.source)
        yield _node(GLOBAL, store.processor)


def _node(subtopology: str, node: Any) -> TopologyNode:
    topics = node.source_topics if node.sink_topic is None else (node.sink_topic,)
    kind = _KINDS.get(node.node_type, str(node.node_type))
    return TopologyNode(subtopology, node.name, kind, topics, node.stores, node.successors)


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
