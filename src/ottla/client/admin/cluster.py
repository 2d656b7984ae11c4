"""The cluster itself: its id, brokers and controller, as any broker knows them.

librdkafka asks only the controller, and so fails without one.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ottla.client.client import Client
from ottla.client.errors import RefusedError
from ottla.client.metadata import Broker
from ottla.client.question import Question
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import Messages

DESCRIBE_QUORUM: Final = 55
DESCRIBE_CLUSTER: Final = 60
METADATA_TOPIC: Final = "__cluster_metadata"
VIEW_WITHIN_S: Final = 5.0


class ClusterView(NamedTuple):
    """What one broker knows about the cluster."""

    id: str
    controller: int | None
    brokers: dict[int, Broker]


def any_brokers_view(client: Client) -> ClusterView:
    """DescribeCluster (KIP-700) of the first broker that responds, from its own metadata."""

    def build(messages: Messages) -> Any:
        return messages.DescribeClusterRequest(include_cluster_authorized_operations=False)

    response = client.ask_any(Question(DESCRIBE_CLUSTER, 0, build, since="2.8"), VIEW_WITHIN_S)
    if response.error_code is not ErrorCode.none:
        raise RefusedError("describe the cluster", response.error_code, response.error_message)
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
