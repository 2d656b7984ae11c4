"""Topics as any broker knows them.

librdkafka's admin client returns neither leader epochs nor offline replicas, and describes topics
only from the controller, so that it fails without one. If only librdkafka can use the security
settings, those fields stay unknown.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import NamedTuple

from ottla.cli.client import Connection
from ottla.client.errors import ClientError, RefusedError
from ottla.client.metadata import Metadata
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.errors import ErrorCode


class Epoch(NamedTuple):
    """A partition's leader epoch, and those of its replicas whose brokers are down."""

    leader_epoch: int
    offline: tuple[int, ...]


class ReplicaBroker(NamedTuple):
    """A broker that holds a replica, as librdkafka has it."""

    id: int
    rack: str | None


class Partition(NamedTuple):
    """As librdkafka's TopicPartitionInfo."""

    id: int
    leader: ReplicaBroker | None
    replicas: list[ReplicaBroker]
    isr: list[ReplicaBroker]


class Topic(NamedTuple):
    """As librdkafka's TopicDescription."""

    name: str
    topic_id: str
    is_internal: bool
    partitions: list[Partition]


def metadata_of(connection: Connection, names: Sequence[str]) -> Metadata | None:
    """What one broker knows about these topics; None if none can be asked."""
    try:
        return connection.client.metadata(names)
    except ClientError:
        return None


def epochs_in(metadata: Metadata | None) -> dict[TopicPartition, Epoch]:
    """By topic and partition."""
    return {
        TopicPartition(topic.name, index): Epoch(each.leader_epoch, each.offline)
        for topic in (metadata.topics.values() if metadata is not None else ())
        for index, each in topic.partitions.items()
    }


def controller_is_away(connection: Connection, metadata: Metadata) -> bool:
    """Whether there is no controller, or one that does not respond: tries a connection."""
    if metadata.controller is None:
        return True
    address = metadata.brokers[metadata.controller].address
    return not connection.client.is_answering(address)


def topics_in(metadata: Metadata, names: Sequence[str]) -> list[Topic]:
    """Descriptions, in the order of the names. Raises RefusedError for a topic that the broker
    rejects.
    """
    brokers = metadata.brokers

    def nodes(numbers: Sequence[int]) -> list[ReplicaBroker]:
        return [
            ReplicaBroker(each, brokers[each].rack if each in brokers else None) for each in numbers
        ]

    found = []
    for name in names:
        topic = metadata.topics[name]
        if topic.error is not ErrorCode.none:
            raise RefusedError(f"describe topic {name!r}", topic.error)
        partitions = [
            Partition(
                index,
                nodes([each.leader])[0] if each.leader >= 0 else None,
                nodes(each.replicas),
                nodes(each.in_sync),
            )
            for index, each in topic.partitions.items()
        ]
        # The id's format in librdkafka.
        identity = b64encode(topic.id.bytes).rstrip(b"=").decode()
        found.append(Topic(name, identity, topic.is_internal, partitions))
    return found
