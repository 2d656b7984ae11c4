"""Looking records up: by time (ListOffsets), and where one lies (the journey)."""

import os
from typing import NamedTuple

from ottla.log.log import Log
from ottla.log.segment import Segment
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.errors import CorruptBatchError, InvalidRecordError
from ottla.records.header import BatchHeader, TimestampType
from ottla.records.iterate import iterate_records


class FoundTimestamp(NamedTuple):
    """A record found by its time. `leader_epoch` is that of its batch, -1 where it has none."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


class Place(NamedTuple):
    """Where a record lies. `index_entry` is the one that leads there: (offset, position)."""

    file: str
    segment_offset: int
    position: int
    header: BatchHeader
    index_entry: tuple[int, int]
    is_active: bool


def find_timestamp(log: Log, timestamp_ms: int) -> FoundTimestamp | None:
    """The first record from the log's start on that is at least as young; None where all are older.

    Raises ApiError KAFKA_STORAGE_ERROR.
    """
    for segment in log.segments[log.segment_number(log.start_offset) :]:
        if segment.size_bytes and segment.largest_timestamp() >= timestamp_ms:
            found = _find_in(segment, timestamp_ms, log.start_offset)
            if found is not None:
                return found
    return None


def _find_in(segment: Segment, timestamp_ms: int, start_offset: int) -> FoundTimestamp | None:
    # The entry is the last that is not younger, so no record up to its offset is young enough.
    _, offset = segment.time_index_entry(timestamp_ms - 1)
    position = segment.lookup(max(offset, start_offset))
    try:
        for at, header in segment.headers(position):
            if header.max_timestamp < timestamp_ms or header.last_offset < start_offset:
                continue
            for record in iterate_records(_batch_at(segment, at, header), header):
                if record.timestamp_ms >= timestamp_ms and record.offset >= start_offset:
                    return FoundTimestamp(record.timestamp_ms, record.offset, header.leader_epoch)
    except (CorruptBatchError, InvalidRecordError) as error:
        raise _damaged(segment, error) from None
    return None


def find_max_timestamp(log: Log) -> FoundTimestamp | None:
    """The first record with the largest timestamp (KIP-734); None for an empty log.

    Raises ApiError KAFKA_STORAGE_ERROR.
    """
    segments = [segment for segment in log.segments if segment.size_bytes]
    if not segments or log.start_offset == log.end_offset:
        return None
    segment = max(segments, key=Segment.largest_record_timestamp)
    largest, last_offset = segment.largest_record_timestamp(), segment.max_timestamp_offset
    try:
        for at, header in segment.headers(segment.lookup(last_offset)):
            if header.max_timestamp < largest:
                continue
            if header.timestamp_type is TimestampType.log_append_time or header.count == 0:
                return FoundTimestamp(largest, header.base_offset, header.leader_epoch)
            for record in iterate_records(_batch_at(segment, at, header), header):
                if record.timestamp_ms == largest:
                    return FoundTimestamp(largest, record.offset, header.leader_epoch)
            # The producer's header lied: its last record stands in.
            return FoundTimestamp(largest, header.last_offset, header.leader_epoch)
    except (CorruptBatchError, InvalidRecordError) as error:
        raise _damaged(segment, error) from None
    return None


def locate(log: Log, offset: int) -> Place | None:
    """Where the batch with `offset` lies; None where it is not in the log (compacted, deleted, not
    yet written).

    Raises ApiError KAFKA_STORAGE_ERROR.
    """
    if not log.start_offset <= offset < log.end_offset:
        return None
    segment = log.segments[log.segment_number(offset)]
    found = log.find(segment, offset)
    if found is None:
        return None
    _, header = next(segment.headers(found.position))
    if header.base_offset > offset:
        return None
    return Place(
        segment.path,
        segment.base_offset,
        found.position,
        header,
        segment.offset_index.lookup(offset),
        segment is log.active,
    )


def _batch_at(segment: Segment, position: int, header: BatchHeader) -> bytes:
    return os.pread(segment.file().fd, header.size_bytes, position)


def _damaged(segment: Segment, error: ApiError) -> ApiError:
    return ApiError(ErrorCode.kafka_storage_error, f"{segment.path} is damaged: {error}")
