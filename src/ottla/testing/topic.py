"""A topic in a test: write records into it, read them, compare them with what is expected.

The client is confluent-kafka, as in any application. Its client id is the kit's, so that no fault
of the test meets it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ottla.testing.errors import KitError, counted, is_for_the_test
from ottla.testing.fault_rule import KIT_CLIENT_ID
from ottla.testing.record import Expected, ReadRecord
from ottla.testing.record_difference import compare, difference

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, Producer

__tracebackhide__ = is_for_the_test

WAIT_S: Final = 10.0
_FETCH_WAIT_MS: Final = 20
_POLL_S: Final = 0.05
MAX_RECORDS: Final = 1_000_000
"""Of one read; the kit holds them all in memory."""


class Topic:
    """One topic of a broker or cluster. The methods whose names end with `_async` are the same for
    tests that run on an event loop; they wait in a thread.
    """

    def __init__(
        self,
        name: str,
        bootstrap: str,
        producer: Producer,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """`bootstrap`: as in Kafka's bootstrap.servers. `settings`: librdkafka's about security."""
        self.name = name
        self.bootstrap = bootstrap
        self._producer = producer
        self._settings = settings or {}

    def __str__(self) -> str:
        return self.name

    def produce(
        self,
        *values: Any,
        key: str | bytes | None = None,
        headers: Mapping[str, str | bytes | None] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        timeout_s: float = WAIT_S,
    ) -> list[ReadRecord]:
        """Write a record for each value and wait until all are acknowledged; returns them with
        their partitions and offsets.

        A value is text, bytes, None (a tombstone), a dict or list (written as JSON), or a pair of
        key and value. Raises KitError with the broker's reason.
        """
        from confluent_kafka import KafkaException

        done: list[Message] = []
        reasons: list[str] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                done.append(message)
            else:
                reasons.append(error.str())

        options: dict[str, Any] = {"headers": list((headers or {}).items())}
        if partition is not None:
            options["partition"] = partition
        if timestamp_ms is not None:
            options["timestamp"] = timestamp_ms
        for each in values:
            its_key, value = each if isinstance(each, tuple) else (key, each)
            try:
                self._producer.produce(
                    self.name, _written(value), its_key, on_delivery=delivered, **options
                )
            except KafkaException as error:
                reasons.append(error.args[0].str())
        left = self._producer.flush(timeout_s)
        if reasons or left:
            why = reasons[0] if reasons else f"no acknowledgement within {timeout_s:g} s"
            raise KitError(f"cannot produce to {self.name}: {why}")
        return sorted(map(_record, done), key=_position)

    def consume(self, count: int | None = None, *, timeout_s: float = WAIT_S) -> list[ReadRecord]:
        """The committed records from the first on, by partition and offset.

        With `count`, waits until there are so many and returns no more; raises KitError after
        `timeout_s`. Without, returns what the topic holds now.
        """
        found = self._read(count or 0, timeout_s, at_least=count is not None)
        if count is not None and len(found) < count:
            raise KitError(
                f"waited {timeout_s:g} s for {counted(count, 'record')} of {self.name}; the topic "
                f"has {len(found)}"
            )
        return found if count is None else found[:count]

    def assert_records(
        self,
        expected: Iterable[Expected],
        *,
        in_order: bool | None = None,
        timeout_s: float = WAIT_S,
    ) -> None:
        """Wait until there are as many committed records as expected, and compare all that the
        topic holds; raises AssertionError that shows the difference.

        The order matters in a topic with one partition, unless `in_order` says otherwise. See
        `ottla.testing.record.Expected` for what may be expected.
        """
        wanted = list(expected)
        found = self._read(len(wanted), timeout_s, at_least=True)
        if in_order is None:
            in_order = len(self._partitions_of_topic()) == 1
        text = difference(compare(wanted, found, in_order=in_order), self.name)
        if text is not None:
            raise AssertionError(text)

    def rebalance(self) -> list[str]:
        """Make each group rebalance of which a member has a partition of the topic; returns their
        names. See `Broker.rebalance` for what that is in a group of each kind. Raises KitError if
        nobody reads the topic in a group.
        """
        from ottla.testing.rebalance import rebalance_readers

        return rebalance_readers(self.bootstrap, self.name, self._settings)

    async def produce_async(self, *values: Any, **options: Any) -> list[ReadRecord]:
        """`produce`."""
        return await asyncio.to_thread(self.produce, *values, **options)

    async def consume_async(self, count: int | None = None, **options: Any) -> list[ReadRecord]:
        """`consume`."""
        return await asyncio.to_thread(self.consume, count, **options)

    async def assert_records_async(self, expected: Iterable[Expected], **options: Any) -> None:
        """`assert_records`."""
        await asyncio.to_thread(self.assert_records, expected, **options)

    def _read(self, count: int, timeout_s: float, *, at_least: bool) -> list[ReadRecord]:
        """All records up to the end of each partition; with `at_least` waits for `count` so long.
        A short `timeout_s` does not limit the way to the end.
        """
        from confluent_kafka import KafkaError, TopicPartition

        until = time.monotonic() + timeout_s
        reads_until = max(until, time.monotonic() + WAIT_S)
        partitions = self._partitions_of_topic()
        consumer = _consumer(self.bootstrap, self._settings)
        found: list[ReadRecord] = []
        ended: set[int] = set()
        try:
            consumer.assign([TopicPartition(self.name, each, 0) for each in partitions])
            while len(ended) < len(partitions) or (at_least and len(found) < count):
                if len(ended) == len(partitions) and time.monotonic() > until:
                    break
                if time.monotonic() > reads_until:
                    raise KitError(f"cannot read {self.name} to its end; there is no answer")
                message = consumer.poll(_POLL_S)
                if message is None:
                    continue
                error = message.error()
                if error is None:
                    ended.discard(message.partition())
                    found.append(_record(message))
                    if len(found) > MAX_RECORDS:
                        raise KitError(f"{self.name} holds more than {MAX_RECORDS} records")
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
                elif not error.retriable():
                    raise KitError(f"cannot read {self.name}: {error.str()}")
        finally:
            consumer.close()
        return sorted(found, key=_position)

    def _partitions_of_topic(self) -> Sequence[int]:
        metadata = self._producer.list_topics(self.name, timeout=WAIT_S)
        topic = metadata.topics[self.name]
        if topic.error is not None:
            raise KitError(f"cannot read {self.name}: {topic.error.str()}")
        return sorted(topic.partitions)


def _consumer(bootstrap: str, settings: Mapping[str, str]) -> Consumer:
    from confluent_kafka import Consumer

    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": KIT_CLIENT_ID,
            "group.id": KIT_CLIENT_ID,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": _FETCH_WAIT_MS,
            "log_level": 2,
            **settings,
        }
    )


def new_producer(bootstrap: str, settings: Mapping[str, str]) -> Producer:
    """The kit's producer; one serves all topics of a broker."""
    from confluent_kafka import Producer

    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": KIT_CLIENT_ID,
            "linger.ms": 0,
            "log_level": 2,
            **settings,
        }
    )


def _written(value: Any) -> str | bytes | None:
    if value is None or isinstance(value, str | bytes):
        return value
    return json.dumps(value)


def _record(message: Message) -> ReadRecord:
    timestamp_ms = message.timestamp()[1]
    return ReadRecord(
        key=message.key(),
        value=message.value(),
        headers=tuple(message.headers() or ()),
        partition=message.partition(),
        offset=message.offset(),
        timestamp_ms=timestamp_ms,
    )


def _position(record: ReadRecord) -> tuple[int, int]:
    return record.partition, record.offset
