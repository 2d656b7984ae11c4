from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.build import build_batch, finish_batch
from ottla.records.check import MAX_RECORD_ERRORS, ON_LOOP, check_batch
from ottla.records.compression import compress, decompress
from ottla.records.errors import InvalidRecordError, LongBatchError
from ottla.records.header import (
    CONTROL_BIT,
    HEADER_BYTES,
    BatchHeader,
    TimestampType,
    ensure_crc,
    read_header,
)
from ottla.records.iterate import iterate_records
from ottla.records.record import Record
from ottla.records.walk import RECORDS_A_PAUSE


def _refusal(batch: bytes, **limits: object) -> ApiError:
    with pytest.raises(ApiError) as caught:
        check_batch(batch, **{"max_message_bytes": 1_000_000, **limits})  # type: ignore[arg-type]
    return caught.value


def _changed(batch: bytes, change: Callable[[BatchHeader], object]) -> bytes:
    """The batch with a changed header and a valid checksum."""
    header = read_header(batch)
    change(header)
    return finish_batch(header, batch[HEADER_BYTES:])


@pytest.mark.parametrize("compression", range(5))
@given(data=st.data())
def test_a_valid_batch_passes(
    records: st.SearchStrategy[list[Record]], compression: int, data: st.DataObject
) -> None:
    batch = build_batch(data.draw(records), compression=compression)
    header, stored = check_batch(batch, max_message_bytes=1_000_000)
    assert header == read_header(batch)
    assert bytes(stored) == batch


def test_a_partial_batch_after_the_batch_is_ignored(three_records: list[Record]) -> None:
    batch = build_batch(three_records)
    for extra in (1, 11, 30, len(batch) - 1):
        header, stored = check_batch(batch + batch[:extra], max_message_bytes=10_000)
        assert header.size_bytes == len(batch)
        assert bytes(stored) == batch


def test_there_must_be_exactly_one_batch(three_records: list[Record]) -> None:
    batch = build_batch(three_records)
    for records in (b"", batch[:5], batch[:-1], batch * 2):
        assert _refusal(records).code is ErrorCode.invalid_record


@pytest.mark.parametrize("magic", [0, 1])
def test_older_formats_are_refused_as_in_kafka(three_records: list[Record], magic: int) -> None:
    batch = bytearray(build_batch(three_records))
    batch[16] = magic
    assert _refusal(bytes(batch)).code is ErrorCode.invalid_record


def test_each_flipped_byte_is_refused_or_harmless(three_records: list[Record]) -> None:
    good = build_batch(three_records)
    for position in range(len(good)):
        bad = bytearray(good)
        bad[position] ^= 0xFF
        if 12 <= position < 16:
            check_batch(bytes(bad), max_message_bytes=10_000)  # the leader epoch is stamped
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
    ],
)
def test_headers_that_clients_must_not_send(
    three_records: list[Record], change: Callable[[BatchHeader], object], code: ErrorCode
) -> None:
    assert _refusal(_changed(build_batch(three_records), change)).code is code


@pytest.mark.parametrize("count", [2, 4, 64, 2_000_000_000])
def test_a_wrong_count_with_a_matching_delta_is_refused(
    three_records: list[Record], count: int
) -> None:
    def lie(header: BatchHeader) -> None:
        header.count, header.last_offset_delta = count, count - 1

    assert _refusal(_changed(build_batch(three_records), lie)).code is ErrorCode.invalid_record


def test_size_limits(three_records: list[Record]) -> None:
    batch = build_batch(three_records)
    check_batch(batch, max_message_bytes=len(batch))
    refusal = _refusal(batch, max_message_bytes=len(batch) - 1)
    assert refusal.code is ErrorCode.message_too_large
    assert str(len(batch)) in str(refusal)


def test_zstd_needs_produce_7(three_records: list[Record]) -> None:
    batch = build_batch(three_records, compression=4)
    assert _refusal(batch, zstd_allowed=False).code is ErrorCode.unsupported_compression_type


@pytest.mark.parametrize("compression", [0, 2])
def test_a_compacted_topic_requires_keys(compression: int) -> None:
    records = [Record(0, 1, key, b"v") for key in (b"a", None, b"c", None, None, None)]
    refusal = _refusal(build_batch(records, compression=compression), keys_required=True)
    assert isinstance(refusal, InvalidRecordError)
    assert refusal.code is ErrorCode.invalid_record
    assert [error.batch_index for error in refusal.record_errors] == [1, 3, 4, 5]
    assert "4 record errors" in str(refusal)
    keyed = [Record(0, 1, b"a", None)]
    assert check_batch(build_batch(keyed), max_message_bytes=1_000, keys_required=True)


def test_timestamps_out_of_bounds_name_the_records() -> None:
    records = [Record(0, at, b"k", b"v") for at in (1_000, 5_000, 9_000)]
    batch = build_batch(records)
    bounds: dict[str, Any] = {
        "now_ms": 5_000,
        "timestamp_before_max_ms": 4_000,
        "timestamp_after_max_ms": 4_000,
    }
    assert check_batch(batch, max_message_bytes=1_000, **bounds)
    late = _refusal(batch, **{**bounds, "timestamp_before_max_ms": 3_999})
    assert isinstance(late, InvalidRecordError)
    assert late.code is ErrorCode.invalid_timestamp
    assert [error.batch_index for error in late.record_errors] == [0]
    early = _refusal(batch, **{**bounds, "timestamp_after_max_ms": 3_999})
    assert isinstance(early, InvalidRecordError)
    assert [error.batch_index for error in early.record_errors] == [2]
    # The broker's own time replaces the producer's, so the bounds do not apply.
    ours = {**bounds, "timestamp_type": TimestampType.log_append_time, "timestamp_after_max_ms": 0}
    assert check_batch(batch, max_message_bytes=1_000, **ours)
    without = build_batch([Record(0, -1, None, b"v")])
    assert check_batch(without, max_message_bytes=1_000, **bounds)


@pytest.mark.parametrize("compression", range(5))
@pytest.mark.parametrize("wrong", [-1, 0, 999, 10_000])
def test_a_wrong_max_timestamp_is_corrected(
    three_records: list[Record], compression: int, wrong: int
) -> None:
    good = build_batch(three_records, compression=compression)
    bad = _changed(good, lambda header: setattr(header, "max_timestamp", wrong))
    header, stored = check_batch(bad, max_message_bytes=1_000)
    assert bytes(stored) == good
    assert header == read_header(good)
    # The broker's own time always replaces it.
    _, stored = check_batch(
        bad, max_message_bytes=1_000, timestamp_type=TimestampType.log_append_time
    )
    assert bytes(stored) == bad


def test_without_any_timestamp_there_is_no_largest() -> None:
    good = build_batch([Record(0, -1, None, b"v")])
    bad = _changed(good, lambda header: setattr(header, "max_timestamp", 5))
    assert bytes(check_batch(bad, max_message_bytes=1_000)[1]) == good


def test_log_append_time_of_a_producer_becomes_create_time(three_records: list[Record]) -> None:
    """LogValidator refuses it only without a timestamp."""
    batch = build_batch(three_records, timestamp_type=TimestampType.log_append_time)
    header, stored = check_batch(batch, max_message_bytes=1_000)
    assert header.timestamp_type is TimestampType.create_time
    assert read_header(bytes(stored)) == header
    ensure_crc(header, stored)
    without = _changed(batch, lambda header: setattr(header, "max_timestamp", -1))
    assert _refusal(without).code is ErrorCode.invalid_timestamp
    assert (
        _refusal(batch, timestamp_type=TimestampType.log_append_time).code
        is ErrorCode.invalid_timestamp
    )


def test_a_timestamp_beyond_64_bits_is_refused() -> None:
    batch = build_batch([Record(0, 2**62, None, b"v"), Record(0, 2**62 + 9, None, b"v")])
    beyond = _changed(batch, lambda header: setattr(header, "base_timestamp", 2**63 - 1))
    assert _refusal(beyond).code is ErrorCode.invalid_record


@pytest.mark.parametrize("compression", [1, 2, 3, 4])
def test_compressed_records_are_checked(compression: int) -> None:
    good = build_batch([Record(0, 1, b"k", b"v" * n) for n in range(100)], compression=compression)
    payload = good[HEADER_BYTES:]
    header = read_header(good)
    plain = bytes(decompress(compression, payload))
    for broken in (
        b"",
        payload[: len(payload) // 2],
        plain,
        compress(compression, b""),
        compress(compression, plain + b"\0"),
        compress(compression, plain[:-1]),
    ):
        assert _refusal(finish_batch(header, broken)).code is ErrorCode.invalid_record

    def claim(count: int) -> bytes:
        def change(header: BatchHeader) -> None:
            header.count, header.last_offset_delta = count, count - 1

        return _changed(good, change)

    for count in (1, 99, 101, 2_000_000_000):
        assert _refusal(claim(count)).code is ErrorCode.invalid_record
    assert check_batch(claim(100), max_message_bytes=100_000)


def test_decompression_has_a_limit() -> None:
    batch = build_batch([Record(0, 0, None, bytes(1_000_000))], compression=1)
    assert check_batch(batch, max_message_bytes=10_000)
    refusal = _refusal(batch, limit_bytes=1_000)
    assert refusal.code is ErrorCode.invalid_record
    assert "1000 bytes" in str(refusal)


@pytest.mark.parametrize("source", range(5))
@pytest.mark.parametrize("target", range(5))
def test_another_compression_changes_nothing_else(
    three_records: list[Record], source: int, target: int
) -> None:
    batch = build_batch(
        three_records, compression=source, producer_id=8, producer_epoch=0, base_sequence=3
    )
    header, changed = check_batch(batch + b"more", max_message_bytes=1_000, compression=target)
    assert header == read_header(changed)
    ensure_crc(header, changed)
    assert header.compression == target
    assert (header.producer_id, header.base_sequence, header.count) == (8, 3, 3)
    assert list(iterate_records(changed)) == three_records


def test_the_size_limit_applies_to_the_stored_form_too() -> None:
    batch = build_batch([Record(0, 0, None, bytes(10_000))], compression=4)
    assert check_batch(batch, max_message_bytes=1_000)
    assert check_batch(batch, max_message_bytes=11_000, compression=0)
    assert (
        _refusal(batch, max_message_bytes=1_000, compression=0).code is ErrorCode.message_too_large
    )


def _long(batch: bytes, **limits: object) -> bool:
    """Whether the check belongs in a thread; there it gives what it gives without limits."""
    try:
        check_batch(batch, max_message_bytes=10 << 20, at_once=ON_LOOP, **limits)  # type: ignore[arg-type]
    except LongBatchError:
        return True
    except ApiError:
        pass
    return False


def test_many_records_are_checked_in_a_thread() -> None:
    few = build_batch([Record(0, 1, b"k", b"")] * 1_000)
    many = build_batch([Record(0, 1, b"k", b"")] * (ON_LOOP.records + 1))
    assert (_long(few), _long(many)) == (False, True)


@pytest.mark.parametrize("compression", [1, 2, 3, 4])
def test_many_decompressed_bytes_are_checked_in_a_thread(compression: int) -> None:
    small = build_batch([Record(0, 1, b"k", bytes(1 << 20))], compression=compression)
    large = build_batch([Record(0, 1, b"k", bytes(ON_LOOP.plain_bytes))], compression=compression)
    assert (_long(small), _long(large)) == (False, True)
    header, _ = check_batch(large, max_message_bytes=10 << 20)
    assert header.count == 1


def test_records_that_are_compressed_again_are_checked_in_a_thread() -> None:
    batch = build_batch([Record(0, 1, b"k", bytes(ON_LOOP.compressed_bytes))])
    assert not _long(batch)
    assert _long(batch, compression=4, compression_level=22)
    assert not _long(build_batch([Record(0, 1, b"k", b"v")]), compression=4)


def test_many_records_that_may_be_invalid_are_named_in_a_thread() -> None:
    keyless = [Record(0, 1, None, b"")] * (ON_LOOP.named_records + 1)
    assert not _long(build_batch(keyless))
    assert _long(build_batch(keyless), keys_required=True)
    assert not _long(build_batch(keyless[:10]), keys_required=True)


def test_a_refusal_names_a_limited_number_of_records() -> None:
    batch = build_batch([Record(0, 1, None, b"")] * (MAX_RECORD_ERRORS + 5))
    refused = _refusal(batch, keys_required=True)
    assert isinstance(refused, InvalidRecordError)
    assert [each.batch_index for each in refused.record_errors] == list(range(MAX_RECORD_ERRORS))


def test_a_walk_pauses() -> None:
    pauses: list[None] = []
    batch = build_batch([Record(0, 1, b"k", b"")] * (2 * RECORDS_A_PAUSE + 1))
    check_batch(batch, max_message_bytes=10 << 20, pause=lambda: pauses.append(None))
    assert len(pauses) == 2
