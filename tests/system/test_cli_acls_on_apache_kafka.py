"""Users, ACLs and which one decides, on Apache Kafka itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from components.apache_kafka import ApacheKafka, KafkaJars
from tests.system import test_pipeline_on_secured_kafka
from tests.system.test_cli import Typed

kafka_jars = test_pipeline_on_secured_kafka.kafka_jars
pytestmark = [pytest.mark.full, pytest.mark.kafka, pytest.mark.timeout(300)]

WAIT_MS = 90_000
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.fixture(scope="module")
def kafka(kafka_jars: KafkaJars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Typed]:
    running = ApacheKafka(
        kafka_jars,
        tmp_path_factory.mktemp("kafka"),
        {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"},
    )
    running.start()
    try:
        running.child.wait_for_port(running.port, WAIT_MS)
        yield Typed(running.address)
    finally:
        running.stop()


def checked(kafka: Typed, *words: str, code: int = 0) -> Any:
    return json.loads(kafka.run("acl", "check", *words, "--json", code=code).stdout)


def test_users_and_acls(kafka: Typed) -> None:
    kafka.run("user", "add", "alice", "--iterations", "8192", data=b"secret\n")
    (alice,) = kafka.json("user", "list")
    assert alice["logins"] == [{"mechanism": "SCRAM-SHA-512", "iterations": 8192}]

    kafka.run("acl", "add", "alice", "Read,Write", "topic", "ord", "--prefixed")
    kafka.run("acl", "add", "alice", "Write", "topic", "orders", "--deny")
    assert len(kafka.json("acl", "list", "--principal", "alice")) == 3
    assert len(kafka.json("acl", "describe", "topic", "orders")["acls"]) == 3

    allowed = checked(kafka, "alice", "Describe", "topic", "orders")
    assert (allowed["allowed"], allowed["acl"]["pattern"]) == (True, "prefixed")
    denied = checked(kafka, "alice", "Write", "topic", "orders", code=1)
    # Apache Kafka does not show super.users.
    assert (denied["allowed"], denied["acl"]["permission"]) == (None, "deny")

    (described,) = kafka.json("user", "describe", "alice")
    assert len(described["acls"]) == 3
    kafka.run("acl", "delete", "alice", "--yes")
    assert kafka.json("acl", "list") == []
    kafka.run("user", "delete", "alice", "--yes")
    assert kafka.json("user", "list") == []
