"""Brokers that speak with each other by TLS and SASL."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kazoo.client import KazooClient
from tests.security.authority import Authority

from ottla.testing import BrokerProcess
from ottla.testing.ports import HOST, free_ports
from ottla.testing.zookeeper_server import ZooKeeperEnsemble

WAIT_S = 60
USER = 'ScramLoginModule required username="broker" password="brokers-secret";'


def settings(folder: Path, zookeeper: str, number: int, ports: tuple[int, int]) -> dict[str, str]:
    clients, brokers = ports
    return {
        "node.id": str(number),
        "zookeeper.connect": zookeeper,
        "listeners": f"PLAINTEXT://{HOST}:{clients},BROKERS://{HOST}:{brokers}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:SASL_SSL",
        "inter.broker.listener.name": "BROKERS",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "listener.name.brokers.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.brokers.scram-sha-512.sasl.jaas.config": USER,
        "listener.name.brokers.connections.max.reauth.ms": "4000",
        "ottla.first.users": "SCRAM-SHA-512=[name=broker,password=brokers-secret]",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "trust.pem"),
        "offsets.topic.replication.factor": "2",
    }


@pytest.fixture
def ensemble(tmp_path: Path) -> Iterator[ZooKeeperEnsemble]:
    ensemble = ZooKeeperEnsemble(tmp_path / "zookeeper")
    try:
        ensemble.start()
        yield ensemble
    finally:
        ensemble.stop()


@pytest.fixture
def brokers(tmp_path: Path, ensemble: ZooKeeperEnsemble) -> Iterator[list[BrokerProcess]]:
    authority = Authority()
    authority.issue("CN=broker").store(tmp_path / "broker.pem")
    authority.trust(tmp_path / "trust.pem")
    ports = free_ports(4)
    started: list[BrokerProcess] = []
    try:
        for number in (1, 2):
            pair = ports[2 * number - 2], ports[2 * number - 1]
            given = settings(tmp_path, ensemble.connect, number, pair)
            options = [word for each in given.items() for word in ("-c", "=".join(each))]
            broker = BrokerProcess(
                tmp_path / f"data-{number}", options, bootstrap=f"{HOST}:{pair[0]}"
            )
            started.append(broker)
            broker.start()
        yield started
    finally:
        for broker in started:
            broker.end()


def test_brokers_replicate(brokers: list[BrokerProcess]) -> None:
    bootstrap = {"bootstrap.servers": brokers[1].bootstrap}
    admin = AdminClient(bootstrap)
    topic = NewTopic("t", num_partitions=4, replication_factor=2)
    admin.create_topics([topic], request_timeout=WAIT_S)["t"].result(WAIT_S)
    producer = confluent_kafka.Producer(bootstrap | {"acks": "all"})
    for number in range(1000):
        producer.produce("t", str(number).encode())
        if number % 100 == 0:
            assert producer.flush(WAIT_S) == 0
    assert producer.flush(WAIT_S) == 0
    partitions = admin.list_topics("t", timeout=WAIT_S).topics["t"].partitions.values()
    assert all(sorted(each.isrs) == [1, 2] for each in partitions)
    assert {each.leader for each in partitions} == {1, 2}
    assert "refused" not in brokers[0].said() + brokers[1].said()


def test_the_secret_is_changed_while_the_cluster_runs(
    brokers: list[BrokerProcess], ensemble: ZooKeeperEnsemble
) -> None:
    bootstrap = {"bootstrap.servers": ",".join(each.bootstrap for each in brokers)}
    admin = AdminClient(bootstrap)
    topic = NewTopic("t", 4, 2, config={"min.insync.replicas": "2"})
    admin.create_topics([topic], request_timeout=WAIT_S)["t"].result(WAIT_S)
    tree = KazooClient(ensemble.connect)
    tree.start(WAIT_S)
    before = tree.get("/ottla/secret")[0]
    tree.delete("/ottla/secret")
    producer = confluent_kafka.Producer(bootstrap | {"acks": "all"})
    refused: list[object] = []
    for broker in brokers:
        broker.stop()
        broker.start()
        for _ in range(100):
            producer.produce(
                "t", b"x", on_delivery=lambda error, _: error and refused.append(error)
            )
        assert producer.flush(WAIT_S) == 0
    assert refused == []
    assert tree.get("/ottla/secret")[0] != before
    tree.stop()
    tree.close()


def in_sync(admin: AdminClient) -> list[set[int]]:
    partitions = admin.list_topics("t", timeout=WAIT_S).topics["t"].partitions.values()
    return [set(each.isrs) for each in partitions]


def until(check: Callable[[], bool]) -> None:
    limit = time.monotonic() + WAIT_S
    while not check():
        assert time.monotonic() < limit
        time.sleep(0.1)


def test_a_broker_with_a_wrong_password_hurts_nobody_and_tries_again(
    brokers: list[BrokerProcess],
) -> None:
    first, second = brokers
    bootstrap = {"bootstrap.servers": first.bootstrap}
    admin = AdminClient(bootstrap)
    topic = NewTopic("t", num_partitions=4, replication_factor=2)
    admin.create_topics([topic], request_timeout=WAIT_S)["t"].result(WAIT_S)
    second.stop()
    second.options = [word.replace("brokers-secret", "wrong") for word in second.options]
    second.launch()
    until(lambda: "refused this broker: Authentication failed" in second.said())

    producer = confluent_kafka.Producer(bootstrap | {"acks": "all"})
    failures: list[object] = []
    for _ in range(100):
        producer.produce("t", b"x", on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(WAIT_S) == 0
    assert failures == [None] * 100
    assert in_sync(admin) == [{1}] * 4

    # As if its password had been the right one, and that of the cluster the wrong one.
    scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion("broker", scram, b"wrong")
    admin.alter_user_scram_credentials([change])["broker"].result(WAIT_S)
    until(lambda: in_sync(admin) == [{1, 2}] * 4)
    assert "Traceback" not in first.said() + second.said()
