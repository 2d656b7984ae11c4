"""Topics as any broker knows them: one Metadata request (key 3, version 12) on a plain connection.

librdkafka's admin client returns neither leader epochs nor offline replicas, and describes topics
only from the controller, so that it fails without one. If the listener needs TLS or SASL, this
request fails and those fields stay unknown.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ottla.cli.cluster_client import refusal
from ottla.cli.failures import Failed
from ottla.cli.plain_connection import broker_answers, connected
from ottla.cli.plain_frames import answered
from ottla.protocol.errors import DecodeError, ErrorCode
from ottla.protocol.messages import messages_of

METADATA: Final = 3
VERSION: Final = 12
ANSWER_TIMEOUT_S: Final = 10.0


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


def metadata_of(bootstrap: str, names: Sequence[str]) -> Any | None:
    """The response; None if no broker responds on a plain connection."""
    try:
        with connected(bootstrap, ANSWER_TIMEOUT_S) as connection:
            return answered(connection, question(names))
    except (Failed, OSError, EOFError, DecodeError):
        return None


def question(names: Sequence[str]) -> Any:
    """The Metadata request."""
    build = messages_of(METADATA, VERSION, "request")
    topics = tuple(build.MetadataRequestTopic(name=name) for name in names)
    return build.MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def epochs_in(response: Any | None) -> dict[tuple[str, int], Epoch]:
    """By topic and partition."""
    return {
        (topic.name, each.partition_index): Epoch(each.leader_epoch, tuple(each.offline_replicas))
        for topic in (response.topics if response is not None else ())
        for each in topic.partitions
    }


def controller_is_away(response: Any) -> bool:
    """Whether there is no controller, or one that does not respond: tries a connection."""
    for broker in response.brokers:
        if broker.node_id == response.controller_id:
            return not broker_answers(broker.host, broker.port)
    return True


def topics_in(response: Any) -> list[Topic]:
    """Descriptions, in the requested order. Raises Failed for a topic that the broker rejects."""
    racks = {broker.node_id: broker.rack for broker in response.brokers}

    def nodes(numbers: Sequence[int]) -> list[ReplicaBroker]:
        return [ReplicaBroker(number, racks.get(number)) for number in numbers]

    found = []
    for topic in response.topics:
        if topic.error_code != ErrorCode.none:
            raise refusal(f"describe topic {topic.name!r}", topic.error_code, None)
        partitions = [
            Partition(
                each.partition_index,
                nodes([each.leader_id])[0] if each.leader_id >= 0 else None,
                nodes(each.replica_nodes),
                nodes(each.isr_nodes),
            )
            for each in sorted(topic.partitions, key=lambda each: int(each.partition_index))
        ]
        # The id's format in librdkafka.
        identity = b64encode(topic.topic_id.bytes).rstrip(b"=").decode()
        found.append(Topic(topic.name, identity, topic.is_internal, partitions))
    return found
