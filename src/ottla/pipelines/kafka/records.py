"""The records of a few short ranges of offsets, read without Spark.

A scan of Spark's Kafka source takes 150 to 200 ms for each range, however short: a client for the
look-up on the driver, and a consumer for each partition.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.settings import ISOLATION

if TYPE_CHECKING:
    from types import TracebackType

    from ottla.pipelines.kafka.settings import KafkaSettings

MAX_BYTES: Final = 4 << 20
"""Of all ranges together: what is read is held in memory."""
TIMEOUT_S: Final = 30.0
_AT_ONCE: Final = 500


class Record(NamedTuple):
    """One record as the broker has it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] | None

    @property
    def size_bytes(self) -> int:
        """About what it takes in memory."""
        headers = sum(len(name) + len(value or b"") for name, value in self.headers or ())
        return len(self.key or b"") + len(self.value or b"") + headers + 64


class RangeReader:
    """A consumer without a group, to be closed; it holds at most MAX_BYTES of records.

    `what` says in a failure what was to be read.
    """

    def __init__(self, kafka: KafkaSettings, what: str = "the rejected rows") -> None:
        from confluent_kafka import Consumer

        self._what = what

        self._servers = kafka.bootstrap_servers
        self._consumer: Any = Consumer(
            {
                ISOLATION: kafka.isolation,
                **kafka.for_librdkafka(),
                "group.id": "ottla-unused",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,
                "log_level": 0,
            }
        )
        self._left_bytes = MAX_BYTES

    def __enter__(self) -> RangeReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._consumer.close()

    def read(
        self, topic: str, first: Mapping[int, int], end: Mapping[int, int]
    ) -> list[Record] | None:
        """Return the records from `first` up to `end` of each partition.

        None where all reads of this reader together take more than MAX_BYTES. Raises
        PipelineError, from Kafka's own error: the broker does not answer, or does not hold the
        range to its end. A leader that was just elected shows the end of its log a moment later.
        """
        from confluent_kafka import KafkaError, KafkaException, TopicPartition

        open_ = {number for number in end if first[number] < end[number]}
        self._consumer.assign(
            [TopicPartition(topic, number, max(first[number], 0)) for number in open_]
        )
        found: list[Record] = []
        short: dict[int, int] = {}  # where partitions end that do not reach the end of the range
        until = time.monotonic() + TIMEOUT_S
        while open_:
            if time.monotonic() > until:
                raise PipelineError(
                    f"{self._servers} did not send {self._what} of {topic} within {TIMEOUT_S:.0f} s"
                    + "".join(
                        f": partition {number} ends at offset {short[number]}, before {end[number]}"
                        for number in sorted(open_ & set(short))[:1]
                    )
                ) from KafkaException(KafkaError(KafkaError._TIMED_OUT))
            for message in self._consumer.consume(_AT_ONCE, 0.1):
                number = message.partition()
                error = message.error()
                if error is not None:
                    if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                        continue  # librdkafka asks for a coordinator that nobody needs
                    if error.code() != KafkaError._PARTITION_EOF:
                        raise PipelineError(
                            f"{topic}-{number}: {self._what} cannot be read: {error.str()}"
                        ) from KafkaException(error)
                    if number in open_ and message.offset() < end[number]:
                        short[number] = message.offset()
                    else:
                        open_.discard(number)
                    continue
                if number not in open_:
                    continue
                if message.offset() < end[number]:
                    found.append(_record(message))
                    self._left_bytes -= found[-1].size_bytes
                    if self._left_bytes < 0:
                        return None
                if message.offset() + 1 >= end[number]:
                    open_.discard(number)
        return found


def _record(message: Any) -> Record:
    return Record(
        message.topic(),
        message.partition(),
        message.offset(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        message.headers(),
    )
