"""The cluster itself: its brokers and controller as any broker knows them, even while there is no
controller; and the partitions with a problem.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from ottla.client.admin.configs import topic_settings
from ottla.client.client import Client
from ottla.client.errors import ClientError, Needs, RefusedError, UnsupportedError
from ottla.client.metadata import Broker, Metadata, Topic
from ottla.client.question import Question
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import Messages

DESCRIBE_QUORUM: Final = 55
DESCRIBE_CLUSTER: Final = 60
METADATA_TOPIC: Final = "__cluster_metadata"
VIEW_WITHIN_S: Final = 5.0
MIN_IN_SYNC: Final = "min.insync.replicas"


class ClusterView(NamedTuple):
    """What one broker knows about the cluster."""

    id: str
    controller: int | None
    brokers: dict[int, Broker]


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A partition; `leader` is None if it has none."""

    topic: str
    partition: int
    leader: int | None
    replicas: list[int]
    in_sync: list[int]
    min_in_sync: int

    @property
    def is_under_min_isr(self) -> bool:
        """Whether the partition currently rejects acks=all.

        Of min.insync.replicas, no more counts than there are replicas (Partition.effectiveMinIsr
        in Apache Kafka): __transaction_state asks for two, and has one on a single broker.
        """
        return len(self.in_sync) < min(self.min_in_sync, len(self.replicas))

    @property
    def is_under_replicated(self) -> bool:
        return len(self.in_sync) < len(self.replicas)

    @property
    def is_led_by_another(self) -> bool:
        """Than the preferred replica, the first one, which could lead."""
        preferred = self.replicas[0] if self.replicas else None
        return self.leader not in (None, preferred) and preferred in self.in_sync


@dataclass(frozen=True, slots=True)
class BrokerState:
    """A broker, which may be down but hold replicas: then it has no address."""

    id: int
    host: str | None
    port: int | None
    rack: str | None
    live: bool
    leaders: int
    replicas: int
    in_sync: int


@dataclass(frozen=True, slots=True)
class ClusterState:
    """A cluster. `controller_epoch` is None if the brokers do not know it."""

    cluster_id: str
    controller: int | None
    controller_epoch: int | None
    controller_answers: bool
    brokers: list[BrokerState]
    topics: int
    partitions: int
    offline: list[PartitionState]
    under_min_isr: list[PartitionState]
    under_replicated: list[PartitionState]
    led_by_others: list[PartitionState] = field(default_factory=list)
    """Not by the first of their replicas, which is live and in sync."""

    @property
    def live_brokers(self) -> int:
        return sum(each.live for each in self.brokers)


def cluster_state(
    client: Client,
    metadata: Metadata | None = None,
    least: Mapping[str, int] | None = None,
) -> ClusterState:
    """Brokers with their replicas, the controller, and each partition with a problem. What is known
    is not asked for: `metadata` of all topics, and `least`, the `min.insync.replicas` of each.
    """
    known = metadata or client.metadata()
    topics = known.topics
    if least is None:
        least = min_in_sync(client, sorted(topics))
    try:
        view = any_brokers_view(client)
    except UnsupportedError:
        # Before Apache Kafka 2.8; the metadata of a ZooKeeper cluster names its controller, too.
        view = ClusterView(known.cluster_id or "unknown", known.controller, known.brokers)
    lead = view.brokers.get(view.controller) if view.controller is not None else None
    try:
        epoch = controller_epoch(client)
    except ClientError:
        epoch = None
    partitions = list(_partition_states(topics, least))
    return ClusterState(
        view.id,
        view.controller,
        epoch,
        lead is not None and client.is_answering(lead.address),
        _broker_states(view.brokers, partitions),
        len(topics),
        len(partitions),
        [each for each in partitions if each.leader is None],
        [each for each in partitions if each.is_under_min_isr],
        [each for each in partitions if each.is_under_replicated],
        [each for each in partitions if each.is_led_by_another],
    )


def min_in_sync(client: Client, topics: Sequence[str]) -> dict[str, int]:
    """`min.insync.replicas` by topic."""
    return {
        name: next((int(each.value or 1) for each in settings if each.name == MIN_IN_SYNC), 1)
        for name, settings in topic_settings(client, topics, [MIN_IN_SYNC]).items()
    }


def _partition_states(
    topics: Mapping[str, Topic], least: Mapping[str, int]
) -> Iterator[PartitionState]:
    for name in sorted(topics):
        for number, each in topics[name].partitions.items():
            yield PartitionState(
                name,
                number,
                each.leader if each.leader >= 0 else None,
                list(each.replicas),
                list(each.in_sync),
                least.get(name, 1),
            )


def _broker_states(
    live: Mapping[int, Broker], partitions: Sequence[PartitionState]
) -> list[BrokerState]:
    """All brokers, including those that are down but hold replicas."""
    held = {number for each in partitions for number in each.replicas}
    return [
        BrokerState(
            number,
            live[number].host if number in live else None,
            live[number].port if number in live else None,
            live[number].rack if number in live else None,
            number in live,
            sum(each.leader == number for each in partitions),
            sum(number in each.replicas for each in partitions),
            sum(number in each.in_sync for each in partitions),
        )
        for number in sorted(live.keys() | held)
    ]


def any_brokers_view(client: Client) -> ClusterView:
    """DescribeCluster (KIP-700) of the first broker that responds, from its own metadata."""

    def build(messages: Messages) -> Any:
        return messages.DescribeClusterRequest(include_cluster_authorized_operations=False)

    response = client.ask_any(Question(DESCRIBE_CLUSTER, 0, build, since="2.8"), VIEW_WITHIN_S)
    if response.error_code is not ErrorCode.none:
        raise RefusedError(
            "describe the cluster", response.error_code, response.error_message, Needs("Describe")
        )
    brokers = {
        each.broker_id: Broker(each.broker_id, each.host, each.port, each.rack)
        for each in response.brokers
    }
    controller = response.controller_id
    return ClusterView(response.cluster_id, controller if controller in brokers else None, brokers)


def controller_epoch(client: Client) -> int | None:
    """The controller's epoch, or None if the broker does not know it.

    No request of ZooKeeper mode returns it. DescribeQuorum (KIP-595) returns the epoch of the
    metadata quorum's leader; Ottla answers it with the value of /controller_epoch.
    """

    def build(messages: Messages) -> Any:
        partition = messages.PartitionData(partition_index=0)
        topic = messages.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
        return messages.DescribeQuorumRequest(topics=(topic,))

    response = client.ask_any(Question(DESCRIBE_QUORUM, 0, build, since="2.7"))
    for found in response.topics:
        for each in found.partitions:
            if each.error_code is ErrorCode.none:
                return int(each.leader_epoch)
    return None
