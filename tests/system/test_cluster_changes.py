"""What is changed while a cluster runs: partitions, places, topics, settings; what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
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
    wait_known,
    wait_out_of_sync,
)
from tests.system.wire import Wire

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


def alter(
    cluster: Cluster, broker: int, kind: ResourceType, resource: str, name: str, value: str
) -> None:
    """Set one setting by asking this broker."""
    with Wire(cluster.brokers[broker].bootstrap) as wire:
        build = wire.request(44, 1)
        change = build.AlterableConfig(name=name, config_operation=0, value=value)
        wanted = build.AlterConfigsResource(
            resource_type=kind.value, resource_name=resource, configs=(change,)
        )
        answer = wire.ask(build.IncrementalAlterConfigsRequest(resources=(wanted,)))
        assert [each.error_code for each in answer.responses] == [0], answer


def told(cluster: Cluster, broker: int, kind: ResourceType, resource: str, name: str) -> str:
    """What this broker says of the setting."""
    with Wire(cluster.brokers[broker].bootstrap) as wire:
        build = wire.request(32, 4)
        wanted = build.DescribeConfigsResource(
            resource_type=kind.value, resource_name=resource, configuration_keys=(name,)
        )
        answer = wire.ask(build.DescribeConfigsRequest(resources=(wanted,)))
        ((setting,),) = (each.configs for each in answer.results)
        return str(setting.value)


def values(cluster: Cluster, topic: str) -> list[bytes]:
    """All that partition 0 holds."""
    reader = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "reader"})
    try:
        partition = TopicPartition(topic, 0, 0)
        reader.assign([partition])
        _, end = reader.get_watermark_offsets(partition, timeout=WAIT_S)
        return [message.value() for message in reader.consume(end, timeout=WAIT_S)]
    finally:
        reader.close()


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
    wait_known(cluster, "grows", 4)
    assert produce(cluster, "grows", 3, partition=3) == ["NO_ERROR"] * 3


def test_a_topic_setting_reaches_whoever_leads(cluster: Cluster) -> None:
    create(cluster, "small", 3)
    settle(cluster, ConfigResource(ResourceType.TOPIC, "small"), "max.message.bytes", "10")

    def is_limited(partition: int) -> bool:
        return produce(cluster, "small", 1, partition) == ["MSG_SIZE_TOO_LARGE"]

    for partition in range(3):
        wait_for("the limit to reach the leader", partial(is_limited, partition))


def test_a_broker_setting_reaches_its_broker(cluster: Cluster) -> None:
    for broker in cluster.brokers:
        resource = ConfigResource(ResourceType.BROKER, str(broker))
        settle(cluster, resource, "log.retention.ms", str(86_400_000 + broker))

    def knows(broker: int) -> bool:
        found = told(cluster, broker, ResourceType.BROKER, str(broker), "log.retention.ms")
        return found == str(86_400_000 + broker)

    for broker in cluster.brokers:
        wait_for(f"broker {broker} to know", partial(knows, broker))


def test_what_one_broker_is_told_reaches_every_broker(cluster: Cluster) -> None:
    """Asked of a broker that is not the controller: a topic's setting, and one of all brokers."""
    create(cluster, "described")
    asked = next(each for each in cluster.brokers if each != cluster.controller())
    alter(cluster, asked, ResourceType.TOPIC, "described", "retention.ms", "1234567")
    alter(cluster, asked, ResourceType.BROKER, "", "log.retention.bytes", "7654321")

    def knows(broker: int, kind: Any, of: str, name: str, value: str) -> bool:
        return told(cluster, broker, kind, of, name) == value

    for broker in cluster.brokers:
        for kind, of, name, value in (
            (ResourceType.TOPIC, "described", "retention.ms", "1234567"),
            (ResourceType.BROKER, str(broker), "log.retention.bytes", "7654321"),
        ):
            wait_for(
                f"broker {broker} to know {name}", partial(knows, broker, kind, of, name, value)
            )


def test_too_few_in_sync_replicas_are_told(cluster: Cluster) -> None:
    create(cluster, "needs-all", config={"min.insync.replicas": "3"})
    follower = next(each for each in cluster.brokers if each != cluster.leader("needs-all"))
    cluster.kill(follower)
    wait_out_of_sync(cluster, follower, "needs-all")
    assert produce(cluster, "needs-all", 1, retries=0) == ["NOT_ENOUGH_REPLICAS"]
    assert produce(cluster, "needs-all", 1, acks=1) == ["NO_ERROR"]
    cluster.start(follower)
    cluster.wait_in_sync()
    assert produce(cluster, "needs-all", 1) == ["NO_ERROR"]


def test_what_too_few_replicas_have_is_not_acknowledged(cluster: Cluster) -> None:
    """All three are in sync when it is appended, and one of them stands still from then on. Below
    min.insync.replicas the high watermark stays, as in Kafka (KIP-966)."""
    create(cluster, "needed-all", config={"min.insync.replicas": "3"})
    others = {cluster.leader("needed-all"), cluster.controller()}
    follower = next(each for each in cluster.brokers if each not in others)
    cluster.pause(follower)
    asking = {"retries": 0, "request_timeout_ms": 8_000}
    assert produce(cluster, "needed-all", 1, **asking) == ["REQUEST_TIMED_OUT"]
    wait_out_of_sync(cluster, follower, "needed-all")
    assert produce(cluster, "needed-all", 1, **asking) == ["NOT_ENOUGH_REPLICAS"]
    assert values(cluster, "needed-all") == []
    cluster.resume(follower)
    cluster.wait_in_sync("needed-all")
    # The first one was appended, and is committed by now; the second was refused before.
    wait_for("the record", lambda: values(cluster, "needed-all") == [b"0"])


def test_partitions_are_added_while_a_broker_is_down(cluster: Cluster) -> None:
    create(cluster, "wide-grows", 1)
    create(cluster, "grows-meanwhile", 1, replication_factor=2)
    cluster.stop(3)
    wait_for("its end to be seen", lambda: 3 not in cluster.state.live_brokers())
    admin = admin_of(cluster)
    refused = admin.create_partitions([NewPartitions("wide-grows", 2)])["wide-grows"]
    assert error_of(refused) == "INVALID_REPLICATION_FACTOR"
    grown = admin.create_partitions([NewPartitions("grows-meanwhile", 4)])["grows-meanwhile"]
    grown.result(WAIT_S)
    added = list(replicas(cluster, "grows-meanwhile").values())[1:]
    assert [sorted(each) for each in added] == [[1, 2]] * 3
    wait_known(cluster, "grows-meanwhile", 4)
    assert produce(cluster, "grows-meanwhile", 3, partition=3) == ["NO_ERROR"] * 3
    cluster.start(3)
    cluster.wait_in_sync()


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
