"""Share groups with librdkafka's share consumer and Apache Kafka's own tools."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from components.apache_kafka import KafkaJars
from confluent_kafka import AcknowledgeType, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from tests.system.test_groups import fill

from components import fixture
from conformance import log_dump
from ottla.testing import BrokerProcess

kafka_jars = fixture.kafka_jars
WITHIN_S = 60
CONSOLE = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
DUMP = "org.apache.kafka.tools.DumpLogSegments"
QUICK_SHARES = {
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "300",
}
"""A member learns what it reads with its second heartbeat."""
OPTIONS = [
    word
    for name, value in {**QUICK_SHARES, "share.coordinator.state.topic.num.partitions": "2"}.items()
    for word in ("--config", f"{name}={value}")
]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    running = BrokerProcess(tmp_path_factory.mktemp("broker") / "data", OPTIONS).start()
    yield running
    assert running.stop() == 0, running.said()


def begin_at_the_earliest(bootstrap: str, group: str, **settings: str) -> None:
    """The group gets what is there already."""
    values = {"share.auto.offset.reset": "earliest"}
    values |= {name.replace("_", "."): value for name, value in settings.items()}
    resource = ConfigResource(
        ConfigResource.Type.GROUP,
        group,
        incremental_configs=[
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in values.items()
        ],
    )
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(30)


class Member:
    """A share consumer that says itself what became of its records."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.client = ShareConsumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "share.acknowledgement.mode": "explicit",
            }
        )
        self.client.subscribe([topic])
        self.got: list[tuple[int, int]] = []

    def poll(self, how: AcknowledgeType, most: int = 10_000) -> list[tuple[int, int]]:
        """What one poll brings, all of it said and committed."""
        found = []
        for message in self.client.poll(1.0)[:most]:
            assert message.error() is None, message.error()
            found.append((message.partition(), message.offset()))
            self.client.acknowledge(message, how)
        if found:
            self.client.commit_sync(30)
        self.got += found
        return found


def test_two_members_share_the_records_of_a_topic(broker: Any) -> None:
    fill(broker.bootstrap, "work", 50)
    begin_at_the_earliest(broker.bootstrap, "workers")
    members = [Member(broker.bootstrap, "workers", "work") for _ in range(2)]
    end = time.monotonic() + WITHIN_S
    while sum(len(each.got) for each in members) < 200 and time.monotonic() < end:
        for each in members:
            each.poll(AcknowledgeType.ACCEPT)
    got = [record for each in members for record in each.got]
    assert sorted(got) == [(partition, offset) for partition in range(4) for offset in range(50)]
    assert members[0].poll(AcknowledgeType.ACCEPT) == []
    for each in members:
        each.client.close()


def test_a_released_record_comes_again_and_a_rejected_one_does_not(broker: Any) -> None:
    fill(broker.bootstrap, "again", 5)
    begin_at_the_earliest(broker.bootstrap, "patient", share_delivery_count_limit="3")
    member = Member(broker.bootstrap, "patient", "again")
    end = time.monotonic() + WITHIN_S
    counts: dict[tuple[int, int], int] = {}
    while (len(counts) < 20 or min(counts.values()) < 3) and time.monotonic() < end:
        for record in member.poll(AcknowledgeType.RELEASE):
            counts[record] = counts.get(record, 0) + 1
    assert set(counts.values()) == {3}, counts
    assert member.poll(AcknowledgeType.REJECT) == []
    member.client.close()


@pytest.mark.kafka
@pytest.mark.timeout(600)
def test_kafkas_console_reads_for_a_share_group_and_its_dump_decodes_the_states(
    new_broker: Any, kafka_jars: KafkaJars, tmp_path: Path
) -> None:
    broker = new_broker(*OPTIONS, data=tmp_path / "data")
    fill(broker.bootstrap, "t", 5)
    begin_at_the_earliest(broker.bootstrap, "g")
    address = ("--bootstrap-server", broker.bootstrap)
    read = kafka_jars.run(
        CONSOLE, *address, "--topic", "t", "--group", "g", "--max-messages", "20",
        "--timeout-ms", "60000",
    )  # fmt: skip
    assert read.count("x" * 50) == 20
    member = Member(broker.bootstrap, "g", "t")
    fill(broker.bootstrap, "t", 1)
    end = time.monotonic() + WITHIN_S
    while len(member.got) < 4 and time.monotonic() < end:
        member.poll(AcknowledgeType.ACCEPT)
    assert sorted(member.got) == [(partition, 5) for partition in range(4)]
    member.client.close()
    assert broker.stop() == 0
    assert log_dump.faults(kafka_jars, tmp_path / "data") == []
    logs = sorted((tmp_path / "data").glob("__share_group_state-*/*.log"))
    said = kafka_jars.run(DUMP, "--files", ",".join(map(str, logs)), "--share-group-state-decoder")
    assert len(re.findall(r'"snapshotEpoch":0,"stateEpoch".*"startOffset":-1', said)) == 4, said
    acked = (
        '"startOffset":0,"deliveryCompleteCount":5,"stateBatches":[{"firstOffset":0,"lastOffset":4'
    )
    assert said.count(acked) == 4, said
