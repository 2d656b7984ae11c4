"""Groups of the consumer protocol with Apache Kafka's own consumer and tools."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from components.apache_kafka import KafkaJars
from tests.system.test_consumer_groups import OPTIONS, NewReader, described
from tests.system.test_groups import fill, until

from components import fixture
from conformance import log_dump

kafka_jars = fixture.kafka_jars
pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


def test_a_group_of_kafkas_consumer_in_kafkas_tools(
    new_broker: Any, kafka_jars: KafkaJars, tmp_path: Path
) -> None:
    broker = new_broker(*OPTIONS, data=tmp_path / "data")
    address = ("--bootstrap-server", broker.bootstrap)
    fill(broker.bootstrap, "t", 5)
    read = kafka_jars.run(
        CONSUMER, *address, "--topic", "t", "--group", "g", "--from-beginning",
        "--max-messages", "20", "--consumer-property", "group.protocol=consumer",
    )  # fmt: skip
    assert read.count("x" * 50) == 20
    group = described(broker.bootstrap, "g")
    assert (group.state.name, group.type.name) == ("EMPTY", "CONSUMER")
    listed = kafka_jars.run(GROUPS, *address, "--list", "--state", "--type")
    assert re.search(r"^g +Consumer +Empty", listed, re.MULTILINE)
    reset = kafka_jars.run(
        GROUPS, *address, "--group", "g", "--topic", "t", "--reset-offsets", "--to-offset", "2",
        "--execute",
    )  # fmt: skip
    assert len(re.findall(r"^g +t +[0-3] +2", reset, re.MULTILINE)) == 4
    reader = NewReader(broker.bootstrap, "g")
    reader.subscribe("t")
    until(lambda: reader.read == 12, reader)
    reader.client.commit(asynchronous=False)
    shown = kafka_jars.run(GROUPS, *address, "--describe", "--group", "g")
    assert len(re.findall(r"^g +t +[0-3] .* 5 +5 +0 +\S+ +/127.0.0.1 +rdkafka", shown, re.M)) == 4
    members = kafka_jars.run(
        GROUPS, *address, "--describe", "--group", "g", "--members", "--verbose"
    )
    assert re.search(r"CURRENT-EPOCH +CURRENT-ASSIGNMENT +TARGET-EPOCH +TARGET-ASSIGNMENT", members)
    assert re.search(r"^g .* 4 +(\d+) +t:0,1,2,3 +\1 +t:0,1,2,3", members, re.MULTILINE)
    state = kafka_jars.run(GROUPS, *address, "--describe", "--group", "g", "--state", "--verbose")
    assert re.search(r"uniform +Stable +\d+ +\d+ +1$", state, re.MULTILINE)
    reader.client.close()
    deleted = kafka_jars.run(GROUPS, *address, "--delete", "--group", "g")
    assert "successful" in deleted
    assert broker.stop() == 0
    assert log_dump.faults(kafka_jars, tmp_path / "data") == []


def test_kafka_decodes_every_record(new_broker: Any, kafka_jars: KafkaJars, tmp_path: Path) -> None:
    broker = new_broker(*OPTIONS, data=tmp_path / "data")
    fill(broker.bootstrap, "t", 1)
    named = NewReader(broker.bootstrap, "g", **{"group.instance.id": "i"})
    by_expression = NewReader(broker.bootstrap, "g")
    named.subscribe("t")
    by_expression.subscribe("^t.*")
    until(lambda: len(named.owns) == len(by_expression.owns) == 2, named, by_expression)
    for each in (named, by_expression):
        each.client.close()
    assert broker.stop() == 0
    logs = sorted((tmp_path / "data").glob("__consumer_offsets-*/*.log"))
    files = ",".join(str(path) for path in logs if path.stat().st_size)
    shown = kafka_jars.run(log_dump.TOOL, "--files", files, "--offsets-decoder")
    kinds = set(map(int, re.findall(r'key: \{"type":"?(\d+)', shown)))
    assert kinds >= {3, 5, 6, 7, 8, 16}, shown[:3000]
    assert "Exception" not in shown
