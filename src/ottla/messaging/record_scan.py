"""Reads records for somebody who looks at them: in short steps, without a group, forward or newest
first, or the newest as they arrive.

A step ends within a moment, so that the caller can show progress and stop. Librdkafka's queue
is bounded (`MAX_QUEUED_KIB`), and so is what one step returns; records are whole, so the caller
keeps of large ones only what he shows. Records of open and aborted transactions are read, too.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from heapq import heapify, heappop, heappush, heappushpop
from threading import Lock
from typing import Any, Final
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as PartitionAt

from ottla.client.topic_partition import TopicPartition
from ottla.messaging.consumer_events import is_end
from ottla.messaging.librdkafka import LibrdkafkaError, failure, quiet, rejected

MAX_QUEUED_KIB: Final = 16 << 10
QUEUE_BACKOFF_MS: Final = 5
POLL_S: Final = 0.1
MEET_WITHIN_S: Final = 2.0
SIZED_OF: Final = 8
"""One of so many records is measured."""
MAX_BATCH: Final = 2000
BATCH_BYTES: Final = 4 << 20
"""About what one call returns, judged by the records before."""
FIRST_WINDOW: Final = 1
"""Offsets of each partition that are read first, from the end: how large records are is not known
before, and a window is read whole.
"""
GROWTH: Final = 8
WINDOW_BYTES: Final = 16 << 20
MAX_WINDOW: Final = 20_000
SILENT_S: Final = 10.0
"""Without any event although there are records: the broker is away."""
SKIPPED_FROM: Final = 50_000
"""A tail that is so many offsets behind goes on at the end."""

NONE: Final[Mapping[str, Any]] = {}

Span = tuple[int, int]
"""The first offset that is read, and the one after the last."""
Matches = Callable[[Any], bool]
Seen = Callable[[Any], Any]
"""What is kept of a record."""


class RecordSource:
    """A consumer that is given partitions and asked for records. For one thread at a time."""

    def __init__(self, settings: Mapping[str, Any], also: Mapping[str, Any] = NONE) -> None:
        """`settings` and `also`: librdkafka's. Raises RejectedSettingsError."""
        self.is_away = False
        own = {
            # A consumer needs a group id. Without commits nobody sees this one.
            "group.id": f"ottla-look-{uuid4()}",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_uncommitted",
            "queued.max.messages.kbytes": MAX_QUEUED_KIB,
            # Librdkafka's own is a second, for which nothing is fetched whenever the queue is full.
            "fetch.queue.backoff.ms": QUEUE_BACKOFF_MS,
            "fetch.wait.max.ms": 100,
            **also,
            **quiet(settings),
            "error_cb": self._trouble,
        }
        try:
            self.consumer = Consumer(own)
        except KafkaException as error:
            raise rejected(error, "consume") from error
        self._record_bytes = 1024.0

    def _trouble(self, error: Any) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self.is_away = True

    def meet(self, topic: str) -> None:
        """Have librdkafka know the topic's leaders. It asks for those of a topic that it does not
        know once a second, unless the consumer is new.
        """
        with suppress(KafkaException):  # the brokers are away: an assignment waits for them
            self.consumer.list_topics(topic, timeout=MEET_WITHIN_S)

    def assign(self, offsets: Mapping[TopicPartition, int]) -> None:
        try:
            self.consumer.assign([PartitionAt(*key, at) for key, at in offsets.items()])
        except KafkaException as error:
            raise failure(error, "consume") from error

    def drop(self, keys: Sequence[TopicPartition]) -> None:
        """Read no more of these partitions."""
        self.consumer.incremental_unassign([PartitionAt(*key) for key in keys])

    def poll(self) -> list[Any]:
        """Records and ends of partitions that arrive within a moment. Raises LibrdkafkaError, and
        RefusedError.
        """
        events = self.consume(max(1, min(MAX_BATCH, int(BATCH_BYTES / self._record_bytes))))
        # Some of them say enough: this is passed by each record that is looked at.
        sizes = [size_of(each) for each in events[::SIZED_OF] if each.error() is None]
        if sizes:
            self._record_bytes = max(64.0, sum(sizes) / len(sizes))
        return events

    def consume(self, most: int) -> list[Any]:
        """At most so many events, which arrive within a moment. Raises LibrdkafkaError."""
        try:
            events: list[Any] = self.consumer.consume(most, POLL_S)
        except KafkaException as error:
            raise failure(error, "consume") from error
        if events:
            self.is_away = False
        return events

    @property
    def record_bytes(self) -> float:
        """Of the records before."""
        return self._record_bytes


def size_of(record: Any) -> int:
    return len(record.value() or b"") + len(record.key() or b"") + 64


class _Found:
    """What matches. With a limit the newest are kept, as a window may have very many;
    `left_out`: the end of those of each partition that are not.
    """

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, int, TopicPartition, Any]] = []
        """Time, offset, a number, partition and what is kept; a heap, the oldest first, if only
        some are kept.
        """
        self.left_out: dict[TopicPartition, int] = {}
        self._most: int | None = None
        self._number = 0

    def limit(self, most: int | None) -> None:
        self._most = most
        if most is not None:
            heapify(self.rows)
            while len(self.rows) > most:
                self._leave_out(heappop(self.rows))

    def add(self, at_ms: int, offset: int, key: TopicPartition, seen: Any) -> None:
        self._number += 1  # else two keys are compared, where time and offset are the same
        row = at_ms, offset, self._number, key, seen
        if self._most is None:
            self.rows.append(row)
        elif len(self.rows) < self._most:
            heappush(self.rows, row)
        else:
            self._leave_out(heappushpop(self.rows, row))

    def _leave_out(self, row: tuple[int, int, int, TopicPartition, Any]) -> None:
        _, left, _, where, _ = row
        self.left_out[where] = max(left + 1, self.left_out.get(where, 0))

    def take(
        self, waiting: Mapping[TopicPartition, int], *, newest_first: bool
    ) -> tuple[list[Any], dict[TopicPartition, int]]:
        """What was found, and what was left out, but for what is before these ends of partitions
        that are waiting: what is behind them is of a window before.
        """

        def waits(key: TopicPartition, offset: int) -> bool:
            return offset < waiting.get(key, offset)

        rows = [row for row in self.rows if not waits(row[3], row[1])]
        left_out = {key: end for key, end in self.left_out.items() if not waits(key, end - 1)}
        self.rows = [row for row in self.rows if waits(row[3], row[1])]
        self.left_out = {key: end for key, end in self.left_out.items() if waits(key, end - 1)}
        if newest_first:
            rows.sort(key=lambda row: row[:2], reverse=True)
        return [row[4] for row in rows], left_out


class RecordScan:
    """Looks at each record of these spans until it is done or nobody wants more.

    `newest_first`: windows are read from the ends back, and each step's records come in the order
    of their times, newest first; else in the order of each partition. A window of very many
    partitions takes several steps: each returns records of the partitions that it has read.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        spans: Mapping[TopicPartition, Span],
        seen: Seen,
        matches: Matches | None = None,
        *,
        newest_first: bool = False,
    ) -> None:
        """`settings`: librdkafka's. `seen` makes of a matching record what a step returns; it is
        called before the next is read, so that large ones do not pile up. Raises
        RejectedSettingsError.
        """
        self.spans = {key: span for key, span in spans.items() if span[0] < span[1]}
        self.looked_at = 0
        """Records."""
        self._seen, self._matches, self._newest_first = seen, matches, newest_first
        self._source = RecordSource(settings)
        self._lock = Lock()
        self._window = FIRST_WINDOW
        self._waiting: dict[TopicPartition, int] = {}
        """What is read now: partitions with the end of what is read of them."""
        self._rest: dict[TopicPartition, Span] = dict(self.spans)
        """What was not asked for yet."""
        self._at: dict[TopicPartition, int] = {}
        self._begins: dict[TopicPartition, int] = {}
        self._left_out: dict[TopicPartition, int] = {}
        self._found = _Found()
        self._unread = set(self.spans)
        self._silent_s = 0.0
        self._is_closed = False

    @property
    def unread(self) -> int:
        """Partitions of which nothing can have been returned yet."""
        return len(self._unread)

    @property
    def total_offsets(self) -> int:
        return sum(end - begin for begin, end in self.spans.values())

    @property
    def passed_offsets(self) -> int:
        """Of `total_offsets`; offsets without a record count."""
        left = sum(end - begin for begin, end in self._rest.values())
        left += sum(end - self._at[key] for key, end in self._waiting.items())
        return self.total_offsets - left

    @property
    def is_done(self) -> bool:
        return not self._rest and not self._waiting

    @property
    def rest(self) -> dict[TopicPartition, Span]:
        """The spans that were not looked at, or of which not all was returned."""
        found = dict(self._rest)
        for key, end in self._waiting.items():
            if self._newest_first:
                begin = self._begins[key] if key not in found else found[key][0]
                found[key] = begin, end
            else:
                found[key] = self._at[key], end
        for key, end in self._left_out.items():
            begin = found[key][0] if key in found else self.spans[key][0]
            found[key] = begin, max(end, found[key][1] if key in found else 0)
        return found

    def step(self, within_s: float, most: int | None = None) -> list[Any]:
        """What matches of the next records. Ends after `within_s`, or with `most` matches. Raises
        LibrdkafkaError, and RefusedError.
        """
        with self._lock:
            if self._is_closed:
                return []
            found = self._found
            found.limit(most if self._newest_first else None)
            until_s = time.monotonic() + within_s
            while not self.is_done and time.monotonic() < until_s:
                if not self._waiting:
                    self._begin_window()
                self._read_window(found, until_s, most)
                if most is not None and len(found.rows) >= most:
                    break
            # A partition is read forward, also newest first: of one that is not read to the end of
            # the window the newest are not known, and `rest` has all of it.
            waiting = self._waiting if self._newest_first else {}
            rows, left_out = found.take(waiting, newest_first=self._newest_first)
            for key, end in left_out.items():
                self._left_out[key] = max(end, self._left_out.get(key, 0))
            return rows

    def _begin_window(self) -> None:
        """Ask for the next records of each partition."""
        if not self._newest_first:
            spans, self._rest = self._rest, {}
        else:
            spans, rest = {}, {}
            for key, (begin, end) in self._rest.items():
                at = max(begin, end - self._window)
                spans[key] = at, end
                if at > begin:
                    rest[key] = begin, at
            self._rest = rest
            by_bytes = WINDOW_BYTES / self._source.record_bytes / max(1, len(spans))
            self._window = max(1, int(min(self._window * GROWTH, by_bytes, MAX_WINDOW)))
        self._begins = {key: begin for key, (begin, _) in spans.items()}
        self._at = dict(self._begins)
        self._waiting = {key: end for key, (_, end) in spans.items()}
        self._source.assign(self._begins)

    def _read_window(self, found: _Found, until_s: float, most: int | None) -> None:
        """Until it is over or time is up; one that is read forward also until there are `most`."""
        now_s = time.monotonic()
        while self._waiting:
            began_s = now_s
            events = self._source.poll()
            now_s = time.monotonic()
            # Without the time between two steps, in which the caller may do something else.
            self._silent_s = 0.0 if events else self._silent_s + now_s - began_s
            if self._silent_s > SILENT_S:
                raise LibrdkafkaError(f"no records arrived for {SILENT_S:g} s.")
            self._take(events, found)
            if now_s >= until_s or (
                not self._newest_first and most is not None and len(found.rows) >= most
            ):
                return

    def _take(self, events: list[Any], found: _Found) -> None:
        """Look at what has arrived: records of one partition come in runs, so that what is known of
        it is looked up once for each of them.
        """
        matches, seen, looked_at = self._matches, self._seen, 0
        topic, number, key = "", -1, None
        begin = end = 0
        over: list[TopicPartition] = []
        for event in events:
            if event.error() is not None:
                self._ended(event)
                number = -1
                continue
            if event.partition() != number or event.topic() != topic:
                topic, number = event.topic(), event.partition()
                key = TopicPartition(topic, number)
                if key not in self._waiting:
                    key = None
                    continue
                begin, end = self._begins[key], self._waiting[key]
            elif key is None:
                continue
            offset = event.offset()
            if begin <= offset < end:
                looked_at += 1
                self._at[key] = offset + 1
                if matches is None or matches(event):
                    found.add(event.timestamp()[1], offset, key, seen(event))
                if offset < end - 1:
                    continue
            # It is over; or the brokers have no offset `begin` (any more), and librdkafka began
            # with the first that there is.
            del self._waiting[key]
            self._unread.discard(key)
            over.append(key)
            key = None
        if over:
            self._source.drop(over)
        self.looked_at += looked_at

    def _ended(self, event: Any) -> None:
        """A partition has no more. Raises for what ends the reading."""
        if is_end(event):
            key = TopicPartition(event.topic(), event.partition())
            self._waiting.pop(key, None)
            self._unread.discard(key)

    def close(self) -> None:
        """After the step that runs, if one does."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._source.consumer.close()


class RecordTail:
    """The newest records as they arrive. What is too much to look at is skipped and counted."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        ends: Mapping[TopicPartition, int],
        seen: Seen,
        matches: Matches | None = None,
    ) -> None:
        """`ends`: where it begins. Raises RejectedSettingsError."""
        self._seen, self._matches = seen, matches
        self._source = RecordSource(settings)
        self._lock = Lock()
        self._is_closed = False
        self.looked_at = 0
        self.skipped = 0
        """Records that matched and were not returned, and offsets that were not looked at."""
        self._at = dict(ends)
        self._source.assign(ends)

    @property
    def is_away(self) -> bool:
        """Whether no broker responds now."""
        return self._source.is_away

    def step(self, within_s: float, most: int) -> list[Any]:
        """The newest records of this time, at most so many, oldest first."""
        with self._lock:
            if self._is_closed:
                return []
            newest: deque[Any] = deque(maxlen=most)
            until_s = time.monotonic() + within_s
            while time.monotonic() < until_s:
                chosen = [event for event in self._source.poll() if self._is_chosen(event)]
                self.skipped += max(0, len(newest) + len(chosen) - most)
                # What is kept is small; the records themselves would pile up.
                newest.extend(self._seen(each) for each in chosen[-most:])
            if self._source.is_away:
                self._ask_again()
            self._skip_backlog()
            return list(newest)

    def _is_chosen(self, event: Any) -> bool:
        if event.error() is not None:
            is_end(event)  # raises what ends the reading
            return False
        self.looked_at += 1
        self._at[TopicPartition(event.topic(), event.partition())] = event.offset() + 1
        return self._matches is None or self._matches(event)

    def _ask_again(self) -> None:
        """Librdkafka says when brokers are away, and not when they are back."""
        try:
            self._source.consumer.list_topics(timeout=POLL_S)
        except KafkaException:
            return
        self._source.is_away = False

    def _skip_backlog(self) -> None:
        """Go on at the end where records arrive faster than they are read."""
        behind: dict[TopicPartition, int] = {}
        for key, at in self._at.items():
            known = self._source.consumer.get_watermark_offsets(PartitionAt(*key), cached=True)
            if known is not None and known[1] - at > SKIPPED_FROM:
                behind[key] = known[1]
        for key, end in behind.items():
            self.skipped += end - self._at[key]
            self._at[key] = end
        if behind:
            self._source.assign(self._at)

    def close(self) -> None:
        """After the step that runs, if one does."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._source.consumer.close()


def one_record(settings: Mapping[str, Any], key: TopicPartition, offset: int) -> Any | None:
    """The record at an offset, None if there is none. Raises LibrdkafkaError, and RefusedError."""
    scan = RecordScan(settings, {key: (offset, offset + 1)}, lambda record: record)
    try:
        found: Sequence[Any] = ()
        until_s = time.monotonic() + SILENT_S
        while not scan.is_done and time.monotonic() < until_s:
            found = [*found, *scan.step(1.0)]
    finally:
        scan.close()
    return found[0] if found else None
