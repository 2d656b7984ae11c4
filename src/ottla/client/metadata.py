"""What a broker knows about the cluster: Metadata (key 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

from ottla.client.addresses import Address
from ottla.client.question import Question
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import Messages

METADATA: Final = 3
NEWEST: Final = 12
OLDEST: Final = 1
"""Of version 0, an empty list means all topics."""
NO_ID: Final = UUID(int=0)


class Broker(NamedTuple):
    """A live broker."""

    id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)


class Partition(NamedTuple):
    """A partition as one broker knows it."""

    leader: int
    """-1 for none."""
    leader_epoch: int
    """-1 if the broker does not say."""
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]


class Topic(NamedTuple):
    """A topic as one broker knows it; without partitions if `error` is one."""

    name: str
    id: UUID
    error: ErrorCode
    is_internal: bool
    partitions: dict[int, Partition]


@dataclass(frozen=True, slots=True)
class Metadata:
    """The cluster as one broker knows it."""

    cluster_id: str | None
    controller: int | None
    """The broker to which the cluster's requests go; of a KRaft cluster, any of them."""
    brokers: dict[int, Broker]
    topics: dict[str, Topic]

    @property
    def leaders(self) -> dict[TopicPartition, int]:
        """The leader of each partition, -1 for none."""
        return {
            TopicPartition(topic.name, index): partition.leader
            for topic in self.topics.values()
            for index, partition in topic.partitions.items()
        }


def metadata_question(topics: Sequence[str] | None) -> Question:
    """About these topics; None: all."""

    def build(messages: Messages) -> Any:
        wanted = None
        if topics is not None:
            wanted = tuple(messages.MetadataRequestTopic(name=name) for name in topics)
        return messages.MetadataRequest(topics=wanted, allow_auto_topic_creation=False)

    return Question(METADATA, NEWEST, build, OLDEST)


def read_metadata(response: Any) -> Metadata:
    """The response to a `metadata_question`."""
    brokers = {
        each.node_id: Broker(each.node_id, each.host, each.port, each.rack)
        for each in response.brokers
    }
    controller = response.controller_id
    return Metadata(
        getattr(response, "cluster_id", None),
        controller if controller in brokers else None,
        brokers,
        {topic.name: _topic(topic) for topic in response.topics},
    )


def _topic(topic: Any) -> Topic:
    return Topic(
        topic.name,
        getattr(topic, "topic_id", None) or NO_ID,
        topic.error_code,
        topic.is_internal,
        {
            each.partition_index: Partition(
                each.leader_id,
                getattr(each, "leader_epoch", -1),
                tuple(each.replica_nodes),
                tuple(each.isr_nodes),
                tuple(getattr(each, "offline_replicas", ())),
            )
            for each in sorted(topic.partitions, key=lambda each: int(each.partition_index))
        },
    )
