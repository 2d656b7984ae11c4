"""Searches a key in segment files, in either direction, within a budget of bytes.

A window is a range of an open segment file that begins and ends with a batch. The searches read
windows and know nothing about logs; they run in a worker thread. A window has a few MiB, so that
the caller can stop between two of them.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ottla.journey.record_in_batch import all_with_key, last_with_key
from ottla.journey.table_rows import KeyRecord
from ottla.log.open_file import OpenFile
from ottla.log.scan import scan_batches
from ottla.log.segment import Segment
from ottla.records.control import ControlType, read_end_marker
from ottla.records.header import HEADER_BYTES, BatchHeader, read_header
from ottla.records.record import Record

WINDOW_BYTES: Final = 4 * 1024 * 1024
BUDGET_BYTES: Final = 256 * 1024 * 1024
"""The limit for one search; takes about a second."""
ELSEWHERE_BUDGET_BYTES: Final = BUDGET_BYTES // 4
"""The limit for the search of a key in the partitions that do not have the explained message."""


class Window(NamedTuple):
    """Bytes `position` to `end` of a segment's file, which it keeps open. `first_offset` is that of
    its first batch.
    """

    file: OpenFile
    position: int
    end: int
    first_offset: int

    @property
    def size_bytes(self) -> int:
        return self.end - self.position


def windows(segment: Segment, next_offset: int) -> Iterator[Window]:
    """The segment in windows, newest first. Call it on the event loop's thread, like the segment
    itself.

    `next_offset` is where the segment ends. Raises OSError, CorruptBatchError, and ApiError as
    `Segment.find`.
    """
    size = segment.size_bytes
    if size == 0:
        return
    file = segment.file()
    pieces = -(-size // WINDOW_BYTES)
    offsets = next_offset - segment.base_offset
    end = size
    for piece in reversed(range(pieces)):
        position, first_offset = 0, segment.base_offset
        if piece:
            found = segment.find(segment.base_offset + offsets * piece // pieces)
            if found is None:
                continue  # compaction left a gap at its end
            position = found.position
            first_offset = read_header(os.pread(file.fd, HEADER_BYTES, position)).base_offset
        if position < end:
            yield Window(file, position, end, first_offset)
            end = position


def last_in_window(window: Window, key: bytes, before_offset: int) -> KeyRecord | None:
    """The window's last record with the key, below `before_offset`.

    Raises OSError, CorruptBatchError, InvalidRecordError.
    """
    found: KeyRecord | None = None
    for _, header, batch in scan_batches(window.file, window.position, window.end):
        if header.base_offset >= before_offset:
            break
        record = last_with_key(header, batch, key, before_offset)
        if record is not None:
            found = key_record(record)
    return found


def first_in_window(
    window: Window, key: bytes, after_offset: int
) -> tuple[int, BatchHeader] | None:
    """The offset of a later record with the key: the last one in the window's first batch that has
    one past `after_offset`, and that batch's header. Raises like `last_in_window`.
    """
    for _, header, batch in scan_batches(window.file, window.position, window.end):
        if header.last_offset <= after_offset:
            continue
        record = last_with_key(header, batch, key)
        if record is not None and record.offset > after_offset:
            return record.offset, header
    return None


class InWindow(NamedTuple):
    """A window's records with a key, in the order of their offsets.

    `open`: by the offset of each whose transaction does not end in the window, its producer id.
    `ends`: whether the first transaction that ends in the window, of each producer, was committed.
    """

    records: list[KeyRecord]
    open: dict[int, int]
    ends: dict[int, bool]


def all_in_window(window: Window, key: bytes) -> InWindow:
    """Raises like `last_in_window`."""
    found: dict[int, KeyRecord] = {}
    is_open: dict[int, int] = {}
    ends: dict[int, bool] = {}
    for _, header, batch in scan_batches(window.file, window.position, window.end):
        if header.is_control:
            marker = read_end_marker(batch)
            if marker is not None:
                is_commit = marker.type is ControlType.commit
                ends.setdefault(header.producer_id, is_commit)
                decide(found, is_open, {header.producer_id: is_commit})
            continue
        for record in all_with_key(header, batch, key):
            found[record.offset] = key_record(record)
            if header.is_transactional:
                is_open[record.offset] = header.producer_id
                found[record.offset] = found[record.offset]._replace(is_committed=None)
    return InWindow(list(found.values()), is_open, ends)


def decide(
    records: dict[int, KeyRecord], is_open: dict[int, int], ends: Mapping[int, bool]
) -> None:
    """End the open transactions of these producers."""
    for offset in [offset for offset, producer_id in is_open.items() if producer_id in ends]:
        is_committed = ends[is_open.pop(offset)]
        records[offset] = records[offset]._replace(is_committed=is_committed)


def key_record(record: Record) -> KeyRecord:
    return KeyRecord(record.offset, record.timestamp_ms, record.value is None)
