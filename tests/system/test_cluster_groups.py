"""The coordinator of a group is the leader of its partition of `__consumer_offsets`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from tests.system.cluster_load import QUICK, create, loaded_cluster, produce, wait_for

from ottla.client.admin.groups import described_groups
from ottla.client.client import Client
from ottla.client.errors import ClientError
from ottla.client.patience import Patience
from ottla.testing import Cluster

MOVING = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
)


def of_coordinator(cluster: Cluster, group: str, ask: Callable[[Consumer], Any]) -> Any:
    """What `ask` has of the group's coordinator, which may be another broker by now."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
    found: list[Any] = []

    def answered() -> bool:
        try:
            found.append(ask(consumer))
        except KafkaException as fault:
            # librdkafka leaves it to the caller to ask again while the coordinator moves.
            if fault.args[0].code() not in MOVING:
                raise
            return False
        return True

    try:
        wait_for("the coordinator", answered)
    finally:
        consumer.close()
    return found[0]


def committed(cluster: Cluster, group: str, topic: str) -> int:
    partition = TopicPartition(topic, 0)
    (found,) = of_coordinator(
        cluster, group, lambda asked: asked.committed([partition], timeout=20)
    )
    return int(found.offset)


def commit(cluster: Cluster, group: str, topic: str, offset: int) -> None:
    offsets = [TopicPartition(topic, 0, offset)]
    of_coordinator(cluster, group, lambda told: told.commit(offsets=offsets, asynchronous=False))


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


def test_a_group_may_be_new_after_a_broker_was_killed(tmp_path: Path) -> None:
    """The internal topics exist since all brokers were there."""
    with Cluster(3, QUICK, data=tmp_path / "cluster") as cluster:
        assert "__consumer_offsets" in cluster.state.topics()
        create(cluster, "t")
        cluster.kill(3)
        commit(cluster, "new", "t", 7)
        assert committed(cluster, "new", "t") == 7


def test_a_group_that_cannot_be_created_is_explained_until_a_broker_is_there(
    tmp_path: Path,
) -> None:
    settings = {**QUICK, "offsets.topic.replication.factor": 2}
    cluster = Cluster(2, settings, data=tmp_path / "cluster")
    try:
        cluster.prepare()
        cluster.start(1)
        first = cluster.brokers[1]
        # Commands wait longer.
        with (
            Client(first.bootstrap, patience=Patience(retry_for_s=2)) as client,
            pytest.raises(ClientError, match=r"Registered brokers: 1\. Start another broker"),
        ):
            described_groups(client, ["g"])
        assert "Consumer groups are not available: cannot create __consumer_" in first.said()
        cluster.start(2)
        create(cluster, "t", replication_factor=2)
        commit(cluster, "g", "t", 7)
        assert committed(cluster, "g", "t") == 7
    finally:
        cluster.close()
