import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.records.build import build_batch
from ottla.records.errors import CorruptBatchError
from ottla.records.header import (
    HEADER_BYTES,
    BatchHeader,
    TimestampType,
    compute_crc,
    ensure_crc,
    iterate_headers,
    read_header,
    stamp_append_time,
)
from ottla.records.iterate import iterate_records
from ottla.records.record import Record


def test_every_field_is_where_the_format_says(three_records: list[Record]) -> None:
    batch = build_batch(
        three_records,
        base_offset=77,
        leader_epoch=4,
        producer_id=9,
        producer_epoch=2,
        base_sequence=5,
        compression=1,
        is_transactional=True,
    )
    header = read_header(batch)
    assert struct.unpack_from(">q", batch, 0) == (77,)
    assert struct.unpack_from(">i", batch, 8) == (len(batch) - 12,)
    assert struct.unpack_from(">i", batch, 12) == (4,)
    assert batch[16] == 2
    assert (header.base_offset, header.last_offset, header.next_offset) == (77, 79, 80)
    assert (header.base_timestamp, header.max_timestamp) == (1_000, 1_005)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 2, 5)
    assert (header.count, header.size_bytes, header.compression) == (3, len(batch), 1)
    assert header.is_transactional
    assert not header.is_control
    assert header.delete_horizon_ms is None
    assert header.encode() == batch[:HEADER_BYTES]


@pytest.mark.parametrize(
    ("base", "delta", "last"),
    [
        (0, 0, 0),
        (5, 4, 9),
        (2**31 - 1, 0, 2**31 - 1),
        (2**31 - 1, 1, 0),
        (2**31 - 3, 9, 6),
        (-1, 3, -1),
    ],
)
def test_sequences_wrap_at_two_to_the_31(base: int, delta: int, last: int) -> None:
    header = BatchHeader(0, 61, 0, 2, 0, 0, delta, 0, 0, 1, 0, base, delta + 1)
    assert header.last_sequence == last


def test_stamping_offset_and_epoch_leaves_the_checksum_right(three_records: list[Record]) -> None:
    batch = bytearray(build_batch(three_records))
    batch[0:8] = (123456789).to_bytes(8)
    batch[12:16] = (42).to_bytes(4)
    header = read_header(batch)
    ensure_crc(header, batch)
    assert (header.base_offset, header.leader_epoch) == (123456789, 42)


def test_any_other_changed_byte_is_detected(three_records: list[Record]) -> None:
    good = build_batch(three_records)
    for position in range(17, len(good)):
        bad = bytearray(good)
        bad[position] ^= 0x10
        with pytest.raises(CorruptBatchError):
            ensure_crc(read_header(bad), bad)


@pytest.mark.parametrize("length", [-1, 0, 48])
def test_an_impossible_length_is_refused(three_records: list[Record], length: int) -> None:
    batch = bytearray(build_batch(three_records))
    batch[8:12] = length.to_bytes(4, signed=True)
    with pytest.raises(CorruptBatchError, match="bytes long"):
        read_header(batch)


@pytest.mark.parametrize("magic", [0, 1, 3, 255])
def test_other_magic_is_refused(three_records: list[Record], magic: int) -> None:
    batch = bytearray(build_batch(three_records))
    batch[16] = magic
    with pytest.raises(CorruptBatchError, match="magic"):
        read_header(batch)


@given(st.integers(0, 400))
def test_a_cut_buffer_yields_its_whole_batches(cut: int) -> None:
    one = build_batch([Record(0, 1, b"k", b"v" * 50)])
    buffer = (one * 3)[:cut]
    assert [header.size_bytes for header in iterate_headers(buffer)] == [len(one)] * min(
        cut // len(one), 3
    )


@pytest.mark.parametrize("compression", range(5))
def test_append_time_is_stamped_without_touching_the_records(
    three_records: list[Record], compression: int
) -> None:
    batch = build_batch(three_records, compression=compression)
    header = read_header(batch)
    stamped = stamp_append_time(header, batch, 5_000) + batch[HEADER_BYTES:]
    again = read_header(stamped)
    ensure_crc(again, stamped)
    assert again.crc == compute_crc(stamped)
    assert again.timestamp_type is TimestampType.log_append_time
    assert again.max_timestamp == 5_000
    found = list(iterate_records(stamped))
    assert [record.timestamp_ms for record in found] == [5_000] * 3
    assert [record.value for record in found] == [record.value for record in three_records]
