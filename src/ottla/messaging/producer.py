"""Sends records and counts each result: delivered to which partition, or not delivered and why."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from ottla.messaging.jsonlines import Outgoing
from ottla.messaging.librdkafka import explain, rejected

MAX_LINES_NAMED: Final = 5
PURGED: Final = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
FULL_PAUSE_S: Final = 0.1
FLUSH_STEP_S: Final = 0.2
# librdkafka times out each record by itself; this leaves time for its last reports.
FLUSH_GRACE_S: Final = 5.0


@dataclass(slots=True)
class PartitionCount:
    """Records delivered to one partition."""

    delivered: int = 0
    first_offset: int = -1
    last_offset: int = -1


@dataclass(slots=True)
class ErrorCount:
    """Records that failed for one reason, and their first line numbers."""

    records: int = 0
    lines: list[int] = field(default_factory=list)


class TopicProducer:
    """A producer for one topic. Every record passed to `send` is counted exactly once.

    With acks=0 a record counts as delivered once it is sent: nobody acknowledges it, and it has no
    offset.
    """

    def __init__(
        self,
        topic: str,
        settings: Mapping[str, Any],
        timeout_s: float,
        tell: Callable[[str], None],
    ) -> None:
        """`settings`: librdkafka's. `tell` gets a line for the user when it waits. Raises
        RejectedSettingsError.
        """
        self.tell = tell
        self.topic = topic
        self.timeout_s = timeout_s
        self.sent = 0
        self.partitions: dict[int, PartitionCount] = {}
        self.errors: dict[str, ErrorCount] = {}
        self.is_reported = False
        self.is_denied = False
        self.is_too_large = False  # the broker refused a batch for its size
        self.fatal: str | None = None
        try:
            self.client = Producer({**settings, "error_cb": self.trouble})
        except KafkaException as error:
            raise rejected(error, "produce") from error

    @property
    def delivered(self) -> int:
        return sum(count.delivered for count in self.partitions.values())

    @property
    def undelivered(self) -> int:
        return self.sent - self.delivered

    def trouble(self, error: Any) -> None:
        """Report once that no broker responds; librdkafka keeps retrying."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN and not self.is_reported:
            self.is_reported = True
            self.tell(f"No broker responds. Retrying for {self.timeout_s:g} s ...")

    def send(self, record: Outgoing, line: int) -> None:
        """Queue one record. Waits while librdkafka's queue is full."""
        self.sent += 1
        arguments: dict[str, Any] = {"on_delivery": partial(self.ended, line)}
        if record.partition is not None:
            arguments["partition"] = record.partition
        if record.timestamp_ms is not None:
            arguments["timestamp"] = record.timestamp_ms
        if record.headers:
            arguments["headers"] = record.headers
        while True:
            try:
                self.client.produce(self.topic, record.value, record.key, **arguments)
            except BufferError:
                # Bounded: each queued record is delivered or times out.
                self.client.poll(FULL_PAUSE_S)
            except KafkaException as error:
                self.ended(line, error.args[0], None)
                return
            else:
                return

    def ended(self, line: int, error: Any, message: Any) -> None:
        """Count the result of one record (librdkafka's delivery report)."""
        if error is None:
            partition = message.partition()
            count = self.partitions.get(partition)
            if count is None:
                count = self.partitions[partition] = PartitionCount()
            # confluent-kafka reports None with acks=0, and librdkafka -1.
            offset = message.offset()
            offset = -1 if offset is None else offset
            if not count.delivered:
                count.first_offset = offset
            count.delivered += 1
            count.last_offset = offset
            return
        reason = explain(error)
        self.is_denied |= error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        self.is_too_large |= error.code() == KafkaError.MSG_SIZE_TOO_LARGE
        if self.fatal is not None and error.code() in PURGED:
            reason = self.fatal
        failed = self.errors.setdefault(reason, ErrorCount())
        failed.records += 1
        if len(failed.lines) < MAX_LINES_NAMED:
            failed.lines.append(line)

    def flush(self) -> None:
        """Wait until each record is delivered or has timed out."""
        deadline = time.monotonic() + self.timeout_s + FLUSH_GRACE_S
        while self._flush(FLUSH_STEP_S) and time.monotonic() < deadline:
            pass

    def _flush(self, within_s: float) -> int:
        """The number of records that are still queued."""
        try:
            return int(self.client.flush(within_s))
        except KafkaException as error:
            # A fatal error of the idempotent producer: nothing more will be sent.
            self.fatal = explain(error.args[0])
            self.client.purge()
            self.client.poll(0)
            return 0

    def abandon(self) -> None:
        """After Ctrl-C: wait briefly for queued records, then drop them. They are counted."""
        if self._flush(FLUSH_GRACE_S):
            self.client.purge()
            self._flush(FLUSH_STEP_S)

    def document(self) -> dict[str, Any]:
        """The counts as a JSON document."""
        return {
            "topic": self.topic,
            "delivered": self.delivered,
            "undelivered": self.undelivered,
            "partitions": [
                {
                    "partition": number,
                    "delivered": count.delivered,
                    "first_offset": count.first_offset if count.first_offset >= 0 else None,
                    "last_offset": count.last_offset if count.last_offset >= 0 else None,
                }
                for number, count in sorted(self.partitions.items())
            ],
            "errors": [
                {"error": reason, "records": count.records, "first_lines": count.lines}
                for reason, count in self.errors.items()
            ],
        }

    def sentence(self) -> str:
        """The counts as a sentence."""
        if self.delivered == 1:
            ((number, count),) = self.partitions.items()
            where = f", offset {count.last_offset}" if count.last_offset >= 0 else ""
            return f"Delivered 1 record to {self.topic}, partition {number}{where}."
        if not self.delivered:
            return f"Delivered no records to {self.topic}."
        split = len(self.partitions)
        where = f"{split} partitions" if split > 1 else f"partition {next(iter(self.partitions))}"
        return f"Delivered {self.delivered:,} records to {where} of {self.topic}."

    def losses(self) -> list[str]:
        """One line for each reason why records were not delivered."""
        lines = [
            f"{count.records:,} of {self.sent:,} records not delivered: {reason.rstrip('.')} "
            f"({name_lines(count)})."
            for reason, count in self.errors.items()
        ]
        if self.is_too_large:
            lines.append(
                "The limit of a batch is the topic's max.message.bytes, or else the broker's "
                f"message.max.bytes: ottla config alter topic {self.topic} max.message.bytes=BYTES"
            )
        silent = self.undelivered - sum(count.records for count in self.errors.values())
        if silent > 0:
            lines.append(
                f"{silent:,} of {self.sent:,} records: no response, may have been delivered."
            )
        return lines


def name_lines(count: ErrorCount) -> str:
    """`line 3`, or `lines 3, 4, 9 and more`."""
    listed = ", ".join(map(str, count.lines))
    more = " and more" if count.records > len(count.lines) else ""
    return f"line{'s' if count.records > 1 else ''} {listed}{more}"
