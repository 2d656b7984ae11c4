"""Finds the offsets of the records with a key between two offsets of a partition.

A partition has no index of keys, so this reads the log, a window at a time in a thread, and ends
within `MAX_BYTES` and `MAX_S`: who asks goes on where it ended. Records of open and aborted
transactions are found as well, as a reader with read_uncommitted sees them.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from typing import Final, NamedTuple

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.compression import decompress
from ottla.records.header import HEADER_BYTES, OVERHEAD_BYTES, read_header
from ottla.records.key_scan import Batches, deltas_with_key, needle_of, pass_batches
from ottla.replica.partition import Partition
from ottla.replica.partition_role import Role
from ottla.runtime.cpu_thread import take_turns
from ottla.tracing.key_search import in_thread, newest_first, oldest_first
from ottla.tracing.segment_search import Window

CHUNK_BYTES: Final = 1 << 20
"""A search in so many bytes takes less than a millisecond, which nothing interrupts."""
MAX_BYTES: Final = 128 << 20
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
    needle = needle_of(key)
    found: list[int] = []
    records = 0
    until_s = time.monotonic() + max_s
    if first >= last:
        return KeyOffsets([], begin, end, 0)
    if from_end:
        at = last
        for window in newest_first(log, last):
            if at <= first or (at < last and (max_bytes <= 0 or time.monotonic() >= until_s)):
                break
            max_bytes -= window.size_bytes
            here, count = await in_thread(offsets_in_window, window, needle, first, at)
            records += count
            kept = here[len(here) - min(len(here), most - len(found)) :]
            found[:0] = kept
            if len(found) == most:
                # What is left of the window is searched with the next question.
                return KeyOffsets(found, found[0], end, records)
            at = max(first, window.first_offset)
        return KeyOffsets(found, begin if at <= first else at, end, records)
    at = first
    for window in oldest_first(log, first):
        if window.first_offset >= last:
            break
        if window.first_offset > first and (max_bytes <= 0 or time.monotonic() >= until_s):
            return KeyOffsets(found, begin, max(at, window.first_offset), records)
        max_bytes -= window.size_bytes
        here, count = await in_thread(offsets_in_window, window, needle, first, last)
        records += count
        found += here[: most - len(found)]
        if len(found) == most:
            return KeyOffsets(found, begin, found[-1] + 1, records)
    return KeyOffsets(found, begin, end, records)


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


def find_in(data: bytes, needle: bytes, begin: int, end: int) -> int:
    """As `data.find(needle, begin, end)`, which lets no other thread run until it is done: a batch
    may have hundreds of megabytes.
    """
    for at in range(begin, end, CHUNK_BYTES):
        found = data.find(needle, at, min(end, at + CHUNK_BYTES + len(needle) - 1))
        if found >= 0:
            return found
    return -1


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
