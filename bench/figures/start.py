"""From the start of the process to the first acknowledged record, on an empty folder."""

import time
from collections.abc import Mapping

from confluent_kafka import Producer

from bench.brokers import running
from bench.measure import Bench, ClientError, Measure

CLIENT = {
    "acks": "all",
    "linger.ms": 0,
    "topic.metadata.refresh.fast.interval.ms": 20,
    "retry.backoff.ms": 20,
    "log_level": 0,
}
WAIT_SECONDS = 60.0


def first_produce(
    address: str, topic: str, partition: int, security: Mapping[str, str] | None = None
) -> None:
    """Write one record and wait until it is acknowledged. Raises ClientError.

    `security`: librdkafka's settings for a listener that is not plaintext.
    """
    producer = Producer({"bootstrap.servers": address, **CLIENT, **(security or {})})
    faults: list[str] = []
    producer.produce(
        topic,
        b"first",
        partition=partition,
        on_delivery=lambda error, _: faults.append(str(error)) if error else None,
    )
    if producer.flush(WAIT_SECONDS) or faults:
        raise ClientError(f"the first record was not acknowledged: {faults or 'no answer'}")


class Start:
    """Kafka's format step, which its first start requires, is a separate value."""

    name = "start"
    runs = None
    settings = (
        "empty data folder; one record to a new topic (auto-created, 1 partition) by"
        f" confluent-kafka, {CLIENT}; the port is tried every 5 ms"
    )
    measures = (
        Measure("start to first produce", "s", more_is_better=False, ratio=1.0, limit=0.5),
        Measure("start to open port", "s", more_is_better=False),
        Measure("format step before it", "s", more_is_better=False),
    )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        with running(contestant, bench.jars, prefix=bench.prefix) as broker:
            opened = time.monotonic() - broker.child.started
            first_produce(broker.address, "first", 0)
            took = time.monotonic() - broker.child.started
            found = {"start to first produce": took, "start to open port": opened}
            if broker.format_seconds:
                found["format step before it"] = broker.format_seconds
            return found
