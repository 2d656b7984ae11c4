"""The coordinator of a group is the leader of its partition of `__consumer_offsets`."""

from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from tests.system.cluster_load import QUICK, create, loaded_cluster, produce, wait_for

from ottla.testing import Cluster

MOVING = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
)


def committed(cluster: Cluster, group: str, topic: str) -> int:
    """As the group's coordinator has it, whoever that is by now."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
    found: list[int] = []

    def answered() -> bool:
        try:
            places = consumer.committed([TopicPartition(topic, 0)], timeout=20)
        except KafkaException as fault:
            # librdkafka leaves it to the caller to ask again while the coordinator moves.
            if fault.args[0].code() not in MOVING:
                raise
            return False
        found.append(int(places[0].offset))
        return True

    try:
        wait_for("the coordinator", answered)
    finally:
        consumer.close()
    return found[0]


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
