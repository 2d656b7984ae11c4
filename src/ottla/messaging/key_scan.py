"""Reads the records with one key, on brokers that say where they are (Ottla's): for somebody who
looks at them, in short steps, as `record_scan` does on any Kafka.

The partitions that a common partitioner chooses for the key are searched first; of a large topic
first that of the partitioner which has chosen those of some other records. The brokers look through
their logs and answer with offsets; only the records there are read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from threading import Lock
from typing import Any, Final

from ottla.client.admin.key_offsets import in_likely_order, key_offsets
from ottla.client.client import Client
from ottla.client.metadata import Metadata
from ottla.client.topic_partition import TopicPartition
from ottla.messaging.consumer_events import is_end
from ottla.messaging.librdkafka import LibrdkafkaError
from ottla.messaging.record_scan import SILENT_S, Matches, RecordSource, Seen, Span

SAMPLED_FROM: Final = 50_000
"""Offsets of a topic whose partitioner is looked for: of fewer, all are searched as quickly."""
SAMPLED_PARTITIONS: Final = 4
SAMPLED_OFFSETS: Final = 8
"""Of each of these partitions the last, whose keys tell the partitioner."""
SAMPLED_WITHIN_S: Final = 0.3
KNOWN_S: Final = 5.0
"""Metadata of a topic with many partitions are large: not asked for before each of them."""

Lent = Callable[[], AbstractContextManager[Client]]
"""A client for the thread that calls it."""
MAX_AT_ONCE: Final = 50
"""Records that are read for one answer: each takes a fetch, if it is far from the one before."""
NEAR: Final = 200
"""Offsets that are read on rather than asked for again."""
FETCH_BYTES: Final = 64 << 10
"""Of a fetch, of which one record is wanted; a larger one comes whole."""


class KeyScan:
    """The records with the key in these spans, until it is done or nobody wants more."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        lent: Lent,
        key: bytes,
        partitions: int,
        spans: Mapping[TopicPartition, Span],
        seen: Seen,
        matches: Matches | None = None,
        *,
        newest_first: bool = False,
    ) -> None:
        """`settings`: librdkafka's. `partitions`: how many the topic has. `matches`: what else the
        records have to be. Each step's records come in the order of their times, if
        `newest_first`. Raises RejectedSettingsError.
        """
        found = {where: span for where, span in spans.items() if span[0] < span[1]}
        self.spans = {where: found[where] for where in in_likely_order(key, found, partitions)}
        self.looked_at = 0
        """Records, about: those that the brokers have searched."""
        self._rest = dict(self.spans)
        self._key, self._lent, self._partitions = key, lent, partitions
        self._seen, self._matches, self._newest_first = seen, matches, newest_first
        self._source = RecordSource(
            settings,
            {
                "fetch.message.max.bytes": FETCH_BYTES,
                "queued.max.messages.kbytes": FETCH_BYTES >> 10,
            },
        )
        self._lock = Lock()
        self._is_closed = self._has_met = False
        self._known: Metadata | None = None
        self._known_until_s = 0.0
        self._is_in_order = len(found) < 2 or self.total_offsets < SAMPLED_FROM

    @property
    def total_offsets(self) -> int:
        return sum(end - begin for begin, end in self.spans.values())

    @property
    def passed_offsets(self) -> int:
        """Of `total_offsets`; offsets without a record count."""
        return self.total_offsets - sum(end - begin for begin, end in self._rest.values())

    @property
    def is_done(self) -> bool:
        return not self._rest

    @property
    def rest(self) -> dict[TopicPartition, Span]:
        """The spans that were not searched."""
        return dict(self._rest)

    def step(self, within_s: float, most: int | None = None) -> list[Any]:
        """What matches of the next records. Ends after `within_s`, or with the first answer of a
        broker that has some, at most `most`. Raises ClientError and LibrdkafkaError.
        """
        with self._lock:
            if self._is_closed:
                return []
            found: list[tuple[tuple[int, int], Any]] = []
            until_s = time.monotonic() + within_s
            left = MAX_AT_ONCE if most is None else min(MAX_AT_ONCE, most)
            while self._rest and left > 0 and not found and time.monotonic() < until_s:
                found = self._next(left)
            if self._newest_first:
                found.sort(key=lambda each: each[0], reverse=True)
            return [each for _, each in found]

    def _next(self, most: int) -> list[tuple[tuple[int, int], Any]]:
        """What matches in the next part of the first partition that is not done."""
        if not self._is_in_order:
            self._is_in_order = True
            ordered = in_likely_order(self._key, self._rest, self._partitions, self._sampled())
            self._rest = {where: self._rest[where] for where in ordered}
        where, (begin, end) = next(iter(self._rest.items()))
        with self._lent() as client:
            if time.monotonic() >= self._known_until_s:
                self._known = client.metadata([where.topic])
                self._known_until_s = time.monotonic() + KNOWN_S
            answer = key_offsets(
                client,
                where,
                self._key,
                begin,
                end,
                from_end=self._newest_first,
                most=most,
                known=self._known,
            )
        chosen = [
            ((record.timestamp()[1], record.offset()), self._seen(record))
            for record in self._records(where, answer.offsets)
            if self._matches is None or self._matches(record)
        ]
        self.looked_at += answer.records
        left = (begin, answer.begin) if self._newest_first else (answer.end, end)
        if left[0] < left[1]:
            self._rest[where] = left
        else:
            del self._rest[where]
        return chosen

    def _sampled(self) -> list[tuple[bytes, int]]:
        """Keys of some records with their partitions; none if they do not come soon. Raises
        LibrdkafkaError, and RefusedError.
        """
        ends = {
            where.partition: end
            for where, (_, end) in list(self.spans.items())[:SAMPLED_PARTITIONS]
        }
        at = {
            where: max(self.spans[where][0], self.spans[where][1] - SAMPLED_OFFSETS)
            for where in self.spans
            if where.partition in ends
        }
        self._meet(next(iter(at)).topic)
        self._source.assign(at)
        found: list[tuple[bytes, int]] = []
        until_s = time.monotonic() + SAMPLED_WITHIN_S
        while ends and time.monotonic() < until_s:
            for event in self._source.consume(1):
                number = event.partition()
                if event.error() is not None:
                    if is_end(event):
                        ends.pop(number, None)
                elif number in ends:
                    if event.key():
                        found.append((event.key(), number))
                    if event.offset() >= ends[number] - 1:
                        del ends[number]
        return found

    def _meet(self, topic: str) -> None:
        if not self._has_met:
            self._source.meet(topic)
            self._has_met = True

    def _records(self, where: TopicPartition, offsets: Sequence[int]) -> list[Any]:
        """Those at the offsets that are still there."""
        found: list[Any] = []
        if offsets:
            self._meet(where.topic)
        at = -1
        for offset in offsets:
            if at < 0 or not at <= offset < at + NEAR:
                self._source.assign({where: offset})
            at, record = self._reach(where, offset)
            if record is not None:
                found.append(record)
        return found

    def _reach(self, where: TopicPartition, offset: int) -> tuple[int, Any | None]:
        """Read on to the offset: the position after it (-1: the end), and its record, if it has one
        (still). Raises LibrdkafkaError, and RefusedError.
        """
        until_s = time.monotonic() + SILENT_S
        while time.monotonic() < until_s:
            for event in self._source.consume(1):
                if event.error() is not None:
                    if is_end(event):
                        return -1, None
                elif event.offset() >= offset:
                    return event.offset() + 1, event if event.offset() == offset else None
        raise LibrdkafkaError(f"no records of {where} arrived for {SILENT_S:g} s.")

    def close(self) -> None:
        """After the step that runs, if one does."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._source.consumer.close()
