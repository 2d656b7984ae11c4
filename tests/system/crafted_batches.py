"""Batches that no well-behaved producer sends, each with a checksum that is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ottla.records.build import build_batch, encode_records, finish_batch
from ottla.records.compression import compress
from ottla.records.header import (
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    NO_TIMESTAMP,
    BatchHeader,
    read_header,
)
from ottla.records.record import Record

TIME_MS = 1_700_000_000_000
COUNT = 100


def records(count: int = COUNT) -> list[Record]:
    """Keyed records of different sizes, a millisecond apart; the newest is in the middle."""
    middle = count // 2
    return [
        Record(
            number,
            TIME_MS + (10_000 if number == middle else number),
            b"key %d" % number,
            b"v" * (number * 7 % 300),
            ((("h", b"1"),) if number % 3 == 0 else ()),
        )
        for number in range(count)
    ]


def batch(codec: int, count: int = COUNT) -> bytes:
    return build_batch(records(count), compression=codec)


def with_header(good: bytes, **fields: int) -> bytes:
    """The batch with these fields in its header."""
    return finish_batch(replace(read_header(good), **fields), good[HEADER_BYTES:])


def with_payload(good: bytes, payload: bytes) -> bytes:
    """The batch with other bytes behind its header."""
    return finish_batch(read_header(good), payload)


def with_records(codec: int, change: Callable[[bytes], bytes], count: int = COUNT) -> bytes:
    """A batch whose uncompressed records were changed before they were compressed."""
    good = batch(codec, count)
    plain = encode_records(records(count), range(count), read_header(good).base_timestamp)
    return with_payload(good, compress(codec, change(plain)))


def with_deltas(codec: int, deltas: list[int]) -> bytes:
    """A batch whose records carry these offset deltas."""
    good = batch(codec, len(deltas))
    plain = encode_records(records(len(deltas)), deltas, read_header(good).base_timestamp)
    return with_payload(good, compress(codec, plain))


def crafted(codec: int) -> dict[str, bytes]:
    """All cases for one compression, by name."""
    good = batch(codec)
    payload = good[HEADER_BYTES:]
    header: BatchHeader = read_header(good)
    cut = len(payload) // 2
    return {
        "good": good,
        "one record": batch(codec, 1),
        "payload cut": with_payload(good, payload[:cut]),
        "payload empty": with_payload(good, b""),
        "payload followed by a zero": with_payload(good, payload + b"\0"),
        "payload followed by bytes": with_payload(good, payload + b"more than it says"),
        "payload twice": with_payload(good, payload + payload),
        "a byte changed": with_payload(
            good, payload[:cut] + bytes([payload[cut] ^ 0x55]) + payload[cut + 1 :]
        ),
        "not compressed at all": with_payload(good, batch(0)[HEADER_BYTES:]),
        "no records inside": with_records(codec, lambda plain: b""),
        "one record too few": with_header(
            good, count=COUNT + 1, last_offset_delta=header.last_offset_delta + 1
        ),
        "one record too many": with_header(
            good, count=COUNT - 1, last_offset_delta=header.last_offset_delta - 1
        ),
        "bytes left over": with_records(codec, lambda plain: plain + b"\0"),
        "last record cut": with_records(codec, lambda plain: plain[:-1]),
        "a length too large": with_records(
            codec, lambda plain: b"\xfe\xff\xff\xff\x0f" + plain[1:]
        ),
        "a negative length": with_records(codec, lambda plain: b"\x01" + plain[1:]),
        "a length one too small": with_records(
            codec, lambda plain: bytes([plain[0] - 2]) + plain[1:]
        ),
        "attributes of a record": with_records(
            codec, lambda plain: plain[:1] + b"\x01" + plain[2:]
        ),
        "attributes 0x10 of a record": with_records(
            codec, lambda plain: plain[:1] + b"\x10" + plain[2:]
        ),
        "offset deltas from 1": with_deltas(codec, list(range(1, 11))),
        "offset deltas all 0": with_deltas(codec, [0] * 10),
        "offset deltas with a gap": with_deltas(codec, [0, 1, 2, 3, 4, 5, 6, 7, 8, 19]),
        "offset deltas descending": with_deltas(codec, list(range(9, -1, -1))),
        "max timestamp too low": with_header(good, max_timestamp=TIME_MS - 5),
        "max timestamp missing": with_header(good, max_timestamp=NO_TIMESTAMP),
        "max timestamp too high": with_header(good, max_timestamp=TIME_MS + 10**9),
        "log append time": with_header(good, attributes=header.attributes | LOG_APPEND_TIME_BIT),
        "log append time without a time": with_header(
            good, attributes=header.attributes | LOG_APPEND_TIME_BIT, max_timestamp=NO_TIMESTAMP
        ),
        "one without a key": build_batch(
            [*records(10), replace(records(1)[0], key=None)], compression=codec
        ),
        "ten times as large uncompressed": build_batch(
            [Record(0, TIME_MS, b"k", bytes(15_000))], compression=codec
        ),
        "no timestamps": build_batch(
            [replace(each, timestamp_ms=NO_TIMESTAMP) for each in records(10)], compression=codec
        ),
    }


BROKEN = frozenset(
    {
        "payload cut",
        "payload empty",
        "payload followed by a zero",
        "payload followed by bytes",
        "not compressed at all",
    }
)
"""Kafka answers UNKNOWN_SERVER_ERROR where its codec's stream fails, Ottla INVALID_RECORD."""

UNREADABLE = frozenset(
    {
        "a length too large",
        "a negative length",
        "a length one too small",
        "offset deltas from 1",
        "offset deltas all 0",
        "offset deltas with a gap",
        "offset deltas descending",
    }
)
"""Kafka stores some of these, though consumers cannot read them or see offsets twice."""
