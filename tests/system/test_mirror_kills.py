"""`ottla mirror` while the mirror itself and brokers of both sides are killed, under load."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from components.apache_kafka import ApacheKafka, KafkaJars
from confluent_kafka import Producer
from tests.system.cluster_load import QUICK, create, produce, wait_for
from tests.system.test_mirror import FAST, all_values, command, failed, finished, producing

from components import fixture
from ottla.client.admin.committed_offsets import commit_offsets
from ottla.client.client import Client
from ottla.client.topic_partition import TopicPartition
from ottla.testing import Broker, Cluster

kafka_jars = fixture.kafka_jars
PARTITIONS = 2
pytestmark = pytest.mark.timeout(400)


class RunningMirror:
    """A mirror of topic `load`, which can be killed and started again."""

    def __init__(self, source: str, target: str, log: Path) -> None:
        self._command = command(source, target, *FAST, "load")
        self._log = log
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("a") as log:
            return subprocess.Popen(self._command, stdout=log, stderr=log)

    def kill_and_start(self) -> None:
        self.kill()
        self._process = self._start()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def check(self) -> None:
        """It goes on through the kills of brokers."""
        assert self._process.poll() is None, self._log.read_text()


@contextmanager
def mirroring(source: str, target: str, folder: Path) -> Iterator[RunningMirror]:
    running = RunningMirror(source, target, folder / "mirror.log")
    try:
        yield running
    finally:
        running.kill()


def kill_in_turn(
    turns: list[str], kills: Mapping[str, Callable[[], None]], mirror: RunningMirror, seed: int
) -> None:
    chance = random.Random(seed)
    for turn in turns:
        time.sleep(chance.uniform(2.0, 5.0))
        kills[turn]()
        mirror.check()
    time.sleep(2.0)
    mirror.check()


def check_all_is_there(source: str, target: str, count: int) -> None:
    """Every record once, in order."""
    events = finished(source, target, "load", "--once")
    assert events[-1]["lag"] == 0
    found = all_values(target, "load", PARTITIONS)
    assert count > 100
    expected = [str(each).encode() for each in range(count)]
    assert {each: len(values) for each, values in found.items()} == dict.fromkeys(found, count)
    assert found == dict.fromkeys(range(PARTITIONS), expected)


def restart_leader(cluster: Cluster) -> None:
    leader = cluster.leader("load")
    cluster.kill(leader)
    time.sleep(1.0)
    cluster.start(leader)


@pytest.mark.full
@pytest.mark.kafka
@pytest.mark.parametrize("seed", [1])
def test_from_apache_kafka_into_a_cluster(kafka_jars: KafkaJars, seed: int, tmp_path: Path) -> None:
    """Five kills: of the mirror, of the target's leader and of the source, in turn."""
    settings = {**fixture.SETTINGS, "num.partitions": str(PARTITIONS)}
    source = ApacheKafka(kafka_jars, tmp_path / "kafka", settings, jvm=fixture.JVM_FLAGS)

    def start_source() -> None:
        source.start()
        source.child.wait_for_port(source.port, fixture.START_WAIT_MS)

    def restart_source() -> None:
        source.child.kill()
        start_source()

    start_source()
    try:
        with (
            Cluster(3) as target,
            producing(source.address, "load", PARTITIONS) as end,
            mirroring(source.address, target.bootstrap, tmp_path) as mirror,
        ):
            kills = {
                "mirror": mirror.kill_and_start,
                "target": lambda: restart_leader(target),
                "source": restart_source,
            }
            turns = ["mirror", "target", "source", "mirror", "source"]
            kill_in_turn(turns, kills, mirror, seed)
            mirror.kill()
            check_all_is_there(source.address, target.bootstrap, end())
    finally:
        source.child.kill()


def test_the_leader_of_the_source_is_killed(tmp_path: Path) -> None:
    with (
        Cluster(3) as source,
        Broker() as target,
    ):
        source.create_topic("load", partitions=PARTITIONS)
        with (
            producing(source.bootstrap, "load", PARTITIONS) as end,
            mirroring(source.bootstrap, target.bootstrap, tmp_path) as mirror,
        ):
            kills = {"source": lambda: restart_leader(source)}
            kill_in_turn(["source", "source"], kills, mirror, seed=2)
            mirror.kill()
            check_all_is_there(source.bootstrap, target.bootstrap, end())


def produce_as_one(cluster: Cluster, topic: str, count: int) -> None:
    """Records in a transaction of their own."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": topic})
    producer.init_transactions(60)
    producer.begin_transaction()
    for number in range(count):
        producer.produce(topic, str(number), partition=0)
    producer.commit_transaction(60)


@pytest.mark.parametrize("write", [pytest.param(produce, marks=pytest.mark.full), produce_as_one])
def test_a_log_that_was_cut_and_has_grown_again_is_said(
    write: Callable[[Cluster, str, int], None], tmp_path: Path
) -> None:
    """An unclean election takes records away that were mirrored, and others take their offsets.
    Behind a transaction the position is not that of a record.
    """
    settings = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    internal = {
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "2",
        "transaction.state.log.min.isr": "1",
    }
    with Cluster(2, {**QUICK, **internal}) as source, Broker() as target:
        create(source, "load", replication_factor=2, config=settings)
        write(source, "load", 5)
        last = source.leader("load")
        (first,) = (each for each in source.brokers if each != last)
        source.kill(first)
        wait_for(
            "the leader to be alone",
            lambda: (source.state.partition("load", 0) or {})["isr"] == [last],
        )
        write(source, "load", 10)
        told = finished(source.bootstrap, target.bootstrap, "load", "--once")
        assert told[-1]["records"] == 15
        source.kill(last)
        source.start(first)
        assert source.wait_leader_other_than(last, "load") == first
        produce(source, "load", 20)
        told = finished(source.bootstrap, target.bootstrap, "load", "--once", code=1)
        assert [each["event"] for each in told] == ["log_cut", "stopped"]
        assert "has other records than those that were mirrored up to 1" in told[0]["text"]
        # Which has the group's coordinator, and follows the other's log.
        source.start(last)
        with Client(source.bootstrap) as client:
            assert not commit_offsets(client, "g", {TopicPartition("load", 0): 22})
        said = failed(source.bootstrap, target.bootstrap, "load", "--switch", "g")
        assert "cannot move group 'g': topic load is not mirrored on." in said
        assert len(target.consume("load")) == 15
