import os
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.cleaned_transactions import CleanedTransactions
from ottla.log.cleaning import (
    Kept,
    Source,
    clean_group,
    keep_batch,
    keep_marker,
    map_keys,
)
from ottla.log.last_offsets import LastOffsets, short_key
from ottla.log.transaction_index import AbortedTransaction
from ottla.records.build import build_batch
from ottla.records.control import (
    ControlType,
    EndTransactionMarker,
    read_end_marker,
    write_end_marker,
)
from ottla.records.header import BatchHeader, ensure_crc, read_header
from ottla.records.iterate import iterate_records
from ottla.records.record import Record

DAY_MS = 24 * 3600 * 1000


def _rules(now_ms: int = 0, end_offset: int = 10**6, **last_offsets: int) -> Kept:
    return Kept(now_ms, DAY_MS, end_offset, {int(k[1:]): v for k, v in last_offsets.items()})


def _keep(
    batch: bytes, keys: dict[bytes, int], rules: Kept | None = None, mapped_to: int = 10**6
) -> bytes | None:
    header = read_header(batch)
    last_offsets = LastOffsets()
    for key, offset in keys.items():
        last_offsets[key] = offset
    kept = keep_batch(header, memoryview(batch), last_offsets, mapped_to, rules or _rules())
    if kept is None:
        return None
    ensure_crc(read_header(kept), kept)
    return bytes(kept)


def _offsets(kept: bytes | None) -> list[int]:
    return [] if kept is None else [record.offset for record in iterate_records(kept)]


THREE = [Record(0, 5, b"a", b"1"), Record(0, 6, b"b", b"2"), Record(0, 7, b"a", b"3")]


def test_only_the_last_of_a_key_stays() -> None:
    batch = build_batch(THREE, base_offset=10, compression=1)
    kept = _keep(batch, {b"a": 12, b"b": 11})
    assert _offsets(kept) == [11, 12]
    assert kept is not None
    header = read_header(kept)
    assert (header.base_offset, header.last_offset, header.compression) == (10, 12, 1)


def test_a_batch_that_loses_nothing_stays_byte_for_byte() -> None:
    batch = build_batch(THREE[:2], base_offset=10)
    assert _keep(batch, {b"a": 10, b"b": 11}) == batch
    assert _keep(batch, {}) == batch  # keys not seen in the dirty part


def test_a_batch_that_loses_all_goes() -> None:
    batch = build_batch(THREE, base_offset=10)
    assert _keep(batch, {b"a": 99, b"b": 98}) is None


def test_records_without_a_key_go() -> None:
    batch = build_batch([Record(0, 5, None, b"v"), Record(0, 5, b"k", b"v")], base_offset=3)
    assert _offsets(_keep(batch, {})) == [4]


def test_records_after_the_mapped_part_stay() -> None:
    batch = build_batch(THREE, base_offset=10)
    assert _keep(batch, {b"a": 99, b"b": 98}, mapped_to=10) == batch
    assert _offsets(_keep(batch, {b"a": 99, b"b": 98}, mapped_to=12)) == [12]


def test_the_last_sequence_of_a_known_producer_stays() -> None:
    batch = build_batch(
        THREE, base_offset=10, producer_id=4, producer_epoch=1, base_sequence=70, compression=2
    )
    keys = {b"a": 99, b"b": 98}
    assert _keep(batch, keys) is None
    assert _keep(batch, keys, _rules(p4=99)) is None
    kept = _keep(batch, keys, _rules(p4=12))
    assert kept is not None
    assert (len(kept), read_header(kept).last_sequence, read_header(kept).count) == (61, 72, 0)


def test_the_last_offset_of_the_round_stays() -> None:
    batch = build_batch(THREE, base_offset=10)
    kept = _keep(batch, {b"a": 99, b"b": 98}, _rules(end_offset=13))
    assert kept is not None
    assert read_header(kept).next_offset == 13


def test_a_tombstone_stays_for_its_time_and_then_goes() -> None:
    batch = build_batch([Record(0, 5, b"a", b"1"), Record(0, 6, b"b", None)], base_offset=10)
    first = _keep(batch, {}, _rules(now_ms=1_000))
    assert first is not None
    assert read_header(first).delete_horizon_ms == 1_000 + DAY_MS
    found = list(iterate_records(first))
    assert [(r.offset, r.timestamp_ms, r.value) for r in found] == [(10, 5, b"1"), (11, 6, None)]
    assert _keep(first, {}, _rules(now_ms=999 + DAY_MS)) == first
    last = _keep(first, {}, _rules(now_ms=1_000 + DAY_MS))
    assert _offsets(last) == [10]


def _marker(kind: ControlType = ControlType.abort, producer_id: int = 1) -> bytes:
    return write_end_marker(kind, producer_id, 3, 4, 77)


def _keep_marker(
    marker: bytes, rules: Kept, *, is_empty: bool = True
) -> tuple[BatchHeader, bytes] | None:
    transactions = CleanedTransactions()
    header = read_header(marker)
    if not is_empty:
        transactions.add_aborted([AbortedTransaction(header.producer_id, 0, 0, 0)])
        transactions.batch_read(
            read_header(build_batch(THREE, is_transactional=True, producer_id=header.producer_id))
        )
    kept = keep_marker(header, memoryview(marker), rules, transactions)
    if kept is None:
        return None
    ensure_crc(read_header(kept), kept)
    return read_header(kept), bytes(kept)


def test_a_marker_stays_as_long_as_its_transaction_has_batches() -> None:
    marker = _marker()
    kept = _keep_marker(marker, _rules(now_ms=10**15), is_empty=False)
    assert kept is not None
    assert kept[1] == marker


def test_trap_12_the_marker_of_an_empty_transaction_goes_after_its_time() -> None:
    first = _keep_marker(_marker(), _rules(now_ms=1_000))
    assert first is not None
    header, dated = first
    assert header.delete_horizon_ms == 1_000 + DAY_MS
    assert (header.is_control, header.is_transactional) == (True, True)
    found = read_end_marker(dated)
    assert found == EndTransactionMarker(ControlType.abort, 4, 77), "it still says the same"
    again = _keep_marker(dated, _rules(now_ms=999 + DAY_MS))
    assert again is not None
    assert again[1] == dated
    assert _keep_marker(dated, _rules(now_ms=1_000 + DAY_MS)) is None


def test_an_active_producers_last_marker_stays_as_a_header() -> None:
    first = _keep_marker(_marker(), _rules())
    assert first is not None
    late = 10**15
    for rules, stays in (
        (replace(_rules(late, p1=-1), last_epochs={1: 3}), True),
        (replace(_rules(late, p1=-1), last_epochs={1: 4}), False),
        (_rules(late, p1=9), False),
        (_rules(late, end_offset=1), True),
        (_rules(late), False),
    ):
        kept = _keep_marker(first[1], rules)
        assert (kept is not None) == stays, rules
        if kept is not None:
            assert (kept[0].count, kept[0].producer_epoch) == (0, 3)
            assert kept[0].is_control


@given(st.lists(st.binary(max_size=40), unique=True, max_size=50))
def test_no_two_keys_share_a_short_one(keys: list[bytes]) -> None:
    assert len({short_key(key) for key in keys}) == len(keys)


@pytest.fixture
def sources(bench: Any) -> Any:
    bench.log = bench.configure(segment_bytes=1_000).open()
    for number in range(60):
        key = b"k%d" % (number % 7)
        bench.append(bench.log, [Record(0, 100 + number, key, b"%d" % number)])
    bench.sources = [Source.of(segment) for segment in bench.log.segments[:-1]]
    bench.end = bench.log.active.base_offset
    return bench


def test_the_map_has_the_last_offset_of_each_key(sources: Any) -> None:
    keys = LastOffsets()
    assert map_keys(keys, sources.sources, 0, sources.end) == sources.end
    expected = {b"k%d" % (n % 7): n for n in range(sources.end)}
    assert dict(keys.items()) == expected
    dirty = LastOffsets()
    map_keys(dirty, sources.sources, sources.end - 3, sources.end)
    assert len(dirty) == 3
    with dirty:
        assert dirty.get(b"k%d" % ((sources.end - 1) % 7), -1) == sources.end - 1
    assert len(dirty) == 0


def test_a_full_map_says_how_far_it_goes(sources: Any) -> None:
    keys = LastOffsets()
    mapped_to = map_keys(keys, sources.sources, 0, sources.end, max_keys=4)
    assert (len(keys), mapped_to) == (4, 4)


def test_a_group_becomes_one_segment_in_files_apart(sources: Any) -> None:
    keys = LastOffsets()
    mapped_to = map_keys(keys, sources.sources, 0, sources.end)
    before = sources.names()
    rules = _rules(end_offset=sources.end)
    group = clean_group(
        str(sources.folder),
        sources.sources,
        keys,
        mapped_to,
        rules,
        CleanedTransactions(),
        sources.end,
    )
    new = sorted(set(sources.names()) - set(before))
    assert new == [f"{0:020d}.{kind}.cleaned" for kind in ("index", "log", "timeindex")]
    path = sources.folder / new[1]
    assert group.size_bytes == path.stat().st_size
    assert path.stat().st_mtime_ns == os.stat(sources.sources[-1].path).st_mtime_ns
    assert sources.read_all(sources.log)[0].offset == 0
