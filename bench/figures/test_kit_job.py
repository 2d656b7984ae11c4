"""A process as that of a test run: `python -m bench.figures.test_kit_job WAY BEGAN [JARS JAVA]`.

Starts what the tests run against, runs tests one after the other, and prints seconds as JSON.
BEGAN is when this process was started, on the monotonic clock.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from statistics import median
from typing import Final

KIT, MOCK, KAFKA = "kit", "mock", "kafka"
FURTHER_TESTS: Final = 20
START_WAIT_MS: Final = 180_000
ANSWER_WITHIN_S: Final = 60.0


@contextmanager
def kit() -> Iterator[str]:
    """What the fixture ottla_broker starts."""
    from ottla.testing import Broker

    with Broker() as broker:
        yield broker.bootstrap


@contextmanager
def mock() -> Iterator[str]:
    """librdkafka's mock cluster, which lives in a client of this process."""
    from confluent_kafka import Producer

    client = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = client.list_topics(timeout=ANSWER_WITHIN_S).brokers.values()
    yield f"{broker.host}:{broker.port}"
    del client


@contextmanager
def kafka(jars: str, java: str) -> Iterator[str]:
    """Apache Kafka with what a KafkaContainer does: format, start, wait; without the container."""
    from components.apache_kafka import ApacheKafka, KafkaJars

    with tempfile.TemporaryDirectory(prefix="ottla-bench-", ignore_cleanup_errors=True) as scratch:
        broker = ApacheKafka(KafkaJars(Path(jars), java), Path(scratch), {})
        broker.start()
        try:
            broker.child.wait_for_port(broker.port, START_WAIT_MS)
            yield broker.address
        finally:
            broker.stop()


def test(address: str, topic: str, *, create: bool) -> None:
    """A record goes into a new topic, and comes out. The mock makes topics by itself."""
    from confluent_kafka import Consumer, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic

    client = {"bootstrap.servers": address, "log_level": 0}
    if create:
        admin = AdminClient(client)
        admin.create_topics([NewTopic(topic, 1)])[topic].result(ANSWER_WITHIN_S)
    producer = Producer(client)
    producer.produce(topic, b"first", partition=0)
    assert producer.flush(ANSWER_WITHIN_S) == 0, "the record was not acknowledged"
    consumer = Consumer({**client, "group.id": topic})
    consumer.assign([TopicPartition(topic, 0, 0)])
    message = consumer.poll(ANSWER_WITHIN_S)
    assert message is not None, "no record came"
    assert message.value() == b"first", message.error()
    consumer.close()


def main(way: str, began_s: float, *given: str) -> dict[str, float]:
    """Seconds: `import`, `first` (with import and start) and `further`, the median of a test."""
    before_s = time.monotonic()
    import confluent_kafka.admin  # noqa: F401 - what every test needs

    if way == KIT:
        import ottla.testing.broker  # noqa: F401
    imported_s = time.monotonic() - before_s
    create = way != MOCK
    starts: dict[str, Callable[..., AbstractContextManager[str]]]
    starts = {KIT: kit, MOCK: mock, KAFKA: kafka}
    with starts[way](*given) as address:
        test(address, "test-0", create=create)
        first_s = time.monotonic() - began_s
        times_s = []
        for number in range(1, 1 + FURTHER_TESTS):
            before_s = time.monotonic()
            test(address, f"test-{number}", create=create)
            times_s.append(time.monotonic() - before_s)
    return {"import": imported_s, "first": first_s, "further": median(times_s)}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], float(sys.argv[2]), *sys.argv[3:])))
