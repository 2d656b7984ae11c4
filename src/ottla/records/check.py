"""What a broker demands of the batch that a client wants written.

The rules and their error codes are those of Kafka's ProduceRequest.validateRecords and
LogValidator. The header and the checksum are checked for every batch. A record costs Python time,
so records are looked at only
- where the batch is small (uncompressed, at most 64 records): a count or a length that lies is
  refused as in Kafka;
- on a compacted topic, where each record must have a key (KIP-467 names the ones that have none);
- to name the guilty records once the header has shown that there are some.
A larger batch that lies about its inside is stored, as its checksum says that its producer wants
it.
"""

from typing import Final

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.compression import LARGEST_RECORDS_BYTES, Compression
from ottla.records.errors import CorruptBatchError, InvalidRecordError, RecordError
from ottla.records.header import (
    HEADER_BYTES,
    MAGIC,
    NO_TIMESTAMP,
    OVERHEAD_BYTES,
    BatchHeader,
    Buffer,
    TimestampType,
    ensure_crc,
    read_header,
)
from ottla.records.iterate import iterate_records

SMALLEST_RECORD_BYTES: Final = 7
MAX_RECORDS_WALKED: Final = 64
LARGEST_COMPRESSION_RATIO: Final = 32_768
"""No codec does better: zstd makes 128 KB of one byte into a block of 4 bytes."""
_LARGEST_INT64: Final = 2**63 - 1
_SHOWN_ERRORS: Final = 3


def check_batches(
    records: Buffer,
    *,
    max_message_bytes: int,
    now_ms: int = 0,
    timestamp_type: TimestampType = TimestampType.create_time,
    timestamp_before_max_ms: int = _LARGEST_INT64,
    timestamp_after_max_ms: int = _LARGEST_INT64,
    keys_required: bool = False,
    zstd_allowed: bool = True,
    limit_bytes: int = LARGEST_RECORDS_BYTES,
) -> list[BatchHeader]:
    """The header of the one batch that a Produce request of version 3 or newer may hold for a
    partition.

    `keys_required` is for compacted topics; `zstd_allowed` is false below Produce 7. Bytes behind
    the batch that form no whole batch are left out, as Kafka does: store `size_bytes` of the header
    and no more.
    Raises CorruptBatchError, InvalidRecordError (with the records at fault), or ApiError with
    MESSAGE_TOO_LARGE or UNSUPPORTED_COMPRESSION_TYPE.
    """
    header = _only_batch(records)
    if header.compression == Compression.zstd and not zstd_allowed:
        raise ApiError(
            ErrorCode.unsupported_compression_type, "Produce below version 7 has no zstd"
        )
    if header.base_offset != 0:
        raise InvalidRecordError(f"the batch's base offset is {header.base_offset} and must be 0")
    if header.size_bytes > max_message_bytes:
        raise ApiError(
            ErrorCode.message_too_large,
            f"a batch of {header.size_bytes} bytes; max.message.bytes is {max_message_bytes}",
        )
    batch = memoryview(records)[: header.size_bytes]
    ensure_crc(header, batch)
    _check_header(header)
    _check_timestamps(
        header, batch, timestamp_type, now_ms, timestamp_before_max_ms, timestamp_after_max_ms
    )
    if keys_required:
        _check_keys(header, batch, limit_bytes)
    elif header.compression == Compression.none and header.count <= MAX_RECORDS_WALKED:
        walk_records(bytes(batch[HEADER_BYTES:]), header.count)
    return [header]


def _only_batch(records: Buffer) -> BatchHeader:
    header = _whole_batch(records, 0)
    if header is None:
        raise InvalidRecordError("a Produce request has one batch per partition; here is none")
    if _whole_batch(records, header.size_bytes) is not None:
        raise InvalidRecordError("a Produce request has one batch per partition; here are more")
    return header


def _whole_batch(records: Buffer, position: int) -> BatchHeader | None:
    left = len(records) - position
    if left < OVERHEAD_BYTES + 5:
        return None
    size_bytes = OVERHEAD_BYTES + int.from_bytes(records[position + 8 : position + 12], signed=True)
    magic = records[position + 16]
    if 0 <= magic < MAGIC:
        # Kafka 4 no longer converts the older formats (KIP-724).
        raise InvalidRecordError(f"a batch of magic {magic}; only magic 2 is taken")
    if size_bytes < HEADER_BYTES:
        raise CorruptBatchError(f"a batch cannot be {size_bytes} bytes long")
    if magic != MAGIC:
        raise CorruptBatchError(f"magic {magic}, where only magic 2 is known")
    return read_header(records, position) if size_bytes <= left else None


def _check_header(header: BatchHeader) -> None:
    if header.count <= 0:
        raise InvalidRecordError(f"the batch says {header.count} records")
    if header.last_offset_delta + 1 != header.count:
        raise InvalidRecordError(
            f"the batch says {header.count} records, and that its last is number"
            f" {header.last_offset_delta}"
        )
    if header.is_control:
        raise InvalidRecordError("clients may not write control records")
    if header.has_producer_id and header.base_sequence < 0:
        raise InvalidRecordError(
            f"producer {header.producer_id} sent the sequence {header.base_sequence}"
        )
    if header.compression > Compression.zstd:
        raise ApiError(
            ErrorCode.unsupported_compression_type, f"no compression is {header.compression}"
        )
    room = header.size_bytes - HEADER_BYTES
    if header.compression != Compression.none:
        room *= LARGEST_COMPRESSION_RATIO
    if header.count * SMALLEST_RECORD_BYTES > room:
        raise InvalidRecordError(f"the batch says {header.count} records in {room} bytes")


def _check_timestamps(
    header: BatchHeader,
    batch: Buffer,
    timestamp_type: TimestampType,
    now_ms: int,
    before_max_ms: int,
    after_max_ms: int,
) -> None:
    """The header's first and largest time stand for all its records."""
    if header.timestamp_type is TimestampType.log_append_time:
        raise InvalidRecordError(
            "a producer may not set the timestamp type LogAppendTime",
            code=ErrorCode.invalid_timestamp,
        )
    if timestamp_type is TimestampType.log_append_time:
        return
    earliest, latest = now_ms - before_max_ms, now_ms + after_max_ms
    bounds = (header.base_timestamp, header.max_timestamp)
    if all(time == NO_TIMESTAMP or earliest <= time <= latest for time in bounds):
        return
    guilty = [
        RecordError(
            index, f"Timestamp {record.timestamp_ms} is out of range [{earliest}, {latest}]"
        )
        for index, record in enumerate(iterate_records(batch, header))
        if record.timestamp_ms != NO_TIMESTAMP and not earliest <= record.timestamp_ms <= latest
    ]
    raise InvalidRecordError(
        "One or more records have been rejected due to invalid timestamp",
        guilty,
        ErrorCode.invalid_timestamp,
    )


def _check_keys(header: BatchHeader, batch: Buffer, limit_bytes: int) -> None:
    errors = [
        RecordError(index, "Compacted topic cannot accept message without key")
        for index, record in enumerate(iterate_records(batch, header, limit_bytes=limit_bytes))
        if record.key is None
    ]
    if errors:
        shown = "; ".join(
            f"record {error.batch_index}: {error.message}" for error in errors[:_SHOWN_ERRORS]
        )
        raise InvalidRecordError(
            f"One or more records have been rejected due to {len(errors)} record errors: {shown}",
            errors,
        )


def walk_records(records: bytes, count: int) -> None:
    """Checks that `records`, uncompressed, are exactly `count` records, numbered 0, 1, 2...

    Raises InvalidRecordError. Written flat, for its place on the produce road: about a microsecond
    a record. Integers stay as they are encoded: twice the value, odd for a negative one.
    """
    position, last = 0, len(records)
    try:
        for number in range(count):
            size = records[position]
            position += 1
            if size >= 0x80:
                size, position = _more(records, position, size)
            end = position + (size >> 1)
            if size & 1 or end > last:
                raise InvalidRecordError(f"record {number} says more bytes than there are")
            position += 1  # its attributes, of which none is in use
            while records[position] >= 0x80:  # its time may be anything
                position += 1
            delta = records[position + 1]
            position += 2
            if delta >= 0x80:
                delta, position = _more(records, position, delta)
            if delta != number << 1:
                raise InvalidRecordError(f"record {number} does not say that it is number {number}")
            for _ in range(2):  # key and value
                size = records[position]
                position += 1
                if size >= 0x80:
                    size, position = _more(records, position, size)
                if not size & 1:
                    position += size >> 1
            headers = records[position]
            position += 1
            if headers:
                position = _walk_headers(records, position, headers, end)
            if position != end:
                raise InvalidRecordError(f"the fields of record {number} do not fill its length")
    except IndexError:
        raise InvalidRecordError(f"the batch has fewer than {count} records") from None
    if position != last:
        raise InvalidRecordError(f"{last - position} bytes are left after {count} records")


def _walk_headers(records: bytes, position: int, count: int, end: int) -> int:
    if count >= 0x80:
        count, position = _more(records, position, count)
    # Each takes two bytes at least, which bounds a count that lies.
    if count & 1 or count > end - position:
        raise InvalidRecordError("a record says more headers than it has bytes for")
    for _ in range(count >> 1):
        size, position = _whole(records, position)
        if size & 1:
            raise InvalidRecordError("a record has a header without a name")
        size, position = _whole(records, position + (size >> 1))
        if not size & 1:
            position += size >> 1
    return position


def _whole(records: bytes, position: int) -> tuple[int, int]:
    first = records[position]
    return (first, position + 1) if first < 0x80 else _more(records, position + 1, first)


def _more(records: bytes, position: int, first: int) -> tuple[int, int]:
    """The integer that began with `first`; no length takes more than 5 bytes."""
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = records[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise InvalidRecordError("a length of a record is longer than 5 bytes")
