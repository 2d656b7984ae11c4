"""Apache Kafka's share consumers on three brokers, of which one dies: every record is delivered,
and each rejected one has its dead letter (KIP-1191)."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from components.apache_kafka import KafkaJars
from components.child import Child
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as PartitionAt
from tests.system.cluster_load import QUICK, create, produce
from tests.system.test_share_groups import CONSOLE, begin_at_the_earliest

from components import fixture
from ottla.testing import Cluster

kafka_jars = fixture.kafka_jars
pytestmark = [pytest.mark.kafka, pytest.mark.timeout(470)]

VERIFIABLE = "org.apache.kafka.tools.VerifiableShareConsumer"
JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
PARTITIONS = 6
RECORDS = 30
"""Of each partition, half of them before the broker dies."""
PATTERN = "accept,accept,reject"
"""By the offset of a record."""
WITHIN_S = 180
LETTERS = "dlq.t"

Position = tuple[int, int]
WANTED = {(partition, offset) for partition in range(PARTITIONS) for offset in range(RECORDS)}
REJECTED = {position for position in WANTED if position[1] % 3 == 2}


def fill(cluster: Cluster) -> None:
    for partition in range(PARTITIONS):
        told = produce(cluster, "t", RECORDS // 2, partition)
        assert told == ["NO_ERROR"] * (RECORDS // 2)


def delivered(consumers: list[Child]) -> set[Position]:
    """What the verifiable consumers say that they got."""
    found: set[Position] = set()
    for each in consumers:
        assert each.process.poll() is None, each.last_words()
        for said in each.log.read_text(errors="replace").splitlines():
            if said.startswith("{") and said.endswith("}"):
                event = json.loads(said)
                if event["name"] == "record_data":
                    found.add((event["partition"], event["offset"]))
    return found


class Letters:
    """Reads the topic of dead letters."""

    def __init__(self, bootstrap: str) -> None:
        self.client = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader"})
        self.client.assign([PartitionAt(LETTERS, index, 0) for index in range(2)])
        self.found: set[Position] = set()

    def read(self) -> set[Position]:
        for message in self.client.consume(500, 0.5):
            if message.error() is None:
                headers: dict[str, Any] = dict(message.headers() or [])
                numbers = (headers[f"__dlq.errors.{name}"] for name in ("partition", "offset"))
                partition, offset = map(int, numbers)
                self.found.add((partition, offset))
        return self.found


def test_every_record_is_delivered_and_every_rejected_one_has_a_dead_letter(
    tmp_path: Path, kafka_jars: KafkaJars
) -> None:
    settings = {**QUICK, "share.coordinator.state.topic.num.partitions": 4}
    with Cluster(3, settings, data=tmp_path / "cluster") as cluster:
        create(cluster, "t", PARTITIONS)
        allowed = {"errors.deadletterqueue.group.enable": "true"}
        create(cluster, LETTERS, 2, config=allowed)
        begin_at_the_earliest(cluster.bootstrap, "g", errors_deadletterqueue_topic_name=LETTERS)
        begin_at_the_earliest(cluster.bootstrap, "console")
        address = ("--bootstrap-server", cluster.bootstrap, "--topic", "t")
        consumers = [
            Child(
                kafka_jars.command(
                    VERIFIABLE, *address, "--group-id", "g", "--verbose",
                    "--acknowledgement-mode", "sync", "--ack-pattern", PATTERN, jvm=JVM,
                ),
                tmp_path / f"verifiable-{number}.log",
            )
            for number in range(2)
        ]  # fmt: skip
        count = str(len(WANTED))
        console = Child(
            kafka_jars.command(
                CONSOLE, *address, "--group", "console", "--max-messages", count,
                "--timeout-ms", str(WITHIN_S * 1_000), jvm=JVM,
            ),
            tmp_path / "console.log",
        )  # fmt: skip
        try:
            fill(cluster)
            end = time.monotonic() + WITHIN_S
            while not delivered(consumers):
                assert time.monotonic() < end, consumers[0].last_words()
                time.sleep(0.5)
            cluster.kill(2)
            fill(cluster)
            letters = Letters(cluster.bootstrap)
            end = time.monotonic() + WITHIN_S
            while not (delivered(consumers) >= WANTED and letters.read() >= REJECTED):
                missing = WANTED - delivered(consumers), REJECTED - letters.found
                assert time.monotonic() < end, missing
                time.sleep(0.5)
            assert letters.found == REJECTED
            assert delivered(consumers) == WANTED
            while console.process.poll() is None:
                assert time.monotonic() < end + WITHIN_S, console.last_words()
                time.sleep(0.2)
            assert f"Processed a total of {count} messages" in console.log.read_text()
            letters.client.close()
        finally:
            for each in (*consumers, console):
                each.stop()
