"""Walks the uncompressed records of a batch, without making objects of them.

Every record that a producer sends passes here, so this is the broker's hottest loop. It is written
flat, on `bytes` and integers alone, and compiled with mypyc where possible (hatch_build.py; the
extension module has the same name and behaviour). Integers stay zig-zag encoded as long as
possible: twice the value, odd for a negative one. The format is that of `records.iterate`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.records.errors import InvalidRecordError

if TYPE_CHECKING:
    from mypy_extensions import i64


RECORDS_A_PAUSE: Final = 50_000
"""About 5 ms of compiled code, which nothing interrupts."""


class Walked(NamedTuple):
    """The result of a walk. The deltas are to the batch's base timestamp."""

    smallest_delta_ms: int
    largest_delta_ms: int
    keyless: int


def walk_records(  # noqa: C901, PLR0912, PLR0915 (one compiled loop: calls would cost more)
    records: bytes, count: int, pause: Callable[[], None] | None = None
) -> Walked:
    """Check that `records` are exactly `count` records, numbered 0, 1, 2 and so on.

    `pause` is called now and then: in a thread, it lets others have Python's global lock.
    Raises InvalidRecordError: a length that does not fit, a missing record, an offset delta out of
    order, or bytes after the last record.
    """
    position: i64 = 0
    last: i64 = len(records)
    end: i64 = 0
    size: i64 = 0
    more: i64 = 0
    delta_ms: i64 = 0
    smallest: i64 = 0
    largest: i64 = 0
    keyless: i64 = 0
    number: i64 = 0
    pause_at: i64 = RECORDS_A_PAUSE
    expected: i64 = count
    try:
        while number < expected:
            size = records[position]
            position += 1
            if size >= 0x80:
                more = records[position]
                position += 1
                if more < 0x80:
                    size += (more << 7) - 0x80
                else:
                    size, position = _length(records, position - 2)
            end = position + (size >> 1)
            if size & 1 or end > last:
                raise InvalidRecordError(
                    f"record {number} of the batch has a length that is not in the batch"
                )
            delta_ms = records[position + 1]  # after its attributes, of which none is in use
            position += 2
            if delta_ms >= 0x80:
                delta_ms, position = _varlong(records, position - 1)
            elif delta_ms & 1:
                delta_ms = -1 - (delta_ms >> 1)
            else:
                delta_ms >>= 1
            if number == 0:
                smallest = largest = delta_ms
            elif delta_ms > largest:
                largest = delta_ms
            elif delta_ms < smallest:
                smallest = delta_ms
            size = records[position]
            position += 1
            if size >= 0x80:
                more = records[position]
                position += 1
                if more < 0x80:
                    size += (more << 7) - 0x80
                else:
                    size, position = _length(records, position - 2)
            if size != number << 1:
                raise InvalidRecordError(
                    f"record {number} of the batch has the wrong offset delta; deltas are 0, 1, 2"
                    " and so on"
                )
            size = records[position]  # of its key
            position += 1
            if size >= 0x80:
                more = records[position]
                position += 1
                if more < 0x80:
                    size += (more << 7) - 0x80
                else:
                    size, position = _length(records, position - 2)
            if size & 1:
                keyless += 1
            else:
                position += size >> 1
            size = records[position]  # of its value
            position += 1
            if size >= 0x80:
                more = records[position]
                position += 1
                if more < 0x80:
                    size += (more << 7) - 0x80
                else:
                    size, position = _length(records, position - 2)
            if not size & 1:
                position += size >> 1
            size = records[position]  # its number of headers
            position += 1
            if size:
                position = _walk_headers(records, position - 1, end)
            if position != end:
                raise InvalidRecordError(
                    f"the fields of record {number} of the batch do not fill its length"
                )
            number += 1
            if number == pause_at:
                pause_at += RECORDS_A_PAUSE
                if pause is not None:
                    pause()
    except IndexError:
        raise InvalidRecordError(f"the batch has fewer than {count} records") from None
    if position != last:
        raise InvalidRecordError(f"{last - position} bytes are left after {count} records")
    return Walked(smallest, largest, keyless)


def _walk_headers(records: bytes, position: i64, end: i64) -> i64:
    """The position after a record's headers; their count is at `position`."""
    size: i64 = 0
    count: i64 = 0
    count, position = _length(records, position)
    # Each takes at least two bytes, which bounds a wrong count.
    if count & 1 or count > end - position:
        raise InvalidRecordError("a record of the batch has fewer headers than it says")
    while count > 0:
        size, position = _length(records, position)
        if size & 1:
            raise InvalidRecordError("a record of the batch has a header without a name")
        size, position = _length(records, position + (size >> 1))
        if not size & 1:
            position += size >> 1
        count -= 2
    return position


def _length(records: bytes, position: i64) -> tuple[i64, i64]:
    """The zig-zag integer of at most 32 bits at `position`, and the position after it."""
    value: i64 = 0
    shift: i64 = 0
    byte: i64 = 0
    while shift < 35:
        byte = records[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise InvalidRecordError("a length in the batch is longer than 5 bytes")


def _varlong(records: bytes, position: i64) -> tuple[i64, i64]:
    """The signed integer of at most 64 bits at `position`, and the position after it."""
    value: i64 = 0
    shift: i64 = 0
    byte: i64 = 0
    while shift < 63:
        byte = records[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
    byte = records[position]
    if byte >= 0x80:
        raise InvalidRecordError("a timestamp in the batch is longer than 10 bytes")
    # 64 bits do not fit before the zig-zag is undone: the top bit goes in after the shift.
    half: i64 = (value >> 1) | (byte & 1) << 62
    return half ^ -(value & 1), position + 1
