"""Checks the batch of a Produce request, and converts it to its stored form.

The rules and their error codes are those of Kafka's ProduceRequest.validateRecords,
UnifiedLog.analyzeAndValidateRecords and LogValidator: every batch is decompressed and its records
are walked. The batch is stored as it was sent, with two exceptions:
- a wrong max timestamp is corrected, and the checksum with it;
- `compression.type` may require another compression.

Ottla refuses more than Kafka in three cases, because consumers cannot read such batches: records
whose length does not fit in a compressed batch, offset deltas other than 0, 1, 2 and so on, and
more than `limit_bytes` once decompressed. It returns INVALID_RECORD for broken compressed bytes;
Kafka returns UNKNOWN_SERVER_ERROR for most of them. It names at most MAX_RECORD_ERRORS invalid
records, and Kafka all: 100,000 of them are a response of 5 MB to a request of 0.8 MB.

Most batches are checked on the event loop, within a `CheckLimits`; a check beyond them belongs in a
thread.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.build import finish_batch
from ottla.records.compression import LARGEST_RECORDS_BYTES, Compression, compress, decompress
from ottla.records.errors import (
    CorruptBatchError,
    InvalidRecordError,
    LongBatchError,
    RecordError,
)
from ottla.records.header import (
    COMPRESSION_MASK,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
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
from ottla.records.walk import Walked, walk_records

_LARGEST_INT64: Final = 2**63 - 1
_SHOWN_ERRORS: Final = 3
MAX_RECORD_ERRORS: Final = 1_000


class CheckLimits(NamedTuple):
    """How much of a batch may be checked at once."""

    records: int
    named_records: int
    """Records of which objects are made, because some of them may be invalid."""
    plain_bytes: int
    """The records, decompressed."""
    compressed_bytes: int
    """The records that are compressed again, before that."""


ON_LOOP: Final = CheckLimits(
    records=100_000, named_records=10_000, plain_bytes=8 << 20, compressed_bytes=16 << 10
)
"""10 to 20 ms each; zstd's highest level compresses 0.5 MB/s."""


def check_batch(
    records: Buffer,
    *,
    max_message_bytes: int,
    now_ms: int = 0,
    timestamp_type: TimestampType = TimestampType.create_time,
    timestamp_before_max_ms: int = _LARGEST_INT64,
    timestamp_after_max_ms: int = _LARGEST_INT64,
    keys_required: bool = False,
    zstd_allowed: bool = True,
    compression: int | None = None,
    compression_level: int | None = None,
    limit_bytes: int = LARGEST_RECORDS_BYTES,
    at_once: CheckLimits | None = None,
    pause: Callable[[], None] | None = None,
) -> tuple[BatchHeader, Buffer]:
    """The header and the bytes to store, for the one batch that a Produce request of version 3 or
    newer may hold for a partition.

    `timestamp_type` is the topic's (for log_append_time `Log.append` sets the time).
    `keys_required` is true for compacted topics. `zstd_allowed` is false below Produce 7.
    `compression` is the one that `compression.type` requires (None for the producer's own). Bytes
    after the batch that do not form a whole batch are ignored, as in Kafka. `at_once`: beyond it
    LongBatchError is raised. `pause` is called now and then.
    Raises CorruptBatchError, InvalidRecordError (with the invalid records), or ApiError with
    MESSAGE_TOO_LARGE or UNSUPPORTED_COMPRESSION_TYPE.
    """
    header = _only_batch(records)
    if header.compression == Compression.zstd and not zstd_allowed:
        raise ApiError(
            ErrorCode.unsupported_compression_type, "zstd requires Produce version 7 or later"
        )
    if header.base_offset != 0:
        raise InvalidRecordError(f"the batch's base offset is {header.base_offset} and must be 0")
    _check_size(header, max_message_bytes)
    if at_once is not None and header.size_bytes > at_once.plain_bytes:
        raise LongBatchError
    batch = memoryview(records)[: header.size_bytes]
    ensure_crc(header, batch)
    _check_header(header)
    packed = batch[HEADER_BYTES:]
    is_recompressed = compression is not None and compression != header.compression
    if at_once is None:
        plain = _decompressed(header, packed, limit_bytes)
    else:
        plain = _decompressed_at_once(header, packed, limit_bytes, at_once)
        if is_recompressed and len(plain) > at_once.compressed_bytes:
            raise LongBatchError
    walked = walk_records(plain, header.count, pause)
    earliest, latest = _timestamps(header, walked)
    now_creates = timestamp_type is TimestampType.create_time
    bounds = (now_ms - timestamp_before_max_ms, now_ms + timestamp_after_max_ms)
    if (
        (keys_required and walked.keyless)
        or header.attributes & LOG_APPEND_TIME_BIT
        or (now_creates and (earliest < bounds[0] or latest > bounds[1]))
    ):
        if at_once is not None and header.count > at_once.named_records:
            raise LongBatchError
        _check_each_record(
            header, batch, keys_required, bounds if now_creates else None, limit_bytes
        )
    stored = header
    if now_creates and (header.max_timestamp != latest or header.attributes & LOG_APPEND_TIME_BIT):
        stored = replace(
            header, max_timestamp=latest, attributes=header.attributes & ~LOG_APPEND_TIME_BIT
        )
    if is_recompressed:
        assert compression is not None
        attributes = (stored.attributes & ~COMPRESSION_MASK) | compression
        stored = replace(stored, attributes=attributes)
        batch = memoryview(finish_batch(stored, compress(compression, plain, compression_level)))
        _check_size(stored, max_message_bytes)
    elif stored is not header:
        batch = memoryview(finish_batch(stored, packed))
    return stored, batch


def _check_size(header: BatchHeader, max_message_bytes: int) -> None:
    if header.size_bytes > max_message_bytes:
        raise ApiError(
            ErrorCode.message_too_large,
            f"a batch of {header.size_bytes} bytes; max.message.bytes is {max_message_bytes}",
        )


def _decompressed(header: BatchHeader, packed: Buffer, limit_bytes: int) -> bytes:
    try:
        return bytes(decompress(header.compression, packed, limit_bytes=limit_bytes))
    except CorruptBatchError as error:
        # The checksum was right, so it is useless to send the batch again, as clients do for
        # CORRUPT_MESSAGE.
        raise InvalidRecordError(error.message or "the records cannot be decompressed") from None


def _decompressed_at_once(
    header: BatchHeader, packed: Buffer, limit_bytes: int, at_once: CheckLimits
) -> bytes:
    """Raises LongBatchError and InvalidRecordError."""
    if header.count > at_once.records:
        raise LongBatchError
    if header.compression == Compression.none or limit_bytes <= at_once.plain_bytes:
        return _decompressed(header, packed, limit_bytes)
    try:
        return _decompressed(header, packed, at_once.plain_bytes)
    except InvalidRecordError:
        # Too large for the loop, or broken: the thread finds out.
        raise LongBatchError from None


def _timestamps(header: BatchHeader, walked: Walked) -> tuple[int, int]:
    """The smallest and the largest timestamp of the batch's records."""
    if header.attributes & LOG_APPEND_TIME_BIT:
        return header.max_timestamp, header.max_timestamp
    earliest = header.base_timestamp + walked.smallest_delta_ms
    latest = header.base_timestamp + walked.largest_delta_ms
    if earliest < -_LARGEST_INT64 or latest > _LARGEST_INT64:
        raise InvalidRecordError("a record of the batch has a timestamp of more than 64 bits")
    # A record without a timestamp has the lowest one.
    return earliest, max(latest, NO_TIMESTAMP)


def _only_batch(records: Buffer) -> BatchHeader:
    header = _whole_batch(records, 0)
    if header is None:
        raise InvalidRecordError(
            "a Produce request must have one batch per partition; there is none"
        )
    if _whole_batch(records, header.size_bytes) is not None:
        raise InvalidRecordError(
            "a Produce request must have one batch per partition; there are more"
        )
    return header


def _whole_batch(records: Buffer, position: int) -> BatchHeader | None:
    left = len(records) - position
    if left < OVERHEAD_BYTES + 5:
        return None
    size_bytes = OVERHEAD_BYTES + int.from_bytes(records[position + 8 : position + 12], signed=True)
    magic = records[position + 16]
    if 0 <= magic < MAGIC:
        # Kafka 4 no longer converts the older formats (KIP-724).
        raise InvalidRecordError(f"a batch of magic {magic}; only magic 2 is supported")
    if size_bytes < HEADER_BYTES:
        raise CorruptBatchError(f"a batch cannot be {size_bytes} bytes long")
    if magic != MAGIC:
        raise CorruptBatchError(f"magic {magic}; only magic 2 is supported")
    return read_header(records, position) if size_bytes <= left else None


def _check_header(header: BatchHeader) -> None:
    if header.count <= 0:
        raise InvalidRecordError(f"the batch states {header.count} records")
    if header.last_offset_delta + 1 != header.count:
        raise InvalidRecordError(
            f"the batch states {header.count} records, but a last offset delta of"
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
            ErrorCode.unsupported_compression_type, f"compression {header.compression} is unknown"
        )


def _check_each_record(
    header: BatchHeader,
    batch: Buffer,
    keys_required: bool,
    bounds: tuple[int, int] | None,
    limit_bytes: int,
) -> None:
    """Raises InvalidRecordError with the records that have no key or no valid timestamp, if any.

    `bounds` are those of a topic that keeps the producers' timestamps.
    """
    errors: list[RecordError] = []
    code = ErrorCode.invalid_record
    for index, record in enumerate(iterate_records(batch, header, limit_bytes=limit_bytes)):
        if keys_required and record.key is None:
            errors.append(RecordError(index, "Compacted topic cannot accept message without key"))
        elif bounds is not None and record.timestamp_ms != NO_TIMESTAMP:
            if not bounds[0] <= record.timestamp_ms <= bounds[1]:
                code = ErrorCode.invalid_timestamp
                errors.append(
                    RecordError(
                        index,
                        f"Timestamp {record.timestamp_ms} is out of range"
                        f" [{bounds[0]}, {bounds[1]}]",
                    )
                )
        elif header.attributes & LOG_APPEND_TIME_BIT:
            code = ErrorCode.invalid_timestamp
            errors.append(
                RecordError(index, "Producer should not set timestamp type to LogAppendTime")
            )
        if len(errors) == MAX_RECORD_ERRORS:
            break
    if not errors:
        return
    if code is ErrorCode.invalid_timestamp:
        message = "One or more records have been rejected due to invalid timestamp"
    else:
        shown = "; ".join(
            f"record {error.batch_index}: {error.message}" for error in errors[:_SHOWN_ERRORS]
        )
        message = (
            f"One or more records have been rejected due to {len(errors)} record errors: {shown}"
        )
    raise InvalidRecordError(message, errors, code)
