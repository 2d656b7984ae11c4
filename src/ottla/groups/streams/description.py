"""The description of a topology: its processing nodes, for people (KIP-1331).

A member sends it when the coordinator asks. Kafka hands it to a plug-in and keeps no copy; here it
is kept with the topology, as a tagged field of that record which Kafka's readers skip
(`record_format`). So it is there after a failover, and goes with the group. Its bytes are those of
the struct TopologyDescription in the protocol:

    subtopologies[]  id, nodes[]  name, kind int8, source topics[], sink topic?, stores[],
                                  successors[]
    global stores[]  source node, processor node

Kafka's StreamsGroupTopologyDescription and StreamsGroupTopologyDescriptionConverter.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from ottla.groups.consumer.record_format import read_strings, write_strings
from ottla.shards.encoding import Reader, Writer

MAX_DESCRIPTION_BYTES: Final = 256 * 1024
"""It lies in one record with the topology; Kafka leaves the limit to the plug-in."""
MAX_DESCRIPTION_NAMES: Final = 10_000
"""Of subtopologies, nodes, topics, stores and successors."""


class NodeKind(IntEnum):
    """As numbered in the protocol."""

    SOURCE = 1
    PROCESSOR = 2
    SINK = 3


class Node(NamedTuple):
    """A node; only a source reads topics, a sink writes to one, and a processor has stores."""

    name: str
    kind: NodeKind
    source_topics: tuple[str, ...] = ()
    """None: they are known only when it runs."""
    sink_topic: str | None = None
    """None: it is known only when it runs."""
    stores: tuple[str, ...] = ()
    successors: tuple[str, ...] = ()


class NodesOfSubtopology(NamedTuple):
    id: str
    nodes: tuple[Node, ...]


class GlobalStore(NamedTuple):
    """A store that each instance has all of."""

    source: Node
    processor: Node


class Description(NamedTuple):
    subtopologies: tuple[NodesOfSubtopology, ...]
    global_stores: tuple[GlobalStore, ...]


def encode(description: Description) -> bytes:
    writer = Writer()
    writer.compact_array_size(len(description.subtopologies))
    for subtopology in description.subtopologies:
        writer.compact_string(subtopology.id)
        writer.compact_array_size(len(subtopology.nodes))
        for node in subtopology.nodes:
            _write_node(writer, node)
        writer.tagged_fields({})
    writer.compact_array_size(len(description.global_stores))
    for store in description.global_stores:
        _write_node(writer, store.source)
        _write_node(writer, store.processor)
        writer.tagged_fields({})
    writer.tagged_fields({})
    return writer.content()


def _write_node(writer: Writer, node: Node) -> None:
    writer.compact_string(node.name)
    writer.int8(node.kind)
    write_strings(writer, node.source_topics)
    writer.nullable_compact_string(node.sink_topic)
    write_strings(writer, node.stores)
    write_strings(writer, node.successors)
    writer.tagged_fields({})


def decode(content: bytes) -> Description:
    """Raises ValueError for bytes that are none."""
    reader = Reader(content)
    subtopologies = []
    for _ in range(reader.array_size(compact=True)):
        name = reader.string(compact=True)
        nodes = [_read_node(reader) for _ in range(reader.array_size(compact=True))]
        reader.tagged_fields()
        subtopologies.append(NodesOfSubtopology(name, tuple(nodes)))
    stores = []
    for _ in range(reader.array_size(compact=True)):
        stores.append(GlobalStore(_read_node(reader), _read_node(reader)))
        reader.tagged_fields()
    reader.tagged_fields()
    return Description(tuple(subtopologies), tuple(stores))


def _read_node(reader: Reader) -> Node:
    node = Node(
        reader.string(compact=True),
        NodeKind(reader.int8()),
        read_strings(reader),
        reader.nullable_string(compact=True),
        read_strings(reader),
        read_strings(reader),
    )
    reader.tagged_fields()
    return node
