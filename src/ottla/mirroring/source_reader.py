"""Reads committed records of the source, from given offsets, and tells records from news."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as PartitionAt

from ottla.client.errors import Needs, RefusedError
from ottla.client.topic_partition import TopicPartition
from ottla.messaging.librdkafka import LibrdkafkaError, explain, failure, quiet, rejected
from ottla.mirroring.clusters import Side, partition_at
from ottla.protocol.errors import ErrorCode

BATCH_RECORDS: Final = 2_000
QUEUED_KB: Final = 64 * 1024
"""Of records that were fetched and not read yet."""
QUEUE_BACKOFF_MS: Final = 5
CUT: Final = KafkaError(KafkaError._LOG_TRUNCATION).str()
"""Part of the text of the error: its code is that of an offset out of range."""
GONE: Final = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.UNKNOWN_TOPIC_ID,
    }
)


@dataclass(slots=True)
class News:
    """What a read brought beside records."""

    ends: dict[TopicPartition, int] = field(default_factory=dict)
    """Read to its end: the offset there, behind the markers of transactions."""
    out_of_range: set[TopicPartition] = field(default_factory=set)
    """The log has no such offset; nothing is read until another one is assigned."""
    cut: set[TopicPartition] = field(default_factory=set)
    """The log does not have the record before the offset any more, but others (KIP-320)."""
    gone: set[str] = field(default_factory=set)
    """Topics that the source does not know."""


@dataclass(frozen=True, slots=True)
class Read:
    """Records, each partition's in order, and the news."""

    records: list[Any]
    news: News
    is_all: bool
    """Nothing more has been fetched until now."""


class SourceReader:
    """One consumer without a group."""

    def __init__(self, side: Side) -> None:
        """Raises RejectedSettingsError."""
        settings = {
            # A consumer needs a group id. Without commits nobody sees this one.
            "group.id": f"ottla-mirror-reader-{uuid4()}",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "check.crcs": True,
            "queued.max.messages.kbytes": QUEUED_KB,
            # By default librdkafka fetches nothing for a second once so much is queued.
            "fetch.queue.backoff.ms": QUEUE_BACKOFF_MS,
            **quiet(side.settings),
        }
        try:
            self._consumer = Consumer(settings)
        except KafkaException as error:
            raise rejected(error, "consume") from error

    def assign(self, positions: Mapping[TopicPartition, tuple[int, int | None]]) -> None:
        """Reads these partitions and no others, from these offsets on. With an offset, the leader
        epoch of the record before it, if there is one.
        """
        self._consumer.assign(
            [partition_at(key, at, epoch) for key, (at, epoch) in positions.items()]
        )

    def read(self, within_s: float) -> Read:
        """What has been fetched; waits so long if that is nothing. Raises LibrdkafkaError and
        RefusedError.
        """
        news = News()
        try:
            # With a number and a time, librdkafka waits for the number.
            found: list[Any] = self._consumer.consume(1, within_s)
            if found:
                found += self._consumer.consume(BATCH_RECORDS, 0)
        except KafkaException as error:
            raise failure(error, "read the source") from error
        records = [each for each in found if not self._is_news(each, news)]
        return Read(records, news, len(found) <= BATCH_RECORDS)

    def _is_news(self, event: Any, news: News) -> bool:
        error = event.error()
        if error is None:
            return False
        code, topic = error.code(), event.topic()
        if code == KafkaError._PARTITION_EOF:
            news.ends[TopicPartition(topic, event.partition())] = event.offset()
        elif code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            is_cut = CUT in error.str()
            (news.cut if is_cut else news.out_of_range).add(
                TopicPartition(topic, event.partition())
            )
        elif code in GONE:
            news.gone.add(topic)
        elif code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            needs = Needs("Read", topic)
            raise RefusedError("read the source", ErrorCode(code), None, needs)
        elif code != KafkaError.GROUP_AUTHORIZATION_FAILED and not error.retriable():
            # librdkafka asks for a coordinator that nobody needs.
            raise LibrdkafkaError(f"cannot continue to read the source: {explain(error)}")
        return True

    def end_seen(self, partition: TopicPartition) -> int | None:
        """The partition's end as the last response said it, without a request."""
        _, end = self._consumer.get_watermark_offsets(PartitionAt(*partition), cached=True)
        return end if end >= 0 else None

    def close(self) -> None:
        self._consumer.close()
