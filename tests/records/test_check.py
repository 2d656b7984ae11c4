from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.build import build_batch, finish_batch
from ottla.records.check import MAX_RECORDS_WALKED, check_batches, walk_records
from ottla.records.errors import InvalidRecordError
from ottla.records.header import (
    CONTROL_BIT,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    BatchHeader,
    TimestampType,
    read_header,
)
from ottla.records.record import Record


def _refusal(batch: bytes, **limits: object) -> ApiError:
    with pytest.raises(ApiError) as caught:
        check_batches(batch, **{"max_message_bytes": 1_000_000, **limits})  # type: ignore[arg-type]
    return caught.value


def _changed(batch: bytes, change: Callable[[BatchHeader], object]) -> bytes:
    """The batch with its header changed, and its checksum right."""
    header = read_header(batch)
    change(header)
    return finish_batch(header, batch[HEADER_BYTES:])


@pytest.mark.parametrize("compression", range(5))
@given(data=st.data())
def test_a_good_batch_passes(
    records: st.SearchStrategy[list[Record]], compression: int, data: st.DataObject
) -> None:
    batch = build_batch(data.draw(records), compression=compression)
    assert check_batches(batch, max_message_bytes=1_000_000) == [read_header(batch)]


def test_a_torn_tail_behind_the_batch_is_left_out(three_records: list[Record]) -> None:
    batch = build_batch(three_records)
    for extra in (1, 11, 30, len(batch) - 1):
        (header,) = check_batches(batch + batch[:extra], max_message_bytes=10_000)
        assert header.size_bytes == len(batch)


def test_there_must_be_exactly_one_batch(three_records: list[Record]) -> None:
    batch = build_batch(three_records)
    for records in (b"", batch[:5], batch[:-1], batch * 2):
        assert _refusal(records).code is ErrorCode.invalid_record


@pytest.mark.parametrize("magic", [0, 1])
def test_older_formats_are_refused_as_kafka_does(three_records: list[Record], magic: int) -> None:
    batch = bytearray(build_batch(three_records))
    batch[16] = magic
    assert _refusal(bytes(batch)).code is ErrorCode.invalid_record


def test_each_flipped_byte_is_refused_or_harmless(three_records: list[Record]) -> None:
    good = build_batch(three_records)
    for position in range(len(good)):
        bad = bytearray(good)
        bad[position] ^= 0xFF
        if 12 <= position < 16:
            check_batches(bytes(bad), max_message_bytes=10_000)  # the leader epoch is stamped
        else:
            assert _refusal(bytes(bad)).code in (
                ErrorCode.corrupt_message,
                ErrorCode.invalid_record,
                ErrorCode.message_too_large,
            )


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda h: setattr(h, "base_offset", 1), ErrorCode.invalid_record),
        (lambda h: setattr(h, "count", 0), ErrorCode.invalid_record),
        (lambda h: setattr(h, "count", -3), ErrorCode.invalid_record),
        (lambda h: setattr(h, "count", 4), ErrorCode.invalid_record),
        (lambda h: setattr(h, "last_offset_delta", 7), ErrorCode.invalid_record),
        (lambda h: setattr(h, "attributes", CONTROL_BIT), ErrorCode.invalid_record),
        (lambda h: setattr(h, "producer_id", 5), ErrorCode.invalid_record),
        (lambda h: setattr(h, "attributes", 5), ErrorCode.unsupported_compression_type),
        (lambda h: setattr(h, "attributes", LOG_APPEND_TIME_BIT), ErrorCode.invalid_timestamp),
    ],
)
def test_headers_that_no_client_may_send(
    three_records: list[Record], change: Callable[[BatchHeader], object], code: ErrorCode
) -> None:
    assert _refusal(_changed(build_batch(three_records), change)).code is code


@pytest.mark.parametrize("count", [2, 4, 64, 2_000_000_000])
def test_a_count_that_lies_twice_is_refused(three_records: list[Record], count: int) -> None:
    def lie(header: BatchHeader) -> None:
        header.count, header.last_offset_delta = count, count - 1

    assert _refusal(_changed(build_batch(three_records), lie)).code is ErrorCode.invalid_record


def test_size_limits(three_records: list[Record]) -> None:
    batch = build_batch(three_records)
    check_batches(batch, max_message_bytes=len(batch))
    refusal = _refusal(batch, max_message_bytes=len(batch) - 1)
    assert refusal.code is ErrorCode.message_too_large
    assert str(len(batch)) in str(refusal)


def test_zstd_needs_produce_7(three_records: list[Record]) -> None:
    batch = build_batch(three_records, compression=4)
    assert _refusal(batch, zstd_allowed=False).code is ErrorCode.unsupported_compression_type


@pytest.mark.parametrize("compression", [0, 2])
def test_a_compacted_topic_wants_keys(compression: int) -> None:
    records = [Record(0, 1, key, b"v") for key in (b"a", None, b"c", None, None, None)]
    refusal = _refusal(build_batch(records, compression=compression), keys_required=True)
    assert isinstance(refusal, InvalidRecordError)
    assert refusal.code is ErrorCode.invalid_record
    assert [error.batch_index for error in refusal.record_errors] == [1, 3, 4, 5]
    assert "4 record errors" in str(refusal)
    keyed = [Record(0, 1, b"a", None)]
    assert check_batches(build_batch(keyed), max_message_bytes=1_000, keys_required=True)


def test_timestamps_out_of_bounds_name_the_records() -> None:
    records = [Record(0, at, b"k", b"v") for at in (1_000, 5_000, 9_000)]
    batch = build_batch(records)
    bounds = {"now_ms": 5_000, "timestamp_before_max_ms": 4_000, "timestamp_after_max_ms": 4_000}
    assert check_batches(batch, max_message_bytes=1_000, **bounds)
    late = _refusal(batch, **{**bounds, "timestamp_before_max_ms": 3_999})
    assert isinstance(late, InvalidRecordError)
    assert late.code is ErrorCode.invalid_timestamp
    assert [error.batch_index for error in late.record_errors] == [0]
    early = _refusal(batch, **{**bounds, "timestamp_after_max_ms": 3_999})
    assert isinstance(early, InvalidRecordError)
    assert [error.batch_index for error in early.record_errors] == [2]
    # The broker's own time replaces the producer's, so its bounds mean nothing.
    ours = {**bounds, "timestamp_type": TimestampType.log_append_time, "timestamp_after_max_ms": 0}
    assert check_batches(batch, max_message_bytes=1_000, **ours)  # type: ignore[arg-type]
    without = build_batch([Record(0, -1, None, b"v")])
    assert check_batches(without, max_message_bytes=1_000, **bounds)


@given(data=st.data())
def test_the_walk_accepts_exactly_what_iterating_accepts(
    records: st.SearchStrategy[list[Record]], data: st.DataObject
) -> None:
    body = bytearray(build_batch(data.draw(records))[HEADER_BYTES:])
    count = data.draw(st.integers(1, 31))
    position = data.draw(st.integers(0, len(body) - 1))
    body[position] = data.draw(st.integers(0, 255))
    header = BatchHeader(0, 0, 0, 2, 0, 0, count - 1, 0, 0, -1, -1, -1, count)
    batch = finish_batch(header, bytes(body))
    try:
        walk_records(bytes(body), count)
    except InvalidRecordError:
        return
    from ottla.records.iterate import iterate_records

    assert [record.offset for record in iterate_records(batch)] == list(range(count))


def test_large_batches_are_not_walked() -> None:
    many = [Record(0, 1, b"k", b"v") for _ in range(MAX_RECORDS_WALKED + 1)]
    batch = build_batch(many)
    header = read_header(batch)
    garbage = finish_batch(header, bytes(len(batch) - HEADER_BYTES))
    assert check_batches(garbage, max_message_bytes=10_000)


@pytest.mark.parametrize("compression", [1, 2, 3, 4])
def test_a_count_that_no_compression_can_hold_is_refused(compression: int) -> None:
    def lie(header: BatchHeader) -> None:
        header.count, header.last_offset_delta = 2_000_000_000, 1_999_999_999

    batch = build_batch([Record(0, 1, b"k", b"v")], compression=compression)
    assert _refusal(_changed(batch, lie)).code is ErrorCode.invalid_record
    zeros = build_batch([Record(0, 0, None, None)] * 20_000, compression=compression)
    assert check_batches(zeros, max_message_bytes=10**6)
