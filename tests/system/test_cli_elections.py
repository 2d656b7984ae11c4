"""`ottla cluster elect` on clusters that lose brokers: Ottla's, and Apache Kafka's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from components.apache_kafka import ApacheKafka, KafkaJars
from confluent_kafka.admin import AdminClient
from tests.system.cluster_load import QUICK, create, produce, wait_for, wait_out_of_sync
from tests.system.typed_command import typed

from components import fixture
from ottla.testing import Cluster
from ottla.testing.ports import HOST, free_ports

kafka_jars = fixture.kafka_jars
pytestmark = pytest.mark.full

JVM = "-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
START_S = 60_000


def offline(bootstrap: str, topic: str) -> bool:
    """Whether the broker that answers says that partition 0 has no leader."""
    (described,) = json.loads(typed(bootstrap, "topic", "describe", topic, "--json"))
    return described["partitions"][0]["leader"] is None


def elected(bootstrap: str, *words: object) -> tuple[int, int | None, int]:
    """The preferred leader, and the one before and after an election that changed it."""
    (row,) = json.loads(typed(bootstrap, "cluster", "elect", *words, "--json"))
    assert row["error"] is None
    return row["preferred"], row["before"], row["after"]


def values(bootstrap: str, topic: str) -> list[str]:
    return typed(bootstrap, "consume", topic).splitlines()


def test_an_unclean_election_on_a_cluster(tmp_path: Path) -> None:
    """Nobody else is in sync: without the command, the partition has no leader."""
    topic = "unclean"
    with Cluster(3, QUICK, data=tmp_path / "cluster") as cluster:
        create(cluster, topic, config={"min.insync.replicas": "1"})
        assert produce(cluster, topic, 5) == ["NO_ERROR"] * 5
        last = cluster.leader(topic)
        first, second = (each for each in cluster.brokers if each != last)
        cluster.kill(first)
        wait_out_of_sync(cluster, first, topic)
        cluster.kill(second)
        wait_out_of_sync(cluster, second, topic)
        assert produce(cluster, topic, 3) == ["NO_ERROR"] * 3
        cluster.kill(last)
        cluster.start(first)
        at = cluster.brokers[first].bootstrap
        wait_for("the partition to have no leader", lambda: offline(at, topic))

        refused = typed(at, "cluster", "elect", topic, "--unclean", code=2)
        assert "and lose what they do not have?" in refused
        shown = typed(at, "cluster", "elect", topic, "--unclean", "--yes", notes=True)
        assert (
            f"{topic}-0: broker {first}, the leader now, was not in sync. "
            f"The records that only broker {last} has are lost."
        ) in " ".join(shown.split())
        assert values(at, topic) == ["0", "1", "2", "3", "4"]
        again = typed(at, "cluster", "elect", topic, "--unclean", notes=True)
        assert "Nothing to elect" in again
        cluster.start(second)
        cluster.start(last)
        cluster.wait_in_sync(topic)
        assert values(cluster.brokers[last].bootstrap, topic) == ["0", "1", "2", "3", "4"]


class KafkaCluster:
    """Three brokers of Apache Kafka; the first is also the controller, and has to stay up."""

    def __init__(self, jars: KafkaJars, folder: Path) -> None:
        ports, controller = free_ports(3), free_ports(1)[0]
        common = {
            **fixture.SETTINGS,
            "controller.quorum.voters": f"1@{HOST}:{controller}",
            "auto.leader.rebalance.enable": "false",
            "replica.lag.time.max.ms": "3000",
            "offsets.topic.replication.factor": "1",
        }
        self.brokers: dict[int, ApacheKafka] = {}
        for number, port in enumerate(ports, 1):
            own = {"node.id": str(number), "advertised.listeners": f"PLAINTEXT://{HOST}:{port}"}
            own["listeners"] = own["advertised.listeners"]
            if number == 1:
                own["listeners"] += f",CONTROLLER://{HOST}:{controller}"
            else:
                own["process.roles"] = "broker"
            broker = ApacheKafka(jars, folder / str(number), {**common, **own}, jvm=JVM)
            broker.port = port
            self.brokers[number] = broker

    @property
    def bootstrap(self) -> str:
        return self.brokers[1].address

    def start(self, number: int) -> None:
        """Returns when the broker is one of those that the controller names."""
        self.brokers[number].start()
        self.brokers[number].child.wait_for_port(self.brokers[number].port, START_S)
        wait_for(f"broker {number}", lambda: number in self.live(), 60)

    def live(self) -> list[int]:
        described = json.loads(typed(self.bootstrap, "cluster", "describe", "--json"))
        return [each["id"] for each in described["brokers"] if each["live"]]

    def partition(self, topic: str) -> Any:
        (described,) = json.loads(typed(self.bootstrap, "topic", "describe", topic, "--json"))
        return described["partitions"][0]

    def is_leaderless(self, topic: str) -> bool:
        """By metadata alone: the settings, which `describe` also shows, may be asked of a broker
        that has just been killed.
        """
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        return bool(admin.list_topics(topic, 30).topics[topic].partitions[0].leader == -1)

    def wait_in_sync(self, topic: str, *numbers: int) -> None:
        wait_for(
            f"{numbers} to be in sync",
            lambda: sorted(self.partition(topic)["in_sync"]) == sorted(numbers),
            60,
        )


@pytest.fixture
def kafka(kafka_jars: KafkaJars, tmp_path: Path) -> Iterator[KafkaCluster]:
    cluster = KafkaCluster(kafka_jars, tmp_path)

    def is_live(number: int) -> bool:
        return number in cluster.live()

    with ExitStack() as stops:
        for number, broker in cluster.brokers.items():
            broker.start()
            stops.callback(broker.stop)
            broker.child.wait_for_port(broker.port, START_S)
            wait_for(f"broker {number}", partial(is_live, number), 60)
        yield cluster


@pytest.mark.kafka
@pytest.mark.timeout(600)
def test_both_elections_on_apache_kafka(kafka: KafkaCluster) -> None:
    topic = "elected"
    created = typed(kafka.bootstrap, "topic", "create", topic, "--assign", "2:3")
    assert "1 partition" in created
    kafka.wait_in_sync(topic, 2, 3)

    kafka.brokers[2].stop()
    kafka.wait_in_sync(topic, 3)
    kafka.start(2)
    kafka.wait_in_sync(topic, 2, 3)
    assert elected(kafka.bootstrap, topic) == (2, 3, 2)
    assert kafka.partition(topic)["leader"] == 2

    typed(kafka.bootstrap, "produce", topic, data=b"kept\n")
    kafka.brokers[3].stop()
    kafka.wait_in_sync(topic, 2)
    typed(kafka.bootstrap, "produce", topic, data=b"lost\n")
    kafka.brokers[2].child.process.kill()
    kafka.brokers[2].stop()
    wait_for("no leader", lambda: kafka.is_leaderless(topic), 60)
    kafka.start(3)
    assert kafka.partition(topic)["leader"] is None
    assert elected(kafka.bootstrap, topic, "--unclean", "--yes") == (2, None, 3)
    assert values(kafka.bootstrap, topic) == ["kept"]
