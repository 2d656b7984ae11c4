"""`ottla bench`, `group` and `topic list --sizes` as typed, on Ottla and on Apache Kafka."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import count
from typing import Any

import pytest
from tests.system.typed_command import WITHIN_S, typed

from components import fixture

pytestmark = [pytest.mark.full, pytest.mark.kafka]

kafka_jars = fixture.kafka_jars
apache_kafka = fixture.apache_kafka
NUMBERS = count(1)


class Typed:
    """Types commands at one broker."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def run(self, *words: object, data: bytes = b"", code: int = 0) -> str:
        return typed(self.bootstrap, *words, data=data, code=code)

    def json(self, *words: object) -> Any:
        return json.loads(self.run(*words, "--json"))


@pytest.fixture(params=["ottla", "apache"])
def cli(request: pytest.FixtureRequest) -> Typed:
    if request.param == "ottla":
        return Typed(request.getfixturevalue("broker").bootstrap)
    return Typed(request.getfixturevalue("apache_kafka").address)


def test_what_was_produced_is_consumed(cli: Typed) -> None:
    topic = f"bench-{next(NUMBERS)}"
    made = cli.json(
        "bench", "produce", topic, "-n", 5000, "--size", "200B", "--create", "--keys", 7
    )
    assert (made["records"], made["bytes"], made["errors"]) == (5000, 1_000_000, [])
    latencies = made["latency_ms"]
    assert 0 < latencies["p50"] <= latencies["p99"] <= latencies["max"]
    read = cli.json("bench", "consume", topic)
    assert (read["records"], read["latency_ms"]) == (5000, None)
    assert read["bytes"] == 1_000_000 + 5000
    slow = cli.json("bench", "produce", topic, "--rate", 50, "--for", 1)
    assert 25 <= slow["records"] <= 60
    said = cli.run("bench", "consume", topic, "-n", 10)
    assert said.startswith(f"Consumed from {topic}\nrecords")
    assert "there is no topic 'nowhere'" in cli.run("bench", "produce", "nowhere", code=1)


def test_sizes_lag_in_time_members_and_deleted_offsets(cli: Typed) -> None:
    topic, group = f"sized-{next(NUMBERS)}", f"group-{next(NUMBERS)}"
    cli.run("topic", "create", topic, "-p", 2)
    cli.run("produce", topic, "--partition", 0, data=b"x" * 500 + b"\n" + b"y\n")
    (row,) = cli.json("topic", "list", "--filter", f"^{topic}$", "--sizes")
    assert (row["offsets"], row["partitions"]) == (2, 2)
    assert row["size_bytes"] > 500
    cli.run("consume", topic, "-g", group, "-n", 1)
    (described,) = cli.json("group", "describe", group, "--time")
    (partition,) = [each for each in described["partitions"] if each["partition"] == 0]
    assert (partition["lag"], described["lag"]) == (1, 1)
    assert 0 < partition["behind_ms"] < 600_000
    assert described["behind_ms"] == partition["behind_ms"]
    assert " behind\n" in cli.run("group", "describe", group, "--time").splitlines(True)[0]
    assert cli.json("group", "members", group)[0]["members"] == []
    assert [each["group"] for each in cli.json("group", "list", "--filter", group)] == [group]
    words = ["group", "delete-offsets", group, "--topic", f"{topic}:0", "--yes"]
    assert f"Deleted 1 committed offset of group {group}." in cli.run(*words)
    assert "has no committed offsets there" in cli.run(*words, code=1)


def test_offsets_of_a_topic_that_is_read_are_kept(cli: Typed) -> None:
    topic, group = f"read-{next(NUMBERS)}", f"group-{next(NUMBERS)}"
    cli.run("topic", "create", topic, "-p", 1)
    cli.run("produce", topic, data=b"x\n")
    cli.run("consume", topic, "-g", group)
    reader = subprocess.Popen(
        [sys.executable, "-m", "ottla", "consume", topic, "-g", group, "-f"],
        stdout=subprocess.PIPE,
        env={**os.environ, "OTTLA_BOOTSTRAP": cli.bootstrap},
    )
    try:
        cli.run("produce", topic, data=b"y\n")
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"y\n"
        (members,) = cli.json("group", "members", group)
        (member,) = members["members"]
        assert member["assignment"] == [{"topic": topic, "partitions": [0]}]
        said = cli.run("group", "delete-offsets", group, "--topic", topic, "-y", code=1)
        assert f"its members are subscribed to {topic}" in said
    finally:
        reader.kill()
        reader.wait(WITHIN_S)
        assert reader.stdout is not None
        reader.stdout.close()
