"""The commands that send requests of their own, on Apache Kafka itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.system.typed_command import typed

from components import fixture

pytestmark = [pytest.mark.full, pytest.mark.kafka]

kafka_jars = fixture.kafka_jars
apache_kafka = fixture.apache_kafka


def run(kafka: Any, *words: object, data: bytes = b"", code: int = 0) -> str:
    return typed(kafka.address, *words, data=data, code=code)


def answer(kafka: Any, *words: object) -> Any:
    return json.loads(run(kafka, *words, "--json"))


def test_what_is_stored(apache_kafka: Any) -> None:
    run(apache_kafka, "topic", "create", "stored", "-p", 2)
    run(apache_kafka, "produce", "stored", "--partition", 1, data=b"x" * 1000 + b"\n")
    (folder,) = answer(apache_kafka, "cluster", "log-dirs", "stored")
    sizes = {each["partition"]: each["size_bytes"] for each in folder["replicas"]}
    assert sizes[0] == 0
    assert sizes[1] > 1000
    assert folder["total_bytes"] > 0


def test_reassignments(apache_kafka: Any) -> None:
    run(apache_kafka, "topic", "create", "moved", "-p", 2)
    assert answer(apache_kafka, "cluster", "reassign", "--list") == []
    same = answer(apache_kafka, "cluster", "reassign", "moved", "--brokers", 1, "-y")
    assert same == {"requested": False, "done": True, "moved": []}
    assert "there is no live broker '9'" in run(
        apache_kafka, "cluster", "reassign", "moved", "--assign", "9,1", "-y", code=1
    )
    assert answer(apache_kafka, "cluster", "elect", "moved") == []


def test_limits(apache_kafka: Any) -> None:
    run(apache_kafka, "topic", "create", "limited")
    shown = answer(apache_kafka, "cluster", "throttle", "limited", "--rate", "1MiB")
    assert shown == {
        "brokers": [{"broker": 1, "leader_rate": 1 << 20, "follower_rate": 1 << 20}],
        "topics": [{"topic": "limited", "leader_replicas": "*", "follower_replicas": "*"}],
    }
    assert run(apache_kafka, "cluster", "throttle", "--off") == "Replication is not limited.\n"
