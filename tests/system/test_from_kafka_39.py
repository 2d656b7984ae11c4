"""A cluster of Apache Kafka 3.9 goes on as one of Ottla: the same ZooKeeper, folders and clients.

`kafka_3_9_cluster.tar.xz` was written by `tests.system.kafka_39_cluster`, that is by Kafka 3.9.1
itself, and stopped in order; the padding of some files is left out. The tests with live brokers of
Kafka also kill them.
"""

from __future__ import annotations

import json
import tarfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from components.apache_kafka import ZOOKEEPER_VERSION, KafkaJars
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from tests.system.kafka_39_cluster import (
    ARCHIVE,
    BROKERS,
    EXPECTED,
    GROUP,
    OPEN,
    SETTINGS,
    WAIT_S,
    filled,
    observe,
)

from ottla.testing import BrokerProcess, Cluster
from ottla.testing.cluster_state import ClusterState
from ottla.testing.errors import ProcessEndedError
from ottla.testing.ports import free_ports

ENDED = [f"ended {number} {each}" for number in (0, 2, 3, 5) for each in range(10)]
LEFT_OPEN = [f"open {each}" for each in range(4)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as written:
        written.extractall(tmp_path, filter="data")
    return tmp_path


@pytest.fixture
def cluster(folder: Path) -> Iterator[Cluster]:
    with Cluster(BROKERS, SETTINGS, data=folder, proxies=False) as running:
        running.wait_in_sync()
        yield running


def test_a_cluster_that_kafka_stopped_is_taken_over(folder: Path, cluster: Cluster) -> None:
    expected = json.loads((folder / EXPECTED).read_text())
    assert observe(cluster.bootstrap) == expected
    assert broker_settings(cluster, "1")["num.io.threads"] == "5"
    for broker in ("1", "2"):
        settings = broker_settings(cluster, broker)
        assert settings["message.max.bytes"] == "2000000"
        assert settings["log.cleaner.threads"] == "2"
    check_group(cluster.bootstrap)
    check_odd_settings(cluster.bootstrap)
    # The transaction that Kafka left open ends with the next producer of its id.
    assert "behind the open one" not in committed(cluster.bootstrap)
    heir = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": OPEN})
    heir.init_transactions(WAIT_S)
    assert sorted(committed(cluster.bootstrap)) == sorted([*ENDED, "behind the open one"])
    check_writing(cluster.bootstrap, heir, expected)
    for number in cluster.brokers:
        assert not list((folder / f"broker-{number}").glob("gone-*"))
        cluster.stop(number)


@pytest.mark.full
@pytest.mark.kafka
@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_clients_go_on_when_kafka_becomes_ottla(tmp_path: Path, how: str) -> None:
    jars = KafkaJars.at_hand(ZOOKEEPER_VERSION)
    if jars is None:
        pytest.skip(
            f"Apache Kafka {ZOOKEEPER_VERSION} is not in the cache: `components.fetch --all`"
        )
    with filled(tmp_path, jars) as (kafka, left_open):
        producer = Producer({"bootstrap.servers": kafka.bootstrap, "enable.idempotence": True})
        write(producer, "on Kafka")
        expected = observe(kafka.bootstrap)
        options = ["--id", "3", "--zookeeper", kafka.zookeeper]
        early = BrokerProcess(tmp_path / "early", options, f"127.0.0.1:{free_ports(1)[0]}")
        early.launch()
        with pytest.raises(ProcessEndedError, match="is Apache Kafka: stop every broker of Kafka"):
            early.wait_ready(WAIT_S)
        if how == "stopped":
            kafka.stop()
        else:
            kafka.kill()
            wait_for_the_end_of_sessions(kafka.zookeeper)
        with Cluster(
            BROKERS,
            SETTINGS,
            zookeeper=kafka.zookeeper,
            data=tmp_path,
            ports=kafka.ports,
            proxies=False,
        ) as cluster:
            cluster.wait_in_sync()
            assert observe(cluster.bootstrap) == expected
            write(producer, "on Ottla")
            check_group(cluster.bootstrap)
            left_open.commit_transaction(WAIT_S)
            found = committed(cluster.bootstrap)
            assert sorted(found) == sorted([*ENDED, *LEFT_OPEN, "behind the open one"])
            check_writing(cluster.bootstrap, left_open, expected)


def wait_for_the_end_of_sessions(zookeeper: str) -> None:
    state = ClusterState(zookeeper)
    try:
        limit = time.monotonic() + WAIT_S
        while state.live_brokers():
            assert time.monotonic() < limit
            time.sleep(0.1)
    finally:
        state.close()


def broker_settings(cluster: Cluster, broker: str) -> dict[str, str]:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    (future,) = admin.describe_configs([ConfigResource(ResourceType.BROKER, broker)]).values()
    return {name: each.value for name, each in future.result(WAIT_S).items()}


def check_group(bootstrap: str) -> None:
    """A member of the group goes on where Kafka's last one committed."""
    settings = {"group.id": GROUP, "enable.auto.commit": False, "auto.offset.reset": "error"}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    try:
        consumer.subscribe(["plain"])
        first: dict[int, int] = {}
        while len(first) < 3:
            message = consumer.poll(WAIT_S)
            assert message is not None
            assert message.error() is None
            first.setdefault(message.partition(), message.offset())
    finally:
        consumer.close()
    assert first == {0: 20, 1: 21, 2: 22}


def check_odd_settings(bootstrap: str) -> None:
    """A topic with settings that Kafka 4 would refuse can be changed."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    entry = ConfigEntry("retention.ms", "-1", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "odd", incremental_configs=[entry])
    (future,) = admin.incremental_alter_configs([resource]).values()
    future.result(WAIT_S)


def committed(bootstrap: str) -> list[str]:
    """What `read_committed` consumers get of the transactions."""
    found = []
    settings = {"group.id": "nobody", "enable.partition.eof": True, "fetch.wait.max.ms": 10}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    try:
        consumer.assign([TopicPartition("transactional", each, 0) for each in range(2)])
        ends = 0
        while ends < 2:
            message = consumer.poll(WAIT_S)
            assert message is not None
            if message.error() is None:
                found.append(message.value().decode())
            else:
                ends += 1
    finally:
        consumer.close()
    return found


def write(producer: Producer, text: str) -> None:
    failed = []
    for partition in range(3):
        producer.produce(
            "plain", text, partition=partition, on_delivery=lambda error, _: failed.append(error)
        )
    assert producer.flush(WAIT_S) == 0
    assert failed == [None] * 3


def check_writing(bootstrap: str, producer: Producer, expected: Mapping[str, Any]) -> None:
    """New records, with and without a transaction, come behind the old ones."""
    producer.begin_transaction()
    producer.produce("transactional", "new", partition=1)
    producer.commit_transaction(WAIT_S)
    assert "new" in committed(bootstrap)
    plain = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    write(plain, "new")
    for topic in ("odd", "compacted", "trimmed", "again", "empty"):
        plain.produce(topic, "new", "new", 0)
    assert plain.flush(WAIT_S) == 0
    after = observe(bootstrap)["topics"]
    for topic, seen in expected["topics"].items():
        for index, partition in seen["partitions"].items():
            low, _, records = partition["read_uncommitted"]
            now = after[topic]["partitions"][index]["read_uncommitted"]
            assert now[0] == low
            if topic != "compacted":
                assert now[2][: len(records)] == records
