"""Compares the replicas that the suites left on several brokers byte by byte.

Compacted logs may differ between brokers, as in Apache Kafka, because each broker compacts at its
own time. Only the log dump tool checks those topics.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from faults.replicas import compare

from ottla.testing import Cluster

ANSWER_SECONDS = 60.0


@dataclass(frozen=True)
class Replicas:
    """`held`: by topic and partition, the data folders of the partition's brokers."""

    held: dict[tuple[str, int], tuple[Path, ...]]
    compacted: frozenset[str]

    def comparable(self) -> dict[tuple[str, int], tuple[Path, ...]]:
        """The partitions with several replicas that must be equal."""
        return {
            (topic, partition): folders
            for (topic, partition), folders in self.held.items()
            if len(folders) > 1 and topic not in self.compacted
        }

    def differences(self) -> list[str]:
        """Where replicas differ below the high watermark or have gaps; the brokers must be down."""
        return [
            f"{topic}-{partition}: {anomaly.kind.value}: {anomaly.what}"
            for (topic, partition), folders in sorted(self.comparable().items())
            for anomaly in compare(topic, partition, folders)
        ]


def compacted(
    bootstrap: str, topics: list[str], client: Mapping[str, str] | None = None
) -> frozenset[str]:
    """Those of the topics that are compacted. `client`: librdkafka's settings."""
    if not topics:
        return frozenset()
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, **(client or {})})
    asked = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
    answers = admin.describe_configs(asked, request_timeout=ANSWER_SECONDS)
    return frozenset(
        resource.name
        for resource, answer in answers.items()
        if "compact" in answer.result(ANSWER_SECONDS)["cleanup.policy"].value
    )


def assigned(cluster: Cluster) -> Replicas:
    """The replicas by partition; call this while the cluster runs."""
    topics = cluster.state.topics()
    folders = {number: broker.data for number, broker in cluster.brokers.items()}
    held = {
        (topic, partition): tuple(folders[broker] for broker in brokers)
        for topic in topics
        for partition, brokers in (cluster.state.replicas(topic) or {}).items()
    }
    return Replicas(held, compacted(cluster.bootstrap, topics, cluster.kit_settings))
