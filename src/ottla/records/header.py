"""The 61 bytes before the records of a batch of magic 2, read without touching a record.

    base offset int64 | length int32, of all that follows | leader epoch int32 | magic int8 | crc
    uint32 | attributes int16 | last offset delta int32 | base timestamp int64 | max timestamp int64
    | producer id int64 | producer epoch int16 | base sequence int32 | count int32 | records

The CRC-32C covers everything from the attributes to the end of the batch, so a broker may set base
offset and leader epoch without computing it again. Attributes: bits 0-2 compression, 3
timestamp type, 4 transactional, 5 control, 6 base timestamp is a delete horizon (KIP-98, KIP-534).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import Final

import crc32c

from ottla.records.errors import CorruptBatchError

Buffer = bytes | bytearray | memoryview

HEADER_BYTES: Final = 61
OVERHEAD_BYTES: Final = 12
"""Base offset and length: the bytes that the length does not count."""
STAMPED_BYTES: Final = 16
"""Base offset, length and leader epoch: the bytes that a broker rewrites in a client's batch."""
ATTRIBUTES_POSITION: Final = 21
MAGIC: Final = 2
NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
LARGEST_SEQUENCE: Final = 2**31 - 1

COMPRESSION_MASK: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

HEADER: Final = Struct(">qiibIhiqqqhii")
STAMP: Final = Struct(">qii")


class TimestampType(IntEnum):
    """Who sets the records' timestamps: the producer, or the broker at the append."""

    create_time = 0
    log_append_time = 1


@dataclass(slots=True)
class BatchHeader:
    """A batch's header. `size_bytes` is the whole batch, its first 12 bytes included."""

    base_offset: int
    size_bytes: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The last record's sequence; sequences wrap from 2^31-1 to 0. -1 if there is none."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & LARGEST_SEQUENCE

    @property
    def compression(self) -> int:
        return self.attributes & COMPRESSION_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType((self.attributes & LOG_APPEND_TIME_BIT) >> 3)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id != NO_PRODUCER_ID

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the batch's tombstones may be deleted; stored as the base timestamp (KIP-534)."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    def encode(self) -> bytes:
        """The 61 bytes of these fields; `crc` is not computed here."""
        return HEADER.pack(
            self.base_offset,
            self.size_bytes - OVERHEAD_BYTES,
            self.leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        )


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`. Only its own bounds are checked; the records after it may be
    missing.

    Raises CorruptBatchError if there are fewer than 61 bytes, the length is impossible or the
    magic is not 2.
    """
    if len(buffer) - position < HEADER_BYTES:
        raise CorruptBatchError(f"{len(buffer) - position} bytes are too few for a batch header")
    fields = HEADER.unpack_from(buffer, position)
    if fields[1] < HEADER_BYTES - OVERHEAD_BYTES:
        raise CorruptBatchError(f"a batch cannot be {fields[1]} bytes long")
    if fields[3] != MAGIC:
        raise CorruptBatchError(f"magic {fields[3]}; only magic 2 is supported")
    return BatchHeader(fields[0], fields[1] + OVERHEAD_BYTES, *fields[2:])


def iterate_headers(buffer: Buffer) -> Iterator[BatchHeader]:
    """The headers of the whole batches in `buffer`, in order; a partial last batch is ignored.

    A fetch may cut its last batch anywhere, so that is not an error. Raises CorruptBatchError as
    `read_header`.
    """
    position = 0
    while len(buffer) - position >= HEADER_BYTES:
        header = read_header(buffer, position)
        if position + header.size_bytes > len(buffer):
            return
        yield header
        position += header.size_bytes


def compute_crc(batch: Buffer) -> int:
    """The CRC-32C of one whole batch, from its attributes to its end."""
    return crc32c.crc32c(memoryview(batch)[ATTRIBUTES_POSITION:])


def ensure_crc(header: BatchHeader, batch: Buffer) -> None:
    """Raise CorruptBatchError if the stored checksum is not that of the bytes."""
    computed = compute_crc(batch)
    if computed != header.crc:
        raise CorruptBatchError(
            f"the batch at offset {header.base_offset} is corrupt:"
            f" stored crc {header.crc}, computed {computed}"
        )


def stamp_append_time(header: BatchHeader, batch: Buffer, append_time_ms: int) -> bytes:
    """A new header for `batch` that gives all its records the broker's time.

    Kafka's LogAppendTime does not change the records' bytes: the attribute bit and the max
    timestamp apply to all of them, so only the CRC is computed again. Changes `header` and returns
    its 61 bytes; the records stay in place.
    """
    header.attributes |= LOG_APPEND_TIME_BIT
    header.max_timestamp = append_time_ms
    head = header.encode()
    crc = crc32c.crc32c(head[ATTRIBUTES_POSITION:])
    header.crc = crc32c.crc32c(memoryview(batch)[HEADER_BYTES : header.size_bytes], crc)
    return header.encode()
