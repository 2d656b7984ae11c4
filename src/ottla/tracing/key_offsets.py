"""Finds the offsets of the records with a key between two offsets of a partition.

A partition has no index of keys, so this reads the log, a few windows at a time in a thread, and
ends within `MAX_BYTES` and `MAX_S`: who asks goes on where it ended. Nearly all of the thread's
time is spent without Python's lock (`records.bytes_search`). Records of open and aborted
transactions are found as well, as a reader with read_uncommitted sees them.
"""

from __future__ import annotations

import asyncio
import os
import time
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.bytes_search import find_in
from ottla.records.compression import decompress
from ottla.records.header import HEADER_BYTES, OVERHEAD_BYTES, read_header
from ottla.records.key_scan import Batches, deltas_with_key, needle_of, pass_batches
from ottla.replica.partition import Partition
from ottla.replica.partition_role import Role
from ottla.runtime.cpu_thread import take_turns
from ottla.tracing.key_search import newest_first, oldest_first, storage_refusals
from ottla.tracing.segment_search import Window

CHUNK_BYTES: Final = 512 << 10
"""Of a file, read at once: it stays in a core's own cache. A larger batch is read whole."""
WINDOWS_AT_ONCE: Final = 8
"""In a thread, until the time is up."""
MAX_BYTES: Final = 1 << 30
"""As they are stored."""
MAX_S: Final = 0.2
MAX_OFFSETS: Final = 1000


class KeyOffsets(NamedTuple):
    """The offsets with the key, in their order, of all records from `begin` to before `end`; that
    is what of the wanted offsets was searched. `records`: about how many these are.
    """

    offsets: list[int]
    begin: int
    end: int
    records: int


async def find_offsets(
    partition: Partition,
    key: bytes,
    begin: int,
    end: int,
    *,
    from_end: bool,
    most: int,
    max_bytes: int = MAX_BYTES,
    max_s: float = MAX_S,
) -> KeyOffsets:
    """The offsets from `begin` on, or from `end` back, until one of the limits is reached; at least
    one window is searched. Beyond what the partition has, there is nothing to search.

    Raises ApiError NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE, INVALID_RECORD.
    """
    if partition.role is not Role.LEADER:
        raise ApiError(ErrorCode.not_leader_or_follower)
    log = partition.log
    first, last = max(begin, log.start_offset), min(end, partition.high_watermark)
    if first >= last:
        return KeyOffsets([], begin, end, 0)
    needle = needle_of(key)
    until_s = time.monotonic() + max_s
    windows = newest_first(log, last) if from_end else oldest_first(log, first)
    upcoming = next(windows, None)
    found: list[int] = []
    records, is_begun = 0, False
    while upcoming is not None and first < last and (from_end or upcoming.first_offset < last):
        if is_begun and (max_bytes <= 0 or time.monotonic() >= until_s):
            break
        run: list[Window] = []
        while upcoming is not None and len(run) < WINDOWS_AT_ONCE and (not run or max_bytes > 0):
            run.append(upcoming)
            max_bytes -= upcoming.size_bytes
            upcoming = next(windows, None)
        with storage_refusals():
            searched = await asyncio.to_thread(offsets_in, run, needle, first, last, until_s)
        is_begun = True
        for window, (here, count) in zip(run, searched, strict=False):
            records += count
            room = most - len(found)
            if from_end:
                found[:0] = here[max(0, len(here) - room) :]
                last = max(first, window.first_offset)
            else:
                found += here[:room]
            if len(found) == most:
                # What is left of the window is searched with the next question.
                at = (found[0], end) if from_end else (begin, found[-1] + 1)
                return KeyOffsets(found, *at, records)
        is_over = len(searched) < len(run)
        if is_over:
            upcoming = run[len(searched)]
        if not from_end and upcoming is not None:
            first = max(first, upcoming.first_offset)
        if is_over:
            break
    if upcoming is None or first >= last:
        return KeyOffsets(found, begin, end, records)
    return KeyOffsets(found, last if from_end else begin, end if from_end else first, records)


def offsets_in(
    run: Sequence[Window], needle: bytes, begin: int, end: int, until_s: float
) -> list[tuple[list[int], int]]:
    """What `offsets_in_window` finds in each of these windows; of at least one of them, and of the
    others until the time is up (as of `time.monotonic`). Raises like it.
    """
    found = [offsets_in_window(run[0], needle, begin, end)]
    for window in run[1:]:
        if time.monotonic() >= until_s:
            break
        found.append(offsets_in_window(window, needle, begin, end))
    return found


def offsets_in_window(window: Window, needle: bytes, begin: int, end: int) -> tuple[list[int], int]:
    """The offsets with the key, in their order, and the number of the window's records. `needle`:
    as of `records.key_scan`. Raises OSError, CorruptBatchError, InvalidRecordError.
    """
    found: list[int] = []
    records = 0
    position = window.position
    wanted = CHUNK_BYTES
    while position + HEADER_BYTES <= window.end:
        chunk = os.pread(window.file.fd, min(wanted, window.end - position), position)
        passed = pass_batches(chunk, 0, len(chunk))
        if passed.end == 0:
            if len(chunk) < HEADER_BYTES:
                break
            whole = OVERHEAD_BYTES + int.from_bytes(chunk[8:12])
            if whole <= len(chunk) or position + whole > window.end:
                break  # cut off meanwhile, or not written yet
            wanted = whole
            continue
        found += _in_chunk(chunk, passed, needle, begin, end)
        records += passed.records
        position += passed.end
        wanted = CHUNK_BYTES
    return found[bisect_left(found, begin) : bisect_left(found, end)], records


def _in_chunk(chunk: bytes, passed: Batches, needle: bytes, begin: int, end: int) -> list[int]:
    found: list[int] = []
    for at in passed.compressed:
        found += _in_batch(chunk, at, needle, begin, end)
    packed = set(passed.compressed)
    batch_from, at = 0, find_in(chunk, needle, 0, passed.end)
    while at >= 0:
        to_it = pass_batches(chunk, batch_from, at + 1)
        if to_it.last_at not in packed:
            found += _in_batch(chunk, to_it.last_at, needle, begin, end)
        batch_from = to_it.end
        at = find_in(chunk, needle, batch_from, passed.end)
    if packed:
        found.sort()
    return found


def _in_batch(chunk: bytes, at: int, needle: bytes, begin: int, end: int) -> list[int]:
    header = read_header(chunk, at)
    if header.is_control or header.last_offset < begin or header.base_offset >= end:
        return []
    packed = memoryview(chunk)[at + HEADER_BYTES : at + header.size_bytes]
    records = bytes(decompress(header.compression, packed))
    if find_in(records, needle, 0, len(records)) < 0:
        return []
    first = header.base_offset
    return [first + each for each in deltas_with_key(records, header.count, needle, take_turns)]
