"""Publishes every flight with confluent-kafka, keyed by its tail number."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from demo.processes import DemoError

PARTITIONS: Final = 4
_TIMEOUT_S: Final = 30
_SHOWN_EVERY: Final = 2_000


class Broker:
    """The demo's requests to the broker, over the Kafka protocol."""

    def __init__(self, bootstrap: str, topic: str, client: Mapping[str, str] | None = None) -> None:
        """`client`: librdkafka's settings, if the broker asks who comes."""
        self._settings = {"bootstrap.servers": bootstrap, "log_level": 0, **(client or {})}
        self._topic = topic
        self._admin: Any = AdminClient(self._settings)

    def create_topic(self, config: Mapping[str, str] | None = None) -> None:
        topic = NewTopic(self._topic, PARTITIONS, 1, config=dict(config or {}))
        futures = self._admin.create_topics([topic])
        futures[self._topic].result(timeout=_TIMEOUT_S)

    def publish(
        self,
        records: Iterable[tuple[bytes | None, bytes | None]],
        show: Callable[[int], None],
        timestamps_ms: Iterable[int] = itertools.repeat(0),
    ) -> int:
        """Send all records; return how many the broker acknowledged. Raises DemoError.

        `timestamps_ms`: those of the records; 0 is the time of sending.
        """
        sent = failed = 0

        def delivered(error: Any, _message: Any) -> None:
            nonlocal failed
            failed += error is not None

        producer: Any = Producer(
            self._settings
            | {
                "client.id": "demo",
                "linger.ms": 20,
                "compression.type": "lz4",
                "message.timeout.ms": 30_000,
            }
        )
        for (key, value), timestamp_ms in zip(records, timestamps_ms, strict=False):
            while True:
                try:
                    producer.produce(
                        self._topic, value, key, on_delivery=delivered, timestamp=timestamp_ms
                    )
                    break
                except BufferError:  # the queue is full: let the producer send
                    producer.poll(0.1)
            sent += 1
            if sent % _SHOWN_EVERY == 0:
                producer.poll(0)
                show(sent)
        left = producer.flush(_TIMEOUT_S)
        if left or failed:
            raise DemoError(f"{left + failed:,} of {sent:,} records were not acknowledged")
        show(sent)
        return sent

    def committed(self, group: str) -> tuple[int, int]:
        """Return how many records the topic has and how many of them the group has read."""
        from confluent_kafka.admin import OffsetSpec

        partitions = [TopicPartition(self._topic, number) for number in range(PARTITIONS)]
        try:
            asked = self._admin.list_offsets(
                {partition: OffsetSpec.latest() for partition in partitions}
            )
            ends = sum(future.result(timeout=_TIMEOUT_S).offset for future in asked.values())
            request = [ConsumerGroupTopicPartitions(group, partitions)]
            answer = self._admin.list_consumer_group_offsets(request)[group]
            committed_offsets = answer.result(timeout=_TIMEOUT_S).topic_partitions
        except KafkaException as error:
            raise DemoError(f"The broker does not respond: {error.args[0].str()}") from error
        return ends, sum(max(committed.offset, 0) for committed in committed_offsets)
