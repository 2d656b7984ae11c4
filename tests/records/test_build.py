from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record import MemoryRecords

from ottla.records.build import build_batch, build_plain_batch, rebuild_batch
from ottla.records.header import TimestampType, ensure_crc, read_header
from ottla.records.iterate import iterate_records
from ottla.records.record import Record


@pytest.mark.parametrize("compression", range(5))
@given(data=st.data(), base_offset=st.integers(0, 2**62))
def test_a_built_batch_round_trips(
    records: st.SearchStrategy[list[Record]],
    compression: int,
    data: st.DataObject,
    base_offset: int,
) -> None:
    given_records = data.draw(records)
    batch = build_batch(given_records, base_offset=base_offset, compression=compression)
    header = read_header(batch)
    ensure_crc(header, batch)
    assert header.size_bytes == len(batch)
    assert header.count == len(given_records)
    assert header.max_timestamp == max(record.timestamp_ms for record in given_records)
    found = list(iterate_records(batch))
    assert [record.offset for record in found] == [base_offset + n for n in range(len(found))]
    assert [(r.timestamp_ms, r.key, r.value, r.headers) for r in found] == [
        (r.timestamp_ms, r.key, r.value, r.headers) for r in given_records
    ]


@pytest.mark.parametrize("compression", [0, 1, 3, 4])
def test_another_client_reads_it(three_records: list[Record], compression: int) -> None:
    batch = build_batch(three_records, base_offset=5, compression=compression)
    found = MemoryRecords(batch).next_batch()
    assert found.validate_crc()
    assert [(r.offset, r.timestamp, r.key, r.value) for r in found] == [
        (5 + r.offset, r.timestamp_ms, r.key, r.value) for r in three_records
    ]


def test_log_append_time_applies_to_all_records(three_records: list[Record]) -> None:
    batch = build_batch(three_records, timestamp_type=TimestampType.log_append_time)
    assert {record.timestamp_ms for record in iterate_records(batch)} == {1_005}


@given(data=st.data(), compression=st.integers(0, 4))
def test_a_rebuilt_batch_keeps_offsets_and_sequence(
    records: st.SearchStrategy[list[Record]], data: st.DataObject, compression: int
) -> None:
    batch = build_batch(
        data.draw(records),
        base_offset=900,
        compression=compression,
        producer_id=4,
        producer_epoch=1,
        base_sequence=30,
    )
    header = read_header(batch)
    kept = [each for each in iterate_records(batch) if data.draw(st.booleans())]
    horizon_ms = data.draw(st.none() | st.integers(0, 2**45)) if kept else None
    again = rebuild_batch(header, kept, delete_horizon_ms=horizon_ms)
    changed = read_header(again)
    ensure_crc(changed, again)
    assert (changed.base_offset, changed.last_offset) == (header.base_offset, header.last_offset)
    assert changed.last_sequence == header.last_sequence
    assert changed.count == len(kept)
    assert changed.delete_horizon_ms == horizon_ms
    assert list(iterate_records(again)) == kept


def test_a_batch_may_lose_all_its_records(three_records: list[Record]) -> None:
    header = read_header(build_batch(three_records, compression=3, producer_id=1, base_sequence=0))
    bare = rebuild_batch(header, [])
    assert len(bare) == 61
    assert read_header(bare).compression == 0
    assert list(iterate_records(bare)) == []


@given(
    contents=st.lists(
        st.tuples(st.binary(max_size=70), st.none() | st.binary(max_size=70)), min_size=1
    ),
    time_ms=st.integers(0, 2**62),
    is_transactional=st.booleans(),
)
def test_a_plain_batch_is_the_same_batch(
    contents: list[tuple[bytes, bytes | None]], time_ms: int, is_transactional: bool
) -> None:
    producer: dict[str, Any] = {"producer_id": 4, "producer_epoch": 2} if is_transactional else {}
    assert build_plain_batch(
        contents, time_ms, is_transactional=is_transactional, **producer
    ) == build_batch(
        [Record(0, time_ms, key, value) for key, value in contents],
        is_transactional=is_transactional,
        **producer,
    )


@pytest.mark.parametrize("size", [63, 64, 8191, 8192])
def test_the_sizes_in_a_plain_batch(size: int) -> None:
    contents = [(bytes(size), bytes(size))] * (size + 1)
    contents = contents if size < 100 else [*contents[:1], *[(b"", b"")] * size]
    records = [Record(0, 5, key, value) for key, value in contents]
    assert build_plain_batch(contents, 5) == build_batch(records)
