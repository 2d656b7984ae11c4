"""Consume, transform, produce by several processes that are killed at random moments: with
librdkafka, kafka-python and the Java client. What comes out under read_committed is what went in,
once each and in order.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from components.apache_kafka import TOOL_JVM_FLAGS, KafkaJars
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.system.cluster_load import QUICK

from components import fixture
from ottla.testing import Cluster
from ottla.testing.child_process import start_child

kafka_jars = fixture.kafka_jars

PROGRAM: Final = Path(__file__).with_name("transactional_copier.py")
COPIER: Final = "org.apache.kafka.tools.TransactionalMessageCopier"
PARTITIONS: Final = 3
GROUP: Final = "copiers"
WAIT_S: Final = 60
SETTINGS: Final = {
    **QUICK,
    "group.min.session.timeout.ms": 1_000,
    "transaction.state.log.num.partitions": 4,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
}


def of_python(client: str) -> Any:
    """The command of one instance with a client of Python."""

    def command(bootstrap: str, source: str, target: str, number: int) -> list[str]:
        own_id = f"copier-{number}"
        return [sys.executable, str(PROGRAM), client, bootstrap, source, target, GROUP, own_id]

    return command


def of_java(jars: KafkaJars) -> Any:
    """The command of one instance with the Java client: Kafka's own tool for its system tests."""

    def command(bootstrap: str, source: str, target: str, number: int) -> list[str]:
        return jars.command(
            COPIER,
            *("--broker-list", bootstrap, "--input-topic", source, "--input-partition", "-1"),
            *("--output-topic", target, "--consumer-group", GROUP),
            *("--transactional-id", f"copier-{number}", "--transaction-size", "5"),
            *("--enable-random-aborts", "--group-mode", "--use-group-metadata"),
            jvm=TOOL_JVM_FLAGS,
        )

    return command


class Copiers:
    """Instances of one program; each has its transactional id also after a restart."""

    def __init__(self, command: Any, bootstrap: str, folder: Path, count: int) -> None:
        self._command = command
        self._bootstrap = bootstrap
        self._log = folder / "copiers.log"
        self._running = {number: self._start(number) for number in range(count)}
        self.ended = 0

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        arguments = self._command(self._bootstrap, "in", "out", number)
        return start_child(arguments, output=self._log)

    def kill(self, number: int) -> None:
        """And starts it again."""
        self._running[number].send_signal(signal.SIGKILL)
        self._running[number].wait(WAIT_S)
        self._running[number] = self._start(number)

    def restart_ended(self) -> None:
        """Those that a fence or a lost coordinator ended, as applications are restarted."""
        for number, process in self._running.items():
            if process.poll() is not None:
                self.ended += 1
                assert self.ended < 100, self._log.read_text()[-4_000:]
                self._running[number] = self._start(number)

    def close(self) -> None:
        for process in self._running.values():
            process.kill()
            process.wait(WAIT_S)


def create_and_fill(bootstrap: str, records: int, replicas: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    made = admin.create_topics([NewTopic(name, PARTITIONS, replicas) for name in ("in", "out")])
    for future in made.values():
        future.result(WAIT_S)
    feeder = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for number in range(records):
        feeder.produce("in", f"r{number}", partition=number % PARTITIONS)
    assert feeder.flush(WAIT_S) == 0


def committed_sum(reader: Consumer) -> int:
    partitions = [TopicPartition("in", partition) for partition in range(PARTITIONS)]
    return sum(max(each.offset, 0) for each in reader.committed(partitions, WAIT_S))


def reader_of(bootstrap: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": GROUP,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )


def end_of(reader: Consumer, partition: int) -> int:
    _, end = reader.get_watermark_offsets(TopicPartition("out", partition), WAIT_S, cached=False)
    return int(end)


def copied(bootstrap: str) -> dict[int, list[str]]:
    """The values of each partition, under read_committed, up to the end of the log."""
    reader = reader_of(bootstrap)
    uncommitted = Consumer({"bootstrap.servers": bootstrap, "group.id": "ends"})
    found: dict[int, list[str]] = {}
    for partition in range(PARTITIONS):
        until = time.monotonic() + WAIT_S
        # What killed instances left open is aborted by the next one with their id.
        while (end := end_of(reader, partition)) < end_of(uncommitted, partition):
            assert time.monotonic() < until, f"a transaction stays open in partition {partition}"
            time.sleep(0.1)
        reader.assign([TopicPartition("out", partition, 0)])
        values = found[partition] = []
        while (position := reader.position(reader.assignment())[0].offset) < end:
            assert time.monotonic() < until, f"partition {partition} ends at {position}"
            for message in reader.consume(1_000, timeout=0.2):
                assert message.error() is None
                values.append(message.value().decode())
    uncommitted.close()
    reader.close()
    return found


def run(
    cluster: Cluster,
    copiers: Copiers,
    records: int,
    pauses_s: Sequence[float],
    random: Random,
) -> None:
    """Kills an instance after each pause, and a broker while half of the records are copied."""
    reader = reader_of(cluster.bootstrap)
    until = time.monotonic() + 4 * WAIT_S
    pauses = list(pauses_s)
    next_kill = time.monotonic() + pauses.pop(0)
    broker, is_killed = random.choice((1, 2, 3)), False
    while (done := committed_sum(reader)) < records:
        assert time.monotonic() < until, f"{done} of {records} are copied"
        copiers.restart_ended()
        if time.monotonic() > next_kill:
            copiers.kill(random.randrange(3))
            next_kill = time.monotonic() + pauses.pop(0) if pauses else until
        if not is_killed and done > records // 4:
            cluster.kill(broker)
            is_killed = True
        if is_killed and done > records * 3 // 4 and not cluster.brokers[broker].running:
            cluster.start(broker)
        time.sleep(0.05)
    reader.close()


def expected(records: int, change: Any = str.upper) -> dict[int, list[str]]:
    return {
        partition: [change(f"r{number}") for number in range(partition, records, PARTITIONS)]
        for partition in range(PARTITIONS)
    }


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("client", ["confluent", "kafka-python"])
def test_copiers_of_python(tmp_path: Path, client: str) -> None:
    random, records = Random(1), 3_000
    pauses = [random.uniform(0.5, 4) for _ in range(6)]
    with Cluster(3, SETTINGS, data=tmp_path / "cluster") as cluster:
        create_and_fill(cluster.bootstrap, records, 3)
        copiers = Copiers(of_python(client), cluster.bootstrap, tmp_path, 3)
        try:
            run(cluster, copiers, records, pauses, random)
        finally:
            copiers.close()
        # The last ones may have left transactions open.
        copiers = Copiers(of_python(client), cluster.bootstrap, tmp_path, 3)
        try:
            assert copied(cluster.bootstrap) == expected(records)
        finally:
            copiers.close()


@pytest.mark.full
@pytest.mark.kafka
@pytest.mark.timeout(600)
def test_copiers_of_java(tmp_path: Path, kafka_jars: KafkaJars) -> None:
    random, records = Random(5), 3_000
    pauses = [random.uniform(2, 6) for _ in range(6)]
    with Cluster(3, SETTINGS, data=tmp_path / "cluster") as cluster:
        create_and_fill(cluster.bootstrap, records, 3)
        copiers = Copiers(of_java(kafka_jars), cluster.bootstrap, tmp_path, 3)
        try:
            run(cluster, copiers, records, pauses, random)
        finally:
            copiers.close()
        copiers = Copiers(of_java(kafka_jars), cluster.bootstrap, tmp_path, 3)
        try:
            assert copied(cluster.bootstrap) == expected(records, str)
        finally:
            copiers.close()


def test_an_instance_that_dies_in_a_transaction(new_broker: Any, tmp_path: Path) -> None:
    """The short one of `make test`: one broker, one instance, one kill."""
    broker = new_broker("--config", "group.min.session.timeout.ms=1000")
    records = 300
    create_and_fill(broker.bootstrap, records, 1)
    copiers = Copiers(of_python("confluent"), broker.bootstrap, tmp_path, 1)
    reader = reader_of(broker.bootstrap)
    until = time.monotonic() + WAIT_S
    try:
        while committed_sum(reader) < records // 4:
            assert time.monotonic() < until
        copiers.kill(0)
        while committed_sum(reader) < records:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert copied(broker.bootstrap) == expected(records)
    finally:
        copiers.close()
        reader.close()
