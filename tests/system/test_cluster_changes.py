"""What is changed while a cluster runs: partitions, places, topics, settings; what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from tests.system.cluster_load import (
    QUICK,
    WAIT_S,
    admin_of,
    create,
    error_of,
    loaded_cluster,
    produce,
    wait_for,
)

from ottla.testing import Cluster

RACKS = ("a", "b", "c")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers in three racks; a test leaves them all running, and uses topics of its own."""
    folder = tmp_path_factory.mktemp("cluster")
    with Cluster(3, QUICK, racks=RACKS, data=folder) as running:
        create(running, "first")
        yield running


def replicas(cluster: Cluster, topic: str) -> dict[int, list[int]]:
    found = cluster.state.replicas(topic)
    assert found is not None
    return found


def settle(cluster: Cluster, resource: ConfigResource, name: str, value: str) -> None:
    """Set one setting, whichever broker is asked."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource.add_incremental_config(entry)
    admin = admin_of(cluster)
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(WAIT_S)


def test_more_replicas_than_brokers_are_refused(cluster: Cluster) -> None:
    admin = admin_of(cluster)
    made = admin.create_topics([NewTopic("wide", 1, 4)])
    assert error_of(made["wide"]) == "INVALID_REPLICATION_FACTOR"


def test_leaders_and_replicas_are_spread(cluster: Cluster) -> None:
    create(cluster, "spread", 6)
    placed = replicas(cluster, "spread")
    assert all(sorted(brokers) == [1, 2, 3] for brokers in placed.values())
    leaders = [brokers[0] for brokers in placed.values()]
    assert sorted(leaders) == [1, 1, 2, 2, 3, 3]


def test_racks_are_spread(cluster: Cluster) -> None:
    create(cluster, "racks", 6, replication_factor=2)
    for brokers in replicas(cluster, "racks").values():
        assert len(set(brokers)) == 2


def test_partitions_are_added(cluster: Cluster) -> None:
    create(cluster, "grows", 1)
    admin = admin_of(cluster)
    admin.create_partitions([NewPartitions("grows", 4)])["grows"].result(WAIT_S)
    wait_for("four partitions", lambda: len(replicas(cluster, "grows")) == 4)
    cluster.wait_in_sync("grows")
    assert produce(cluster, "grows", 3, partition=3) == ["NO_ERROR"] * 3


def test_a_topic_setting_reaches_whoever_leads(cluster: Cluster) -> None:
    create(cluster, "small", 3)
    settle(cluster, ConfigResource(ResourceType.TOPIC, "small"), "max.message.bytes", "10")
    for partition in range(3):
        wait_for(
            "the limit to reach the leader",
            lambda at=partition: produce(cluster, "small", 1, at) == ["MSG_SIZE_TOO_LARGE"],
        )


def test_a_broker_setting_reaches_its_broker(cluster: Cluster) -> None:
    for broker in cluster.brokers:
        resource = ConfigResource(ResourceType.BROKER, str(broker))
        settle(cluster, resource, "log.retention.ms", str(86_400_000 + broker))

        def told(number: int = broker) -> str | None:
            resource = ConfigResource(ResourceType.BROKER, str(number))
            admin = admin_of(cluster)
            entries = admin.describe_configs([resource])[resource].result(WAIT_S)
            return entries["log.retention.ms"].value

        wait_for(f"broker {broker} to know", lambda at=broker: told(at) == str(86_400_000 + at))


def test_too_few_in_sync_replicas_are_told(cluster: Cluster) -> None:
    create(cluster, "needs-all", config={"min.insync.replicas": "3"})
    follower = next(each for each in cluster.brokers if each != cluster.leader("needs-all"))
    cluster.kill(follower)
    wait_for(
        "the in-sync set to shrink",
        lambda: follower not in (cluster.state.partition("needs-all", 0) or {})["isr"],
    )
    assert produce(cluster, "needs-all", 1, retries=0) == ["NOT_ENOUGH_REPLICAS"]
    assert produce(cluster, "needs-all", 1, acks=1) == ["NO_ERROR"]
    cluster.start(follower)
    cluster.wait_in_sync()
    assert produce(cluster, "needs-all", 1) == ["NO_ERROR"]


def test_a_topic_is_deleted_while_one_of_its_brokers_is_down(cluster: Cluster) -> None:
    create(cluster, "goes", 2)
    produce(cluster, "goes", 10)
    down = 2
    cluster.stop(down)
    admin = admin_of(cluster)
    admin.delete_topics(["goes"])["goes"].result(WAIT_S)
    wait_for("the topic to go", lambda: "goes" not in cluster.state.topics())
    cluster.start(down)
    data = cluster.brokers[down].data
    # Set aside at once, under names that end in -delete; removed after file.delete.delay.ms.
    wait_for("its folders to go", lambda: not list(data.glob("goes-[0-9]")))
    cluster.wait_in_sync()


def test_a_broker_with_an_empty_disk_copies_everything(tmp_path: Path) -> None:
    with loaded_cluster(tmp_path) as (cluster, load):
        for broker in cluster.brokers:
            cluster.kill(broker)
            cluster.lose_disk(broker)
            cluster.start(broker)
            cluster.wait_in_sync()
            load.wait_progress()


def test_an_unclean_election_is_told(cluster: Cluster) -> None:
    """Two followers die, the leader takes ten more records and dies; a follower comes back."""
    settings = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    create(cluster, "unclean", config=settings)
    produce(cluster, "unclean", 5)
    last = cluster.leader("unclean")
    first, second = (each for each in cluster.brokers if each != last)
    cluster.kill(first)
    cluster.kill(second)
    wait_for(
        "the leader to be alone",
        lambda: (cluster.state.partition("unclean", 0) or {})["isr"] == [last],
    )
    assert produce(cluster, "unclean", 10) == ["NO_ERROR"] * 10
    cluster.kill(last)
    cluster.start(first)
    assert cluster.wait_leader_other_than(last, "unclean") == first
    cluster.start(second)
    cluster.start(last)
    cluster.wait_in_sync()
    said = "".join(broker.said() for broker in cluster.brokers.values())
    assert f"unclean election: unclean-0 is led by {first}" in said
    assert f"unclean-0: offsets 5 to 14 are dropped, which leader {first} does not have" in said
