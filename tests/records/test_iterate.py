from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record import MemoryRecordsBuilder

from ottla.records.build import build_batch, finish_batch
from ottla.records.errors import CorruptBatchError, InvalidRecordError
from ottla.records.header import HEADER_BYTES, read_header
from ottla.records.iterate import iterate_records
from ottla.records.record import Record

# Snappy requires a library that is not part of kafka-python.
COMPRESSIONS = (0, 1, 3, 4)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_batches_of_another_client_are_read(compression: int) -> None:
    builder = MemoryRecordsBuilder(magic=2, compression_type=compression, batch_size=1_000_000)
    expected = []
    for number in range(40):
        key = None if number % 7 == 0 else b"key-%d" % number
        value = None if number % 11 == 5 else b"value " * number
        headers = [("trace", b"%d" % number), ("empty", None)] if number % 3 == 0 else []
        builder.append(timestamp=10_000 + number, key=key, value=value, headers=headers)
        expected.append(Record(number, 10_000 + number, key, value, tuple(headers)))
    builder.close()
    assert list(iterate_records(builder.buffer())) == expected


def _with_records(body: bytes, count: int) -> bytes:
    header = read_header(build_batch([Record(0, 0, None, None)]))
    header.count, header.last_offset_delta = count, count - 1
    return finish_batch(header, body)


@pytest.mark.parametrize(
    ("body", "count", "why"),
    [
        (b"", 1, "states 1 records but has 0"),
        (b"\x0c\x00\x00\x00\x01\x01\x00", 2, "states 2 records but has 1"),
        (b"\x0c\x00\x00\x00\x01\x01\x00" * 2, 1, "7 bytes are left"),
        (b"\x7e\x00\x00\x00\x01\x01\x00", 1, "states 63 bytes"),
        (b"\x01\x00\x00\x00\x01\x01\x00", 1, "states -1 bytes"),
        (b"\x0c\x00\x00\x00\x20\x01\x00", 1, "field of 16 bytes"),
        (b"\x0c\x00\x00\x00\x01\x01\x02", 1, "states 1 headers"),
        (b"\x0c\x00\x00\x00\x01\x01\x01", 1, "states -1 headers"),
        (b"\x10\x00\x00\x00\x01\x01\x00\x00\x00", 1, "states 8 bytes"),
        (b"\x10\x00\x00\x00\x01\x01\x02\x01\x00", 1, "without a name"),
        (b"\x0c\x00\x00\x00\x01\x01\x80", 1, "ends inside an integer"),
    ],
)
def test_a_record_with_a_wrong_length_is_refused(body: bytes, count: int, why: str) -> None:
    with pytest.raises(InvalidRecordError, match=why):
        list(iterate_records(_with_records(body, count)))


@given(st.binary(max_size=80), st.integers(1, 5))
def test_random_records_are_read_or_refused(body: bytes, count: int) -> None:
    with suppress(InvalidRecordError, CorruptBatchError):
        assert len(list(iterate_records(_with_records(body, count)))) == count


def test_half_a_batch_is_refused(three_records: list[Record]) -> None:
    batch = build_batch(three_records)
    for end in range(HEADER_BYTES, len(batch)):
        with pytest.raises(InvalidRecordError):
            list(iterate_records(batch[:end]))


def test_the_limit_applies_to_compressed_batches() -> None:
    batch = build_batch([Record(0, 0, None, bytes(100_000))], compression=4)
    with pytest.raises(InvalidRecordError, match="maximum of 1000 bytes"):
        list(iterate_records(batch, limit_bytes=1_000))


def test_header_names_that_are_not_utf8_are_kept() -> None:
    name = b"\xff\xfe".decode("utf-8", "surrogateescape")
    record = Record(0, 0, None, b"v", ((name, b"1"),))
    assert list(iterate_records(build_batch([record]))) == [record]
