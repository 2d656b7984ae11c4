"""Every advertised request of a client in some situations, to Ottla and to Apache Kafka.

`make conformance ARGS="--only G"` has all situations; here are those of the rule itself, and with
the mark `full` the others.
"""

from __future__ import annotations

import pytest
from components.apache_kafka import KafkaJars

from components import fixture
from conformance.authorization import suite

kafka_jars = fixture.kafka_jars
pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]

RULE = (
    "no ACL",
    "everything",
    "everything by prefix",
    "denied by prefix",
    "a super user who is denied",
    "only DESCRIBE on TOPIC",
    "all but READ on GROUP",
    "no ACL, for everyone",
    "another one, for everyone",
    "only DESCRIBE on TOPIC, for everyone",
)


def test_the_rule(kafka_jars: KafkaJars) -> None:
    outcomes = list(suite.run(kafka_jars, RULE))
    assert [each.name for each in outcomes] == list(RULE)
    assert [each.line() for each in outcomes if each.state != "passed"] == []


@pytest.mark.full
def test_every_situation(kafka_jars: KafkaJars) -> None:
    outcomes = list(suite.run(kafka_jars, ()))
    assert [each.name for each in outcomes] == suite.names()
    assert [each.line() for each in outcomes if each.state != "passed"] == []
