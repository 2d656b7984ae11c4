"""Share groups with Apache Kafka's own tools; their members here read nothing, but join."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from components.apache_kafka import KafkaJars
from tests.system.share_member import Member
from tests.system.test_groups import fill

from components import fixture
from conformance import log_dump
from ottla.client.client import Client

kafka_jars = fixture.kafka_jars
pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

SHARES = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
OPTIONS = ("--config", "group.share.assignment.interval.ms=0")


def test_kafkas_tools(new_broker: Any, kafka_jars: KafkaJars, tmp_path: Path) -> None:
    broker = new_broker(*OPTIONS, data=tmp_path / "data")
    address = ("--bootstrap-server", broker.bootstrap)

    def tool(*arguments: str) -> str:
        said: str = kafka_jars.run(SHARES, *address, *arguments)
        return said

    fill(broker.bootstrap, "t", 5)
    with Client(broker.bootstrap) as client:
        member = Member(client, "g")
        member.join("t", 4)
        assert re.search(r"^g +Stable", tool("--list", "--state"), re.MULTILINE)
        shown = tool("--describe", "--group", "g")
        assert len(re.findall(r"^g +t +[0-3] +- +-", shown, re.MULTILINE)) == 4, shown
        members = tool("--describe", "--group", "g", "--members", "--verbose")
        assert re.search(rf"{member.member_id} .*t:0,1,2,3", members), members
        state = tool("--describe", "--group", "g", "--state", "--verbose")
        assert re.search(r" Stable +(\d+) +\1 +1$", state, re.MULTILINE), state
        member.leave()
    reset = tool("--reset-offsets", "--group", "g", "--topic", "t", "--to-earliest", "--execute")
    assert len(re.findall(r"^g +t +[0-3] +0", reset, re.MULTILINE)) == 4, reset
    shown = tool("--describe", "--group", "g")
    assert len(re.findall(r"^g +t +[0-3] +0 +5", shown, re.MULTILINE)) == 4, shown
    assert "Successful" in tool("--delete-offsets", "--group", "g", "--topic", "t")
    assert "successful" in tool("--delete", "--group", "g")
    assert not re.search(r"^g\b", tool("--list"), re.MULTILINE)
    assert broker.stop() == 0
    assert log_dump.faults(kafka_jars, tmp_path / "data") == []


def test_kafka_decodes_every_record(new_broker: Any, kafka_jars: KafkaJars, tmp_path: Path) -> None:
    broker = new_broker(*OPTIONS, data=tmp_path / "data")
    fill(broker.bootstrap, "t", 1)
    with Client(broker.bootstrap) as client:
        Member(client, "g").join("t", 4)
    assert broker.stop() == 0
    logs = sorted((tmp_path / "data").glob("__consumer_offsets-*/*.log"))
    files = ",".join(str(path) for path in logs if path.stat().st_size)
    shown = kafka_jars.run(log_dump.TOOL, "--files", files, "--offsets-decoder")
    kinds = set(map(int, re.findall(r'key: \{"type":"?(\d+)', shown)))
    assert kinds == {10, 11, 12, 13, 14, 15}, shown[:3000]
    assert "Exception" not in shown
    assert '"initializedTopics":[{' in shown.replace(" ", "")
