"""Finds the newest record with a key, and a later record with the same key.

A partition has no index of keys, so this reads the log: window by window, each in a thread, and at
most `BUDGET_BYTES` per search. If that does not cover the log, the result says how far it came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from ottla.journey.key_elsewhere import Hit, KeyElsewhere
from ottla.journey.table_rows import MAX_RECORDS, KeyHistory, KeyRecord
from ottla.log.config import FOREVER_MS
from ottla.log.errors import CorruptIndexError, storage_error
from ottla.log.log import Log
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.header import BatchHeader
from ottla.replica.partition import Partition
from ottla.tracing.segment_search import (
    BUDGET_BYTES,
    ELSEWHERE_BUDGET_BYTES,
    InWindow,
    Window,
    all_in_window,
    decide,
    first_in_window,
    last_in_window,
    windows,
)

T = TypeVar("T")
EVERYTHING = FOREVER_MS
"""The search reached the end of the log."""


class Searched(NamedTuple):
    """How far back a partition was searched: from its end to this offset. `has_removed`: it has had
    messages that deletion or compaction removed, or may have had some.
    """

    partition: int
    down_to: int
    start_offset: int
    has_removed: bool

    @property
    def whole(self) -> bool:
        return self.down_to <= self.start_offset

    @classmethod
    def of(cls, partition: Partition, down_to: int) -> Searched:
        log = partition.log
        start = log.start_offset
        has_removed = start > 0 or log.config.cleanup_compact
        return cls(partition.index, max(down_to, start), start, has_removed)


async def find_newest(
    partitions: Sequence[Partition], key: bytes, budget_bytes: int = BUDGET_BYTES
) -> tuple[list[Hit], list[Searched]]:
    """The newest record with the key of each partition that has one, and how far the others were
    searched. When one is found, the rest has a part of the budget.

    Raises ApiError KAFKA_STORAGE_ERROR or CORRUPT_MESSAGE if the log cannot be read.
    """
    hits: list[Hit] = []
    searched: list[Searched] = []
    for partition in partitions:
        found, budget_bytes = await newest_in(partition, key, budget_bytes)
        if isinstance(found, Hit):
            hits.append(found)
            budget_bytes = min(budget_bytes, ELSEWHERE_BUDGET_BYTES)
        else:
            searched.append(found)
    return hits, searched


async def newest_in(
    partition: Partition, key: bytes, budget_bytes: int
) -> tuple[Hit | Searched, int]:
    """The partition's newest record with the key, or how far it was searched; and what is left of
    the budget.
    """
    log = partition.log
    down_to = log.end_offset
    for window in newest_first(log):
        if budget_bytes <= 0:
            break
        budget_bytes -= window.size_bytes
        found = await in_thread(last_in_window, window, key, down_to)
        if found is not None and found.offset >= log.start_offset:
            return Hit(partition.index, found.offset, found.timestamp_ms), budget_bytes
        down_to = window.first_offset
    return Searched.of(partition, down_to), budget_bytes


async def find_elsewhere(
    partitions: Sequence[Partition], key: bytes, led_by_others: Sequence[int]
) -> KeyElsewhere:
    """The newest record with the key of each of the partitions. Raises like `find_newest`."""
    hits, searched = await find_newest(partitions, key, ELSEWHERE_BUDGET_BYTES)
    return elsewhere_of(hits, searched, led_by_others)


def elsewhere_of(
    hits: Sequence[Hit], searched: Sequence[Searched], led_by_others: Sequence[int]
) -> KeyElsewhere:
    left = [one.partition for one in searched if not one.whole]
    removed = [one.partition for one in searched if one.has_removed]
    return KeyElsewhere(
        tuple(sorted(hits)), tuple(sorted((*left, *led_by_others))), tuple(sorted(removed))
    )


class Later(NamedTuple):
    """A later record with the key, and the header of its batch; None: none was found.

    The log was searched up to `searched_to`, and of the budget this is left.
    """

    offset: int
    header: BatchHeader | None
    searched_to: int
    left_bytes: int


async def find_later(log: Log, key: bytes, offset: int, budget_bytes: int = BUDGET_BYTES) -> Later:
    """The last record with the key in the first batch that has one after the offset."""
    for window in oldest_first(log, offset):
        if budget_bytes <= 0:
            return Later(-1, None, window.first_offset, 0)
        budget_bytes -= window.size_bytes
        found = await in_thread(first_in_window, window, key, offset)
        if found is not None:
            return Later(*found, found[0], budget_bytes)
    return Later(-1, None, EVERYTHING, budget_bytes)


async def find_history(
    log: Log, key: bytes, offset: int, budget_bytes: int = BUDGET_BYTES
) -> KeyHistory:
    """The records with the key around an offset: at most `MAX_RECORDS` before and after it.

    Each direction has half of the budget.
    """
    seen: dict[int, InWindow] = {}
    later: list[KeyRecord] = []
    left_bytes, has_all = budget_bytes // 2, True
    for window in oldest_first(log, offset):
        if left_bytes <= 0 or len(later) > MAX_RECORDS + 1:
            has_all = False
            break
        left_bytes -= window.size_bytes
        found = seen[window.first_offset] = await in_thread(all_in_window, window, key)
        later += [one for one in found.records if one.offset >= offset]
    earlier: list[KeyRecord] = []
    left_bytes = budget_bytes // 2
    is_whole = log.start_offset == 0 and not log.config.cleanup_compact
    for window in newest_first(log, offset):
        if left_bytes <= 0 or len(earlier) > MAX_RECORDS:
            is_whole = False
            break
        left_bytes -= window.size_bytes
        found = seen[window.first_offset] = await in_thread(all_in_window, window, key)
        some = [one for one in found.records if log.start_offset <= one.offset < offset]
        earlier = some + earlier
    is_whole &= len(earlier) <= MAX_RECORDS
    has_all &= len(later) <= MAX_RECORDS + 1  # one is the record at the offset
    decided = _decided(seen)
    records = (*earlier[-MAX_RECORDS:], *later[: MAX_RECORDS + 1])
    return KeyHistory([decided[one.offset] for one in records], is_whole=is_whole, has_all=has_all)


def _decided(seen: Mapping[int, InWindow]) -> dict[int, KeyRecord]:
    """The records of all windows, with the outcomes of transactions that end in a later one."""
    records: dict[int, KeyRecord] = {}
    is_open: dict[int, int] = {}
    for _, found in sorted(seen.items()):
        decide(records, is_open, found.ends)
        records |= {one.offset: one for one in found.records}
        is_open |= found.open
    return records


def newest_first(log: Log, until_offset: int | None = None) -> Iterator[Window]:
    """The log's windows from its end back to its start. Each segment is split when it is reached.

    With `until_offset` it begins with the window that has the record before that offset.

    The caller waits between two windows, so the next segment is looked up only then: retention may
    have removed segments, and compaction may have replaced them.
    """
    at = log.end_offset if until_offset is None else until_offset
    while at > log.start_offset:
        number = log.segment_number(at - 1)
        segment = log.segments[number]
        if segment.base_offset >= at:
            return
        is_last = number + 1 == len(log.segments)
        next_offset = log.end_offset if is_last else log.segments[number + 1].base_offset
        with storage_refusals():
            pieces = list(windows(segment, next_offset))
        yield from (window for window in pieces if window.first_offset < at)
        at = segment.base_offset


def oldest_first(log: Log, offset: int) -> Iterator[Window]:
    """The log's windows from the one with the offset on. Each segment is split when it is
    reached.
    """
    at = offset
    while at < log.end_offset:
        number = log.segment_number(at)
        last = number + 1 == len(log.segments)
        next_offset = log.end_offset if last else log.segments[number + 1].base_offset
        with storage_refusals():
            pieces = list(windows(log.segments[number], next_offset))
        ends = [later.first_offset for later in pieces[:-1]]
        for window in reversed(pieces):
            end = ends.pop() if ends else next_offset
            if end > offset:
                yield window
        at = next_offset


async def in_thread(search: Callable[..., T], window: Window, key: bytes, *limits: int) -> T:
    with storage_refusals():
        return await asyncio.to_thread(search, window, key, *limits)


@contextmanager
def storage_refusals() -> Iterator[None]:
    """Turn errors of the disk into KAFKA_STORAGE_ERROR."""
    try:
        yield
    except OSError as error:
        raise storage_error("cannot search the log", error) from None
    except CorruptIndexError as error:
        raise ApiError(ErrorCode.kafka_storage_error, str(error)) from None
