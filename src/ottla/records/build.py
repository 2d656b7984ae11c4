"""Builds a batch from records: for coordinators' writes, for the rewrites of compaction and
recompression, and for tests."""

from collections.abc import Iterable, Sequence
from typing import Final

import crc32c

from ottla.records.compression import Compression, compress
from ottla.records.header import (
    ATTRIBUTES_POSITION,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Buffer,
    TimestampType,
)
from ottla.records.record import Record
from ottla.records.varint import encode_varint

_BYTES: Final = tuple(bytes((value,)) for value in range(128))
_NULL: Final = encode_varint(-1)


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    compression: int = Compression.none,
    timestamp_type: TimestampType = TimestampType.create_time,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytes:
    """A batch of `records`, numbered from `base_offset`; their own offsets are ignored.

    For log_append_time the records' largest timestamp becomes the batch's time.
    """
    assert records, "a new batch has at least one record"
    base_timestamp = records[0].timestamp_ms
    header = BatchHeader(
        base_offset=base_offset,
        size_bytes=0,
        leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=compression
        | (LOG_APPEND_TIME_BIT if timestamp_type else 0)
        | (TRANSACTIONAL_BIT if is_transactional else 0)
        | (CONTROL_BIT if is_control else 0),
        last_offset_delta=len(records) - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max(record.timestamp_ms for record in records),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        count=len(records),
    )
    packed = compress(compression, encode_records(records, range(len(records)), base_timestamp))
    return finish_batch(header, packed)


def build_plain_batch(
    contents: Sequence[tuple[bytes, bytes | None]],
    timestamp_ms: int,
    *,
    producer_id: int = -1,
    producer_epoch: int = -1,
    is_transactional: bool = False,
) -> bytes:
    """A batch of keys and values, all of one time, from offset 0 on, without headers, uncompressed.

    Coordinators append up to 20,000 records at once; `build_batch` takes more than twice as long.
    """
    assert contents, "a new batch has at least one record"
    count = len(contents)
    header = BatchHeader(
        base_offset=0,
        size_bytes=0,
        leader_epoch=-1,
        magic=MAGIC,
        crc=0,
        attributes=TRANSACTIONAL_BIT if is_transactional else 0,
        last_offset_delta=count - 1,
        base_timestamp=timestamp_ms,
        max_timestamp=timestamp_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=-1,
        count=count,
    )
    out: list[bytes] = []
    for delta, (key, value) in enumerate(contents):
        # No attributes, and no time after the first record's.
        body = b"".join(
            (b"\0\0", _size(delta), _size(len(key)), key, _sized(value), b"\0"),
        )
        out += (_size(len(body)), body)
    return finish_batch(header, b"".join(out))


def _size(size: int) -> bytes:
    """The varint of a number from 0 on."""
    if size < 64:
        return _BYTES[size << 1]
    if size < 8192:
        return bytes((size << 1 & 0x7F | 0x80, size >> 6))
    return encode_varint(size)


def _sized(value: bytes | None) -> bytes:
    return _NULL if value is None else _size(len(value)) + value


def rebuild_batch(
    header: BatchHeader,
    records: Sequence[Record],
    *,
    compression: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytes:
    """The batch of `header` with only `records` left, which keep their offsets.

    First and last offset, producer and sequence do not change, so that a producer's next sequence
    is still right after compaction removed the last record. With `delete_horizon_ms` the base
    timestamp holds it (KIP-534). Without records the result is the bare header that compaction
    keeps for its offset and sequence.
    """
    codec = header.compression if compression is None else compression
    attributes = (header.attributes & ~0x47) | (codec if records else 0)
    base_timestamp = records[0].timestamp_ms if records else NO_TIMESTAMP
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON_BIT
        base_timestamp = delete_horizon_ms
    max_timestamp = header.max_timestamp
    if records and not attributes & LOG_APPEND_TIME_BIT:
        max_timestamp = max(record.timestamp_ms for record in records)
    rebuilt = BatchHeader(
        base_offset=header.base_offset,
        size_bytes=0,
        leader_epoch=header.leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        count=len(records),
    )
    deltas = [record.offset - header.base_offset for record in records]
    packed = compress(codec, encode_records(records, deltas, base_timestamp)) if records else b""
    return finish_batch(rebuilt, packed)


def finish_batch(header: BatchHeader, packed: Buffer) -> bytes:
    """Header and packed records as one batch; sets the header's size and checksum."""
    header.size_bytes = HEADER_BYTES + len(packed)
    header.crc = crc32c.crc32c(packed, crc32c.crc32c(header.encode()[ATTRIBUTES_POSITION:]))
    return header.encode() + packed


def encode_records(records: Iterable[Record], deltas: Iterable[int], base_timestamp: int) -> bytes:
    """The encoded records in a row, uncompressed; `deltas` are their offsets from the batch's
    first."""
    out = bytearray()
    for record, delta in zip(records, deltas, strict=True):
        body = bytearray(b"\x00")
        body += encode_varint(record.timestamp_ms - base_timestamp)
        body += encode_varint(delta)
        _put_bytes(body, record.key)
        _put_bytes(body, record.value)
        body += encode_varint(len(record.headers))
        for name, value in record.headers:
            _put_bytes(body, name.encode("utf-8", "surrogateescape"))
            _put_bytes(body, value)
        out += encode_varint(len(body))
        out += body
    return bytes(out)


def _put_bytes(body: bytearray, field: bytes | None) -> None:
    if field is None:
        body.append(1)  # the varint of -1
    else:
        body += encode_varint(len(field))
        body += field
