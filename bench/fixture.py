"""Apache Kafka for tests, where its jars are in the cache; `make test` fetches them first.

A test module takes the fixtures in with `kafka_jars = fixture.kafka_jars` and the like.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.apache_kafka import ApacheKafka, KafkaJars

START_WAIT_MS = 60_000
# Small and soon up: a test's broker lives for seconds.
JVM_FLAGS = "-Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
SETTINGS = {"num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="session")
def kafka_jars() -> KafkaJars:
    """Apache Kafka's jars, with its tools; skips where they are not at hand."""
    jars = KafkaJars.at_hand()
    if jars is None:
        pytest.skip("Apache Kafka's jars are not in the cache; `make test` fetches them")
    return jars


@pytest.fixture(scope="module")
def apache_kafka(
    kafka_jars: KafkaJars, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApacheKafka]:
    """A running Apache Kafka for the tests of a module; `address` is where it listens."""
    folder: Path = tmp_path_factory.mktemp("kafka")
    broker = ApacheKafka(kafka_jars, folder, SETTINGS, jvm=JVM_FLAGS)
    broker.start()
    try:
        broker.child.wait_for_port(broker.port, START_WAIT_MS)
        yield broker
    finally:
        broker.stop()
