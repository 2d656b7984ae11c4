"""Reads records to the end or continuously: with a group's commits, or from given offsets.

A group's offset is stored only after its record was written to the output, and committed every few
seconds and at the end. Records that a broken pipe or Ctrl-C left unwritten are read again.
"""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Self
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as PartitionAt

from ottla.client.admin.groups import why_no_coordinator
from ottla.client.admin.offsets import end_offsets
from ottla.client.client import Client
from ottla.client.errors import ClientError
from ottla.client.topic_partition import TopicPartition
from ottla.messaging.consumer_events import is_end
from ottla.messaging.librdkafka import LibrdkafkaError, explain, failure, quiet, rejected
from ottla.messaging.start import Start, start_offsets
from ottla.wording.errors import ReportedError

BATCH_RECORDS: Final = 1000
POLL_S: Final = 0.1
COMMIT_TIMEOUT_S: Final = 5.0
# How long a reader without --follow waits for a broker that sends nothing.
STALL_TIMEOUT_S: Final = 15.0
# A dead member keeps the others waiting for its session timeout, 45 s by default.
JOIN_TIMEOUT_S: Final = 60.0
JOIN_NOTE_S: Final = 5.0
SESSION_TIMEOUT_MS: Final = 10_000


class Interruption:
    """Ctrl-C as a flag, which the loop checks.

    librdkafka calls Python from C, where an exception at the wrong moment is lost. A second Ctrl-C
    interrupts as usual.
    """

    def __init__(self) -> None:
        self.wanted = False

    def __enter__(self) -> Self:
        self.before = signal.signal(signal.SIGINT, self.interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self.before)

    def interrupt(self, _number: int, _frame: object) -> None:
        self.wanted = True
        signal.signal(signal.SIGINT, self.before)


Show = Callable[[Sequence[Any], int], None]
Matches = Callable[[Any], bool]


def ignore(_line: str) -> None:
    """Tells nobody."""


class Reader:
    """Reads and shows records until it is done, or without end if `follow`."""

    def __init__(
        self,
        client: Client,
        settings: Mapping[str, Any],
        *,
        group: str | None,
        start: Start,
        follow: bool,
        matches: Matches | None = None,
        tell: Callable[[str], None] = ignore,
    ):
        """`settings`: librdkafka's. `matches`: only these records are shown and counted; the others
        are read all the same. `tell` gets a line for the user when it waits.

        Raises RejectedSettingsError.
        """
        self.matches = matches
        self.bounds: dict[TopicPartition, int] = {}
        self.client = client
        self.tell = tell
        self.group = group
        self.start = start
        self.follow = follow
        self.records = 0
        """Shown so far."""
        self.was_read = False
        self.ends: dict[TopicPartition, int] = {}
        self.begins: dict[TopicPartition, int] = {}
        self.positions: dict[TopicPartition, int] = {}
        self.waiting: set[TopicPartition] = set()
        self.assigned = False
        self.gone = False
        self.is_reported = False
        self.failed: ReportedError | None = None
        self.commits: deque[Any] = deque(maxlen=1)
        own = {
            # A consumer needs a group id. Without commits nobody sees this one.
            "group.id": group if group is not None else f"ottla-consume-{uuid4()}",
            "enable.auto.commit": group is not None,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": start.reset,
            "check.crcs": True,
            "session.timeout.ms": SESSION_TIMEOUT_MS,
            **quiet(settings),
            "error_cb": self.trouble,
            "on_commit": lambda error, _partitions: self.commits.append(error),
        }
        try:
            self.consumer = Consumer(own)
        except KafkaException as error:
            raise rejected(error, "consume") from error

    def trouble(self, error: Any) -> None:
        """Report once that no broker responds; librdkafka keeps retrying."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN and not self.gone:
            self.gone = True
            if self.follow:
                self.tell("No broker responds. Waiting for one ...")

    def assign(
        self,
        begins: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        *,
        bounded: bool = False,
    ) -> None:
        """Read these partitions, without a group. `bounded`: nothing from the ends on is shown."""
        self.expect(begins, ends)
        if bounded:
            self.bounds = dict(ends)
        self.consumer.assign([PartitionAt(*key, at) for key, at in begins.items()])

    def subscribe(self, topics: Sequence[str]) -> None:
        """Read as a member of the group: the partitions that it assigns."""
        self.consumer.subscribe(
            list(topics), on_assign=self.joined, on_revoke=self.revoked, on_lost=self.revoked
        )

    def joined(self, consumer: Any, partitions: list[Any]) -> None:
        """The group assigned partitions. Failures are kept for the loop to raise."""
        try:
            self.take(consumer, partitions)
        except ReportedError as error:
            self.failed = error
        except KafkaException as error:
            self.failed = failure(error, "join the group")

    def take(self, consumer: Any, partitions: list[Any]) -> None:
        """Continue at the group's committed offsets, or at the given start."""
        known = consumer.committed(partitions, timeout=self.client.patience.answer_s)
        begins = {TopicPartition(each.topic, each.partition): each.offset for each in known}
        fresh = [key for key, offset in begins.items() if offset < 0]
        begins.update(start_offsets(self.client, self.start, fresh))
        self.ends.clear()
        self.waiting.clear()
        self.expect(begins, end_offsets(self.client, begins))
        consumer.assign([PartitionAt(*key, at) for key, at in begins.items()])
        if not partitions:
            self.tell(f"Other members of group {self.group} already read every partition.")

    def revoked(self, _consumer: Any, partitions: Iterable[Any]) -> None:
        for each in partitions:
            self.waiting.discard((each.topic, each.partition))
        self.assigned = False

    def expect(
        self, begins: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> None:
        self.assigned = True
        self.ends.update(ends)
        self.begins.update(begins)
        self.positions.update(begins)
        self.waiting.update(key for key, begin in begins.items() if begin < ends[key])

    @property
    def done_offsets(self) -> int:
        """How many offsets were passed. Gaps count, so that it reaches `total_offsets`."""
        return sum(self.positions[key] - begin for key, begin in self.begins.items())

    @property
    def total_offsets(self) -> int:
        return sum(max(0, self.ends.get(key, 0) - begin) for key, begin in self.begins.items())

    def run(self, show: Show, most: int | None) -> None:
        """Read and show. `show` gets each batch of records and the number of records before it."""
        last_event_s = time.monotonic()
        with Interruption() as interruption:
            while most is None or self.records < most:
                if self.assigned and not self.waiting and not self.follow:
                    return
                wanted = BATCH_RECORDS
                if most is not None and (self.matches is None or self.group is not None):
                    # With a group, no more than what is shown may be committed.
                    wanted = min(BATCH_RECORDS, most - self.records)
                events = self.poll(wanted)
                if interruption.wanted:
                    raise KeyboardInterrupt
                records = [event for event in events if not self.is_news(event)]
                if self.bounds:
                    records = [record for record in records if self.is_before_bound(record)]
                if events:
                    last_event_s, self.gone = time.monotonic(), False
                elif not self.follow:
                    self.check_patience(time.monotonic() - last_event_s)
                if records:
                    shown = records if self.matches is None else [*filter(self.matches, records)]
                    if most is not None:
                        shown = shown[: most - self.records]
                    if shown:
                        show(shown, self.records)
                        self.records += len(shown)
                    self.passed(records)

    def poll(self, most: int) -> list[Any]:
        """The next events, if any arrive within a moment. Raises LibrdkafkaError, also on behalf of
        a callback.
        """
        try:
            events: list[Any] = self.consumer.consume(most, POLL_S)
        except KafkaException as error:
            raise failure(error, "consume") from error
        if self.failed is not None:
            raise self.failed
        return events

    def is_news(self, event: Any) -> bool:
        """Whether the event is not a record. Raises LibrdkafkaError and RefusedError if it ends the
        reading.
        """
        if event.error() is None:
            return False
        if is_end(event, self.group):
            self.waiting.discard((event.topic(), event.partition()))
        return True

    def is_before_bound(self, record: Any) -> bool:
        """Whether the record is to be read; one at or after the bound ends its partition."""
        key = TopicPartition(record.topic(), record.partition())
        if record.offset() < self.bounds[key]:
            return True
        self.waiting.discard(key)
        return False

    def passed(self, records: Sequence[Any]) -> None:
        """Note up to which offset each partition was read."""
        self.was_read = True
        latest: dict[tuple[str, int], int] = {}  # plain tuples: one for each record
        for record in records:
            latest[record.topic(), record.partition()] = record.offset() + 1
        for key, position in ((TopicPartition(*key), at) for key, at in latest.items()):
            self.positions[key] = position
            if position >= self.ends.get(key, position):
                self.waiting.discard(key)
        if self.group is not None:
            held = {(each.topic, each.partition) for each in self.consumer.assignment()}
            self.consumer.store_offsets(
                offsets=[PartitionAt(*key, at) for key, at in latest.items() if key in held]
            )

    def check_patience(self, silent_s: float) -> None:
        """Raises LibrdkafkaError if nothing has arrived for too long although there are records."""
        if not self.assigned:
            if silent_s > JOIN_TIMEOUT_S:
                raise LibrdkafkaError(
                    f"group {self.group!r} assigned no partitions within {silent_s:.0f} s.",
                    self.why_not_joined(),
                )
            if silent_s > JOIN_NOTE_S and not self.is_reported:
                self.is_reported = True
                reason = self.why_not_joined()
                self.tell(
                    f"Waiting for group {self.group}: {reason or 'a member may have died ...'}"
                )
        elif silent_s > STALL_TIMEOUT_S:
            key = min(self.waiting)
            raise LibrdkafkaError(
                f"no records arrived for {silent_s:.0f} s, but {key} has records up "
                f"to offset {self.ends[key] - 1}; read {self.records:,} so far."
            )

    def why_not_joined(self) -> str | None:
        """The broker's reason, as a sentence; None if it has none, or no broker can be asked."""
        try:
            reason = why_no_coordinator(self.client, str(self.group))
        except ClientError:
            return None
        return None if reason is None else f"{reason}."

    def close(self) -> None:
        """Commit what was shown and leave the group. Raises LibrdkafkaError if that fails, and
        KeyboardInterrupt after Ctrl-C: only a second one does not wait for the end.
        """
        with Interruption() as interruption:
            try:
                if self.group is not None and self.was_read:
                    self.commit()
                if not self.gone:
                    # Without a broker, librdkafka would wait for a minute. The group will miss our
                    # heartbeats instead.
                    self.consumer.close()
            except SystemError as error:
                if not interruption.wanted:
                    raise
                # It was raised in a callback, and librdkafka's binding has lost it.
                raise KeyboardInterrupt from error
        if interruption.wanted:
            raise KeyboardInterrupt

    def commit(self) -> None:
        """Commit the stored offsets, and wait briefly for the response: there may be no broker."""
        held = self.consumer.assignment()
        self.consumer.pause(held)
        self.commits.clear()
        try:
            self.consumer.commit(asynchronous=True)
            deadline = time.monotonic() + COMMIT_TIMEOUT_S
            while not self.commits and not self.gone and time.monotonic() < deadline:
                self.consumer.poll(POLL_S)
        except KafkaException as error:
            self.commits.append(error.args[0])
        if self.commits and (
            self.commits[0] is None or self.commits[0].code() == KafkaError._NO_OFFSET
        ):
            return
        reason = explain(self.commits[0]) if self.commits else "no broker responds."
        self.gone = True
        raise LibrdkafkaError(
            "the records were read, but the last offsets were not committed for group "
            f"{self.group!r}: "
            f"{reason}",
            "They will be read again.",
        )
