"""A partition's producers at one offset: `<offset>.snapshot`.

    version int16 (1) | crc uint32 | number of entries int32 | entries of 42 bytes:
    producer id int64 | epoch int16 | last sequence int32 | last offset int64 | offset delta int32
    | timestamp int64 | coordinator epoch int32 | first offset of the open transaction int64, or -1

The CRC-32C covers what follows it. A snapshot is taken when a segment rolls, at a truncation
and at a clean shutdown, so that a start reads only the batches after the latest one. Crash: a torn
snapshot fails its checksum, and the previous one is used.
"""

from collections.abc import Iterable
from struct import Struct, error
from typing import Final

import crc32c

from ottla.log.producer_state import BatchTrace, Producer

_HEAD: Final = Struct(">hIi")
_ENTRY: Final = Struct(">qhiqiqiq")
_VERSION: Final = 1
_ENTRIES_POSITION: Final = 6


def encode_snapshot(producers: Iterable[Producer]) -> bytes:
    """The file's content."""
    entries = [
        _ENTRY.pack(
            producer.producer_id,
            producer.producer_epoch,
            producer.last_sequence,
            producer.last_offset,
            producer.batches[-1].offset_delta if producer.batches else 0,
            producer.last_timestamp_ms,
            producer.coordinator_epoch,
            producer.transaction_start_offset,
        )
        for producer in producers
    ]
    body = len(entries).to_bytes(4) + b"".join(entries)
    return _VERSION.to_bytes(2) + crc32c.crc32c(body).to_bytes(4) + body


def decode_snapshot(content: bytes) -> list[Producer]:
    """The producers of a snapshot. Raises ValueError if it is torn or of another version."""
    try:
        version, crc, count = _HEAD.unpack_from(content)
    except error:
        raise ValueError("it is too short") from None
    if version != _VERSION:
        raise ValueError(f"its version is {version}")
    if crc32c.crc32c(content[_ENTRIES_POSITION:]) != crc:
        raise ValueError("its checksum is wrong")
    if len(content) != _HEAD.size + count * _ENTRY.size:
        raise ValueError(f"it states {count} entries in {len(content)} bytes")
    return [_producer(*fields) for fields in _ENTRY.iter_unpack(content[_HEAD.size :])]


def _producer(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp_ms: int,
    coordinator_epoch: int,
    transaction_start_offset: int,
) -> Producer:
    producer = Producer(
        producer_id, epoch, coordinator_epoch, timestamp_ms, transaction_start_offset
    )
    if last_offset >= 0:
        producer.batches = [BatchTrace(last_sequence, last_offset, offset_delta, timestamp_ms)]
    return producer
