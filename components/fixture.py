"""pytest fixtures for Apache Kafka, PostgreSQL and Apicurio's schema registry.

Apache Kafka's jars must be in the cache; `make test` fetches them first. PostgreSQL must be
installed.

A test module imports a fixture by assignment, such as `kafka_jars = fixture.kafka_jars`.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from components import apicurio, kafka_streams
from components.apache_kafka import ApacheKafka, KafkaJars
from components.postgres import Postgres, find_programs

START_WAIT_MS = 60_000
# For a small heap and a fast start: a test's broker runs for seconds.
JVM_FLAGS = "-Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
SETTINGS = {"num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="session")
def kafka_jars() -> KafkaJars:
    """Apache Kafka's jars, with its tools; skips the test if they are not in the cache."""
    jars = KafkaJars.at_hand()
    if jars is None:
        pytest.skip("Apache Kafka's jars are not in the cache; `make test` fetches them")
    return jars


@pytest.fixture(scope="session")
def streams_jars(kafka_jars: KafkaJars) -> KafkaJars:
    """Apache Kafka's jars, where an application of Kafka Streams can be started beside them; skips
    the test elsewhere.
    """
    why = kafka_streams.why_missing()
    if why is not None:
        pytest.skip(why)
    return kafka_jars


@pytest.fixture(scope="module")
def apache_kafka(
    kafka_jars: KafkaJars, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApacheKafka]:
    """A running Apache Kafka for the tests of a module; clients connect to `address`."""
    folder: Path = tmp_path_factory.mktemp("kafka")
    broker = ApacheKafka(kafka_jars, folder, SETTINGS, jvm=JVM_FLAGS)
    broker.start()
    try:
        broker.child.wait_for_port(broker.port, START_WAIT_MS)
        yield broker
    finally:
        broker.stop()


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server with an empty database; skips the test where none is installed."""
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed. On Debian: apt-get install postgresql")
    server = Postgres(programs)
    try:
        server.make()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of Apicurio's registry; skips the test where it cannot be started."""
    try:
        with apicurio.serve(tmp_path_factory.mktemp("apicurio") / "log") as url:
            yield url
    except apicurio.ApicurioError as error:
        pytest.skip(str(error))
