import random
from typing import Any

import pytest
from tests.log.committed_reader import read_committed

from ottla.log.compaction import Compaction, plan_compaction
from ottla.log.log import Log
from ottla.log.removal import Removal
from ottla.log.retention import remove_expired
from ottla.records.record import Record

DAY_MS = 24 * 3600 * 1000


@pytest.fixture
def compacted(bench: Any) -> Any:
    bench.configure(
        segment_bytes=2_000,
        cleanup_compact=True,
        cleanup_delete=False,
        min_cleanable_dirty_ratio=0.5,
        delete_retention_ms=DAY_MS,
    )
    bench.log = bench.open()
    bench.clean = None
    return bench


def _write(bench: Any, number: int, keys: int = 9, tombstones: float = 0.1) -> None:
    rng = random.Random(bench.log.end_offset)
    for _ in range(number):
        records = [
            Record(
                0,
                bench.now_ms,
                b"key%d" % rng.randrange(keys),
                None if rng.random() < tombstones else b"%x" % rng.randrange(2**60),
            )
            for _ in range(rng.randrange(1, 5))
        ]
        bench.append(bench.log, records, compression=rng.randrange(5))


def _plan(bench: Any, high_watermark: int | None = None) -> Compaction | None:
    log: Log = bench.log
    return plan_compaction(
        log,
        clean_offset=bench.clean,
        now_ms=bench.now_ms,
        high_watermark=log.end_offset if high_watermark is None else high_watermark,
    )


def _compact(bench: Any) -> None:
    plan = _plan(bench)
    assert plan is not None
    plan.run()
    for removal in plan.apply():
        assert isinstance(removal, Removal)
        removal.run()
    bench.clean = plan.clean_offset


def _state(records: list[Record]) -> dict[bytes | None, bytes | None]:
    return {record.key: record.value for record in records}


def test_each_key_keeps_its_last_value_and_offsets_stay(compacted: Any) -> None:
    for _ in range(4):
        _write(compacted, 60)
        before = compacted.read_all(compacted.log)
        _compact(compacted)
        after = compacted.read_all(compacted.log)
        assert _state(after) == _state(before)
        assert set(after) <= set(before)
        assert [r.offset for r in after] == sorted({r.offset for r in after})
        active = compacted.log.active.base_offset
        closed = [record.key for record in after if record.offset < active]
        assert len(closed) == len(set(closed))
        assert not [n for n in compacted.names() if n.endswith(("cleaned", "swap", "deleted"))]
    end = compacted.log.end_offset
    again = compacted.open(recovery_point=0)
    assert compacted.read_all(again) == after
    assert again.end_offset == end


def test_every_offset_can_still_be_asked_for(compacted: Any) -> None:
    _write(compacted, 60)
    _compact(compacted)
    left = compacted.read_all(compacted.log)
    for offset in range(compacted.log.end_offset):
        found = compacted.read_all(compacted.log, offset)
        assert found == [record for record in left if record.offset >= offset]


def test_tombstones_go_after_their_time(compacted: Any) -> None:
    compacted.append(compacted.log, [Record(0, compacted.now_ms, b"gone", None)])
    _write(compacted, 60, tombstones=0)
    _compact(compacted)
    assert b"gone" in _state(compacted.read_all(compacted.log))
    compacted.now_ms += DAY_MS
    _write(compacted, 60, tombstones=0)
    _compact(compacted)
    assert b"gone" not in _state(compacted.read_all(compacted.log))


def test_nothing_is_planned_below_the_dirty_ratio(compacted: Any) -> None:
    _write(compacted, 100, keys=10_000)
    _compact(compacted)
    assert _plan(compacted) is None
    _write(compacted, 40, keys=10_000)
    assert _plan(compacted) is None
    _write(compacted, 80, keys=10_000)
    assert _plan(compacted) is not None


def test_the_longest_lag_overrules_the_ratio(compacted: Any) -> None:
    compacted.log.config = compacted.configure(max_compaction_lag_ms=DAY_MS).config
    _write(compacted, 100, keys=10_000)
    _compact(compacted)
    _write(compacted, 30, keys=10_000)
    assert _plan(compacted) is None
    compacted.now_ms += DAY_MS + 1
    assert _plan(compacted) is not None


def test_the_shortest_lag_keeps_young_segments(compacted: Any) -> None:
    compacted.log.config = compacted.configure(min_compaction_lag_ms=1_000).config
    _write(compacted, 60)
    assert _plan(compacted) is None
    compacted.now_ms += 1_001
    assert _plan(compacted) is not None


def test_nothing_uncommitted_and_no_active_segment_is_cleaned(compacted: Any) -> None:
    _write(compacted, 60)
    second = compacted.log.segments[1].base_offset
    assert _plan(compacted, high_watermark=second - 1) is None
    plan = _plan(compacted, high_watermark=second + 1)
    assert plan is not None
    plan.run()
    plan.apply()
    assert plan.clean_offset == second
    assert _plan(compacted) is not None


def test_a_producer_goes_on_with_its_sequence(compacted: Any) -> None:
    sent = {"producer_id": 5, "producer_epoch": 0}
    compacted.append(compacted.log, [Record(0, 1, b"key1", b"x")], base_sequence=0, **sent)
    _write(compacted, 60)
    _compact(compacted)
    for path in compacted.folder.glob("*.snapshot"):
        path.unlink()
    again = compacted.open(recovery_point=0)
    record = [Record(0, 1, b"key1", b"y")]
    assert not compacted.append(again, record, base_sequence=1, **sent).is_duplicate
    assert compacted.append(again, record, base_sequence=1, **sent).is_duplicate


@pytest.mark.parametrize("when", ["before", "after"])
def test_retention_that_came_first_wins(compacted: Any, when: str) -> None:
    compacted.log.config = compacted.configure(cleanup_delete=True, retention_ms=1_000).config
    _write(compacted, 60)
    plan = _plan(compacted)
    assert plan is not None
    if when == "after":
        plan.run()
    compacted.now_ms += 2_000
    end = compacted.log.end_offset
    removal = remove_expired(compacted.log, now_ms=compacted.now_ms, high_watermark=end)
    assert removal is not None
    removal.run()
    if when == "before":
        plan.run()
    assert plan.apply() == []
    assert compacted.log.start_offset == compacted.log.end_offset == end
    assert not compacted.names(".cleaned")


def test_small_segments_become_one(compacted: Any) -> None:
    """What a round left small, the next one puts together, as Kafka does."""
    _write(compacted, 200, keys=4)
    _compact(compacted)
    left = compacted.log.active.base_offset
    assert sum(segment.base_offset < left for segment in compacted.log.segments) > 5
    _write(compacted, 200, keys=4)
    _compact(compacted)
    assert sum(segment.base_offset < left for segment in compacted.log.segments) == 1


def test_a_reader_of_an_old_segment_finishes(compacted: Any) -> None:
    _write(compacted, 60)
    held = compacted.log.read(0, max_bytes=1_000)
    expected = held.read()
    _compact(compacted)
    assert held.read() == expected


def test_a_round_with_more_keys_than_fit_goes_on_with_the_next(
    compacted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.log.cleaning.map_keys.__defaults__", (10,))
    _write(compacted, 150, keys=50)
    expected = _state(compacted.read_all(compacted.log))
    rounds = 0
    while _plan(compacted) is not None and rounds < 100:
        _compact(compacted)
        rounds += 1
    assert 1 < rounds < 100
    assert _state(compacted.read_all(compacted.log)) == expected


def _transact(bench: Any, rng: random.Random, number: int) -> dict[bytes, bytes]:
    """Transactions of three producers, some aborted, all ended; the last committed values."""
    values: dict[bytes, bytes] = {}
    written: dict[int, dict[bytes, bytes]] = {}
    log = bench.log
    for step in range(number):
        producer = rng.randrange(3)
        if producer in written and rng.random() < 0.4:
            commits = rng.random() < 0.5
            bench.end(log, producer, commit=commits)
            ended = written.pop(producer)
            values |= ended if commits else {}
            continue
        # A key has one writer: what is committed last was then also written last.
        key, value = b"key%d-%d" % (producer, rng.randrange(4)), b"%d" % step
        bench.send(log, producer, [Record(0, bench.now_ms, key, value)])
        written.setdefault(producer, {})[key] = value
    for producer in list(written):
        bench.end(log, producer, commit=False)
    return values


@pytest.mark.parametrize("seed", range(4))
def test_trap_12_compaction_drops_what_was_aborted(compacted: Any, seed: int) -> None:
    compacted.configure(segment_bytes=900, min_cleanable_dirty_ratio=0)
    compacted.log = compacted.open()
    rng = random.Random(seed)
    values: dict[bytes, bytes] = {}
    for _ in range(4):
        values |= _transact(compacted, rng, 80)
        before = compacted.log.last_stable_offset(compacted.log.end_offset)
        _compact(compacted)
        log = compacted.log
        for each in (log, compacted.open(recovery_point=log.end_offset)):
            assert _state(read_committed(each)) == values
            assert _state(read_committed(each, 1)) == values
            assert each.last_stable_offset(each.end_offset) == before
        every = compacted.read_all(log, log.start_offset)
        committed = {record.offset for record in read_committed(log)}
        closed = [record for record in every if record.offset < log.active.base_offset]
        markers = [record for record in closed if record.key and len(record.key) == 4]
        left = {record.offset for record in closed} - {record.offset for record in markers}
        assert left <= committed, "aborted records are gone"
        compacted.log = log


def test_trap_12_markers_of_empty_transactions_go(compacted: Any) -> None:
    compacted.configure(segment_bytes=900)
    log = compacted.log = compacted.open()

    def markers() -> int:
        return sum(
            header.is_control and header.count > 0
            for segment in log.segments[:-1]
            for _, header in segment.headers()
        )

    for _ in range(40):
        compacted.send(log, 1, [Record(0, compacted.now_ms, b"key", b"v")])
        compacted.end(log, 1, commit=False)
    for _ in range(20):
        compacted.append(log, [Record(0, compacted.now_ms, b"other", b"v" * 50)])
    held = markers()
    assert held > 30
    _compact(compacted)
    assert markers() == held, "their horizon begins with the first cleaning that finds them empty"
    for _ in range(2):
        compacted.now_ms += DAY_MS
        for _ in range(60):
            compacted.append(log, [Record(0, compacted.now_ms, b"other", b"v" * 50)])
        _compact(compacted)
    assert markers() == 1, "the producer's last batch stays, as a header, and so its marker"
    indexes = [segment.txn_index for segment in log.segments if segment.txn_index is not None]
    assert sum(len(index.overlapping(0, 10**6)[0]) for index in indexes) == 1
    assert _state(read_committed(log)) == {b"other": b"v" * 50}


def test_an_open_transaction_ends_the_cleaning(compacted: Any) -> None:
    log = compacted.log
    compacted.send(log, 1, [Record(0, compacted.now_ms, b"key", b"v")])
    _write(compacted, 200)
    assert _plan(compacted) is None
    compacted.end(log, 1, commit=True)
    _compact(compacted)
    assert b"key" in _state(read_committed(log))
