"""Finds the records with a key in the bytes of batches, without making objects of records.

The key is first looked for with its length before it, in all bytes at once, which takes a fraction
of a nanosecond a byte; only batches that have it are walked, and compressed ones one by one. This
file has the two loops that pass each batch and each record of those. It is compiled with mypyc
where possible (hatch_build.py). The formats are those of `records.header` and `records.iterate`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.records.errors import CorruptBatchError, InvalidRecordError

if TYPE_CHECKING:
    from mypy_extensions import i64

_HEADER_BYTES: Final = 61
_OVERHEAD_BYTES: Final = 12
_COMPRESSION: Final = 0x07
RECORDS_A_PAUSE: Final = 50_000
"""About 5 ms of compiled code, which nothing interrupts."""


class Batches:
    """What `pass_batches` has passed. `end`: the position after the last whole batch.
    `compressed`: the positions of those whose records are.
    """

    def __init__(self) -> None:
        self.end = 0
        self.records = 0
        self.last_at = 0
        """The position of the last whole batch."""
        self.compressed: list[int] = []


def pass_batches(chunk: bytes, position: int, until: int) -> Batches:
    """Pass the whole batches of a chunk from `position` on that begin before `until`.

    Raises CorruptBatchError for bytes that are not a header.
    """
    found = Batches()
    at: i64 = position
    stop: i64 = until
    last: i64 = len(chunk)
    size: i64 = 0
    records: i64 = 0
    before: i64 = at
    while at < stop and at + _HEADER_BYTES <= last:
        size = (
            (chunk[at + 8] << 24) | (chunk[at + 9] << 16) | (chunk[at + 10] << 8) | chunk[at + 11]
        )
        size += _OVERHEAD_BYTES
        if size < _HEADER_BYTES or size > 0x7FFFFFFF:
            raise CorruptBatchError(f"at {at} of the chunk: a batch cannot be {size} bytes long")
        if at + size > last:
            break
        records += (
            (chunk[at + 57] << 24) | (chunk[at + 58] << 16) | (chunk[at + 59] << 8) | chunk[at + 60]
        )
        if chunk[at + 22] & _COMPRESSION:
            found.compressed.append(at)
        before = at
        at += size
    found.end, found.records, found.last_at = at, records, before
    return found


def needle_of(key: bytes) -> bytes:
    """The key as it is in a record: after its length, a zig-zag varint."""
    length = len(key) << 1
    start = bytearray()
    while length >= 0x80:
        start.append((length & 0x7F) | 0x80)
        length >>= 7
    start.append(length)
    return bytes(start) + key


def deltas_with_key(
    records: bytes, count: int, needle: bytes, pause: Callable[[], None] | None = None
) -> list[int]:
    """The offset deltas of those of a batch's `count` uncompressed records that have the key.

    `needle`: as of `needle_of`. `pause` is called now and then: it lets other threads run. Raises
    InvalidRecordError if the bytes are not so many records.
    """
    found: list[int] = []
    position: i64 = 0
    last: i64 = len(records)
    wanted: i64 = len(needle)
    end: i64 = 0
    size: i64 = 0
    number: i64 = 0
    expected: i64 = count
    pause_at: i64 = RECORDS_A_PAUSE
    first: i64 = needle[0]
    try:
        while number < expected:
            size, position = _varint(records, position)
            end = position + size
            if size < 0 or end > last:
                raise InvalidRecordError(
                    f"record {number} of the batch has a length that is not in the batch"
                )
            position += 1  # its attributes
            while records[position] & 0x80:  # its timestamp
                position += 1
            size, position = _varint(records, position + 1)  # its offset
            if records[position] == first and records[position : position + wanted] == needle:
                found.append(size)
            position = end
            number += 1
            if number == pause_at:
                pause_at += RECORDS_A_PAUSE
                if pause is not None:
                    pause()
    except IndexError:
        raise InvalidRecordError(f"the batch has fewer than {count} records") from None
    return found


def _varint(records: bytes, position: i64) -> tuple[i64, i64]:
    """The zig-zag integer of at most 35 bits at `position`, and the position after it."""
    value: i64 = 0
    shift: i64 = 0
    byte: i64 = 0
    while shift < 35:
        byte = records[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
    raise InvalidRecordError("a length in the batch is longer than 5 bytes")
