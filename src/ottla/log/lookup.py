"""Looks up records by time (ListOffsets).

The event loop finds the segment and the position in its file with the indexes. A worker thread then
searches the batches there, which may have to be read from disk and decompressed. The log may change
between two searches, so the next segment is looked up only then.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

from ottla.log.errors import storage_error
from ottla.log.log import Log
from ottla.log.open_file import OpenFile
from ottla.log.scan import scan_headers
from ottla.log.segment import Segment
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.errors import CorruptBatchError, InvalidRecordError
from ottla.records.header import BatchHeader, TimestampType
from ottla.records.iterate import iterate_records


class FoundTimestamp(NamedTuple):
    """A record found by its time. `leader_epoch` is that of its batch, -1 if it has none."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


class Search(ABC):
    """A search in the rest of one segment, whose file it keeps open. Created on the event loop."""

    def __init__(self, segment: Segment, offset: int) -> None:
        """Start at the batch that the index has for `offset`. Raises ApiError
        KAFKA_STORAGE_ERROR.
        """
        self._path = segment.path
        self._file: OpenFile = segment.file()
        self._position = segment.lookup(offset)
        self._end = segment.size_bytes

    def run(self) -> FoundTimestamp | None:
        """The record, if found; in any thread. Raises ApiError KAFKA_STORAGE_ERROR."""
        try:
            for position, header in scan_headers(self._file, self._position, self._end):
                found = self._look(position, header)
                if found is not None:
                    return found
        except (CorruptBatchError, InvalidRecordError) as error:
            raise ApiError(
                ErrorCode.kafka_storage_error, f"{self._path} is damaged: {error}"
            ) from None
        except OSError as error:
            raise storage_error(f"cannot read {self._path}", error) from None
        return None

    @abstractmethod
    def _look(self, position: int, header: BatchHeader) -> FoundTimestamp | None:
        """The record in this batch; None if the search continues."""

    def _batch_at(self, position: int, header: BatchHeader) -> bytes:
        return os.pread(self._file.fd, header.size_bytes, position)


class _TimestampSearch(Search):
    def __init__(self, segment: Segment, timestamp_ms: int, start_offset: int) -> None:
        # The entry is the last one that is not later, so no record up to its offset is late enough.
        _, offset = segment.time_index_entry(timestamp_ms - 1)
        super().__init__(segment, max(offset, start_offset))
        self._timestamp_ms = timestamp_ms
        self._start_offset = start_offset

    def _look(self, position: int, header: BatchHeader) -> FoundTimestamp | None:
        wanted_ms, start_offset = self._timestamp_ms, self._start_offset
        if header.max_timestamp < wanted_ms or header.last_offset < start_offset:
            return None
        for record in iterate_records(self._batch_at(position, header), header):
            if record.timestamp_ms >= wanted_ms and record.offset >= start_offset:
                return FoundTimestamp(record.timestamp_ms, record.offset, header.leader_epoch)
        return None


class _MaxTimestampSearch(Search):
    def __init__(self, segment: Segment) -> None:
        self._largest_ms = segment.largest_record_timestamp()
        super().__init__(segment, segment.max_timestamp_offset)

    def _look(self, position: int, header: BatchHeader) -> FoundTimestamp | None:
        largest_ms, epoch = self._largest_ms, header.leader_epoch
        if header.max_timestamp < largest_ms:
            return None
        if header.timestamp_type is TimestampType.log_append_time or header.count == 0:
            return FoundTimestamp(largest_ms, header.base_offset, epoch)
        for record in iterate_records(self._batch_at(position, header), header):
            if record.timestamp_ms == largest_ms:
                return FoundTimestamp(largest_ms, record.offset, epoch)
        # The producer's header was wrong: use the last record.
        return FoundTimestamp(largest_ms, header.last_offset, epoch)


def timestamp_searches(log: Log, timestamp_ms: int) -> Iterator[Search]:
    """The searches for the first record at or after that time. Run them in this order until one
    finds it.

    Raises ApiError KAFKA_STORAGE_ERROR.
    """
    offset = log.start_offset
    while offset < log.end_offset:
        number = log.segment_number(offset)
        segment, is_last = log.segments[number], number + 1 == len(log.segments)
        offset = log.end_offset if is_last else log.segments[number + 1].base_offset
        if segment.size_bytes and segment.largest_timestamp() >= timestamp_ms:
            yield _TimestampSearch(segment, timestamp_ms, log.start_offset)


def max_timestamp_searches(log: Log) -> Iterator[Search]:
    """The search for the first record with the largest timestamp (KIP-734); none in an empty log.

    Raises ApiError KAFKA_STORAGE_ERROR.
    """
    segments = [segment for segment in log.segments if segment.size_bytes]
    if segments and log.start_offset < log.end_offset:
        yield _MaxTimestampSearch(max(segments, key=Segment.largest_record_timestamp))
