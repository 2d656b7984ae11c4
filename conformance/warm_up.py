"""Prepares a new broker for the suites: creates its offsets topic.

A client that fetches a group's offsets during the creation of that topic may get `Not coordinator`,
on Apache Kafka too, and some of librdkafka's tests treat that as a failure.
"""

import time
import uuid
from collections.abc import Mapping

from confluent_kafka import Consumer, Producer, TopicPartition

WAIT_SECONDS = 30.0


class NotReadyError(Exception):
    """The broker did not accept a record or a group's offset in time."""


def warm_up(bootstrap: str, client: Mapping[str, str] | None = None) -> None:
    """Write one record and commit one offset. `client`: librdkafka's settings, without the address.

    Raises NotReadyError.
    """
    topic = f"warm-up-{uuid.uuid4().hex[:8]}"
    common = {"bootstrap.servers": bootstrap, "log_level": 0, **(client or {})}
    producer = Producer(common)
    producer.produce(topic, b"warm up")
    if producer.flush(WAIT_SECONDS):
        raise NotReadyError(f"{bootstrap} did not take a record in {WAIT_SECONDS:.0f} s")
    settings = {**common, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    try:
        consumer.subscribe([topic])
        limit = time.monotonic() + WAIT_SECONDS
        while (message := consumer.poll(0.2)) is None or message.error():
            if time.monotonic() > limit:
                raise NotReadyError(f"a group on {bootstrap} read nothing in {WAIT_SECONDS:.0f} s")
        offset = TopicPartition(topic, message.partition() or 0, 1)
        consumer.commit(offsets=[offset], asynchronous=False)
    finally:
        consumer.close()
