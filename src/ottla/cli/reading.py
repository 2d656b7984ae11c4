"""Reading records to the end, or on and on: with a group's commits, or on offsets of our own.

A group's offset is stored only after its record was written out, and committed at the end and
every few seconds: what a broken pipe or Ctrl-C left unwritten is read again the next time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from ottla.cli.client import Connection, explain
from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.offsets import Partition, end_offsets
from ottla.cli.positions import Start, start_offsets
from ottla.cli.screen import note

BATCH_RECORDS: Final = 1000
POLL_S: Final = 0.1
# How long a reader that is to stop at the end waits for a broker that gives nothing.
STALL_TIMEOUT_S: Final = 15.0

Show = Callable[[Sequence[Any], int], None]


class Reader:
    """Reads and shows records until it is done; `follow` never is."""

    def __init__(self, connection: Connection, *, group: str | None, start: Start, follow: bool):
        """Raises UsageFailed when librdkafka refuses a setting."""
        self.connection = connection
        self.group = group
        self.start = start
        self.follow = follow
        self.records = 0
        self.ends: dict[Partition, int] = {}
        self.begins: dict[Partition, int] = {}
        self.positions: dict[Partition, int] = {}
        self.waiting: set[Partition] = set()
        self.assigned = False
        self.gone = False
        settings = {
            # A consumer cannot be without a group id; without commits nobody sees this one.
            "group.id": group if group is not None else f"ottla-consume-{uuid4()}",
            "enable.auto.commit": group is not None,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": start.reset,
            "check.crcs": True,
            **connection.settings,
            "error_cb": self.trouble,
        }
        try:
            self.consumer = Consumer(settings)
        except KafkaException as error:
            raise UsageFailed(f"cannot consume so: {explain(error.args[0])}") from error

    def trouble(self, error: Any) -> None:
        """Tell once that the broker has gone; librdkafka goes on trying."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN and not self.gone:
            self.gone = True
            if self.follow:
                note("No broker answers any more; waiting for it to come back ...")

    def assign(self, begins: Mapping[Partition, int], ends: Mapping[Partition, int]) -> None:
        """Read these partitions without a group."""
        self.expect(begins, ends)
        self.consumer.assign(
            [TopicPartition(topic, number, at) for (topic, number), at in begins.items()]
        )

    def subscribe(self, topics: Sequence[str]) -> None:
        """Read as a member of the group, the partitions that it gives us."""
        self.consumer.subscribe(
            list(topics), on_assign=self.joined, on_revoke=self.revoked, on_lost=self.revoked
        )

    def joined(self, consumer: Any, partitions: list[Any]) -> None:
        """The group gave us partitions: go on where it left off, else where we were told to."""
        known = consumer.committed(partitions, timeout=self.connection.answer_timeout_s)
        begins = {(each.topic, each.partition): each.offset for each in known}
        fresh = [key for key, offset in begins.items() if offset < 0]
        begins.update(start_offsets(self.connection, self.start, fresh))
        self.ends.clear()
        self.waiting.clear()
        self.expect(begins, end_offsets(self.connection, begins))
        consumer.assign(
            [TopicPartition(topic, number, at) for (topic, number), at in begins.items()]
        )
        if not partitions:
            note(f"Other members of group {self.group} read every partition.")

    def revoked(self, _consumer: Any, partitions: Iterable[Any]) -> None:
        for each in partitions:
            self.waiting.discard((each.topic, each.partition))
        self.assigned = False

    def expect(self, begins: Mapping[Partition, int], ends: Mapping[Partition, int]) -> None:
        self.assigned = True
        self.ends.update(ends)
        self.begins.update(begins)
        self.positions.update(begins)
        self.waiting.update(key for key, begin in begins.items() if begin < ends[key])

    @property
    def done_offsets(self) -> int:
        """How many offsets were passed; gaps count, so it reaches `total_offsets`."""
        return sum(self.positions[key] - begin for key, begin in self.begins.items())

    @property
    def total_offsets(self) -> int:
        return sum(max(0, self.ends.get(key, 0) - begin) for key, begin in self.begins.items())

    def run(self, show: Show, most: int | None) -> None:
        """Read and show; `show` gets each batch of records and how many there were before it."""
        heard_s = time.monotonic()
        while most is None or self.records < most:
            if self.assigned and not self.waiting and not self.follow:
                return
            wanted = BATCH_RECORDS if most is None else min(BATCH_RECORDS, most - self.records)
            try:
                events = self.consumer.consume(wanted, POLL_S)
            except KafkaException as error:
                raise self.connection.failure(error, "consume") from error
            records = [event for event in events if not self.is_news(event)]
            if events:
                heard_s, self.gone = time.monotonic(), False
            elif not self.follow and time.monotonic() - heard_s > STALL_TIMEOUT_S:
                raise self.stalled()
            if records:
                show(records, self.records)
                self.passed(records)

    def is_news(self, event: Any) -> bool:
        """Whether it is not a record; raises Failed when it ends the reading."""
        error = event.error()
        if error is None:
            return False
        if error.code() == KafkaError._PARTITION_EOF:
            self.waiting.discard((event.topic(), event.partition()))
            return True
        if error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION):
            raise Failed(f"topic {event.topic()!r} is not there any more.")
        raise Failed(f"cannot read on: {explain(error)}")

    def passed(self, records: Sequence[Any]) -> None:
        """Note how far each partition was shown."""
        self.records += len(records)
        latest: dict[Partition, int] = {}
        for record in records:
            latest[record.topic(), record.partition()] = record.offset() + 1
        for key, position in latest.items():
            self.positions[key] = position
            if position >= self.ends.get(key, position):
                self.waiting.discard(key)
        if self.group is not None:
            held = {(each.topic, each.partition) for each in self.consumer.assignment()}
            self.consumer.store_offsets(
                offsets=[TopicPartition(*key, at) for key, at in latest.items() if key in held]
            )

    def stalled(self) -> Failed:
        if not self.assigned:
            return Failed(f"group {self.group!r} gave us no partitions in {STALL_TIMEOUT_S:g} s.")
        topic, number = min(self.waiting)
        return Failed(
            f"no more records came for {STALL_TIMEOUT_S:g} s, though {topic}-{number} has some up "
            f"to offset {self.ends[topic, number] - 1}; read {self.records:,} so far."
        )

    def close(self) -> None:
        """Commit what was shown and leave the group. Raises Failed when the commit fails."""
        try:
            if self.group is not None and self.records:
                self.commit()
        finally:
            self.consumer.close()

    def commit(self) -> None:
        try:
            self.consumer.commit(asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._NO_OFFSET:
                raise Failed(
                    f"the records were read but not committed for group {self.group!r}: "
                    f"{explain(error.args[0])}"
                ) from error
