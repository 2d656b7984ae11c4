"""The coordinator of a group is the leader of its partition of `__consumer_offsets`."""

from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from tests.system.cluster_load import QUICK, create, loaded_cluster, produce

from ottla.testing import Cluster


def committed(cluster: Cluster, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
    try:
        return int(consumer.committed([TopicPartition(topic, 0)], timeout=20)[0].offset)
    finally:
        consumer.close()


def commit(cluster: Cluster, group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
    try:
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    finally:
        consumer.close()


def test_offsets_outlive_each_coordinator(tmp_path: Path) -> None:
    """Eight groups lie on several partitions; each broker is killed in turn."""
    groups = [f"group-{number}" for number in range(8)]
    with Cluster(3, QUICK, data=tmp_path / "cluster") as cluster:
        create(cluster, "t")
        assert produce(cluster, "t", 10) == ["NO_ERROR"] * 10
        for round_, broker in enumerate(cluster.brokers, 1):
            for group in groups:
                commit(cluster, group, "t", round_)
            cluster.kill(broker)
            assert [committed(cluster, group, "t") for group in groups] == [round_] * len(groups)
            cluster.start(broker)
            cluster.wait_in_sync()


def test_a_group_goes_on_when_its_coordinator_dies(tmp_path: Path) -> None:
    with loaded_cluster(tmp_path) as (cluster, load):
        for broker in cluster.brokers:
            cluster.kill(broker)
            load.wait_progress()
            cluster.start(broker)
            cluster.wait_in_sync()
