"""A truncated log whose producers are read in a thread, and what comes between."""

import asyncio
import os
import random
import threading
from collections.abc import Callable
from typing import Any

import pytest

from ottla.log import names, scan
from ottla.log import producer_load as load_file
from ottla.log.compaction import plan_compaction
from ottla.log.flush import flush
from ottla.log.log import Log
from ottla.log.producer_load import ProducerLoad
from ottla.log.producer_snapshot import encode_snapshot
from ottla.log.producer_state import ProducerState
from ottla.log.producers import load_producers
from ottla.log.retention import remove_expired
from ottla.log.truncation import truncate_fully, truncate_to
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.header import iterate_headers


@pytest.fixture
def cut(bench: Any) -> Any:
    """A log with an open transaction, that was cut at 12 and whose producers must be read."""
    log = bench.log = bench.configure(segment_bytes=900).open()
    for _ in range(6):
        bench.send(log, 7, 3)
    bench.end(log, 7, commit=True)
    flush(log)
    assert len(log.segments) > 1
    truncate_to(log, 15, now_ms=1)
    bench.load = ProducerLoad.begin(log)
    assert bench.load is not None
    return bench


def _code(work: Callable[[], object]) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        work()
    return caught.value.code


def _finish(load: ProducerLoad) -> None:
    load.run()
    load.apply()
    load.end()


def _state(state: ProducerState) -> tuple[int, bytes, int | None]:
    producers = sorted(state.producers.values(), key=lambda each: each.producer_id)
    return state.end_offset, encode_snapshot(producers), state.first_unstable_offset(10**9)


def _read_all(log: Log) -> ProducerState:
    return load_producers(log.folder, [], log.segments, replay_from=0, end_offset=log.end_offset)


@pytest.mark.parametrize("seed", range(30))
def test_it_finds_what_the_batches_say(bench: Any, seed: int) -> None:
    chance = random.Random(seed)
    log = bench.configure(segment_bytes=1_200).open()
    ongoing: set[int] = set()
    for _ in range(chance.randrange(10, 40)):
        producer_id = chance.randrange(4)
        if producer_id in ongoing and chance.random() < 0.4:
            bench.end(log, producer_id, commit=chance.random() < 0.5)
            ongoing.discard(producer_id)
        elif producer_id == 3:
            bench.append(log, chance.randint(1, 4))
        else:
            bench.send(log, producer_id, chance.randint(1, 3))
            ongoing.add(producer_id)
    for _ in range(3):
        truncate_to(log, chance.randrange(log.end_offset // 2, log.end_offset), now_ms=1)
        load = ProducerLoad.begin(log)
        if load is not None:
            expected = _read_all(log)
            _finish(load)
            assert _state(log.producers) == _state(expected)
            assert not log.snapshots or log.snapshots[-1] == log.end_offset
        assert ProducerLoad.begin(log) is None
        bench.send(log, 5, 2)


async def test_the_batches_are_read_in_the_thread(
    cut: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers = []
    scan_all = scan.scan_headers

    def scan_headers(*place: Any) -> Any:
        readers.append(threading.get_ident())
        return scan_all(*place)

    monkeypatch.setattr(load_file, "scan_headers", scan_headers)
    monkeypatch.setattr("ottla.log.producers.replay_segment", None)
    await asyncio.to_thread(cut.load.run)
    cut.load.apply()
    assert cut.append(cut.log, 1).first_offset == 15
    assert readers
    assert threading.get_ident() not in readers


def test_until_it_is_applied_the_log_is_left_alone(cut: Any) -> None:
    log: Log = cut.log
    data = log.read(0, max_bytes=10**6).read()
    gone = ErrorCode.not_leader_or_follower
    for work in (
        lambda: cut.append(log, 1),
        lambda: log.append_as_follower(data, list(iterate_headers(data)), now_ms=1),
        lambda: log.producers,
        lambda: log.last_stable_offset(15),
        lambda: log.roll(1),
    ):
        assert _code(work) is gone
    cut.configure(retention_ms=0, cleanup_compact=True, min_cleanable_dirty_ratio=0.0)
    log.config = cut.config
    assert remove_expired(log, now_ms=10**12, high_watermark=15) is None
    assert plan_compaction(log, clean_offset=None, now_ms=10**12, high_watermark=15) is None
    assert ProducerLoad.begin(log) is None
    log.forget_producers(10**15, 1)
    assert len(cut.read_all(log)) == 15
    _finish(cut.load)
    assert log.last_stable_offset(15) == 0
    assert cut.send(log, 7, 3).first_offset == 15


def test_it_leaves_a_snapshot_at_the_cut(cut: Any) -> None:
    _finish(cut.load)
    log = cut.log
    assert log.snapshots[-1] == 15
    assert cut.folder / names.file_name(15, names.SNAPSHOT) in map(cut.folder.joinpath, cut.names())
    assert str(cut.folder / names.file_name(15, names.SNAPSHOT)) in log.unsynced_files


@pytest.mark.parametrize("has_run", [False, True])
@pytest.mark.parametrize("again", [12, 3, 0])
def test_another_cut_makes_it_stale(cut: Any, has_run: bool, again: int) -> None:
    log, first = cut.log, cut.load
    if has_run:
        first.run()
    truncate_to(log, again, now_ms=1)
    second = ProducerLoad.begin(log)
    assert (second is None) == (again == 0), "an empty log has no producers"
    first.run()
    first.apply()
    first.end()
    assert (log.loading is None) == (again == 0)
    if second is not None:
        _finish(second)
    assert log.loading is None
    assert log.producers.end_offset == again
    assert cut.send(log, 7, 3).first_offset == again


def test_a_full_truncation_makes_it_stale(cut: Any) -> None:
    truncate_fully(cut.log, 500, now_ms=1).run()
    _finish(cut.load)
    assert (cut.log.producers.end_offset, cut.log.snapshots) == (500, [])


@pytest.mark.parametrize("has_run", [False, True])
def test_a_deleted_log_is_left_alone(cut: Any, has_run: bool) -> None:
    if has_run:
        cut.load.run()
    renamed = cut.folder.with_name("t-0.0123-delete")
    cut.log.deleted(str(renamed))
    os.rename(cut.folder, renamed)
    _finish(cut.load)
    assert not (renamed / names.file_name(15, names.SNAPSHOT)).exists()
    assert not cut.folder.exists()


@pytest.mark.parametrize("has_run", [False, True])
def test_a_stop_meanwhile_forgets_nothing(cut: Any, has_run: bool) -> None:
    log = cut.log
    if has_run:
        cut.load.run()
    flush(log)
    log.close()
    log.is_closed = True
    _finish(cut.load)
    again = cut.open(recovery_point=15, clean=True)
    assert again.last_stable_offset(15) == 0
    assert again.producers.producers[7].last_sequence == 14
    assert again.snapshots[-1] == 15


def test_a_crash_meanwhile_forgets_nothing(cut: Any) -> None:
    cut.load.run()
    again = cut.open(recovery_point=15)
    assert again.last_stable_offset(15) == 0
    assert again.producers.producers[7].last_sequence == 14


def test_if_it_fails_the_producers_are_read_when_they_are_needed(cut: Any) -> None:
    log = cut.log
    away = cut.folder / "away"
    os.rename(log.active.path, away)
    assert _code(cut.load.run) is ErrorCode.kafka_storage_error
    cut.load.apply()
    assert _code(lambda: log.producers) is ErrorCode.not_leader_or_follower
    cut.load.end()
    os.rename(away, log.active.path)
    assert log.producers.producers[7].last_sequence == 14


def test_a_damaged_snapshot_gives_way_to_the_one_before(cut: Any) -> None:
    log = cut.log
    assert log.snapshots
    for offset in log.snapshots:
        (cut.folder / names.file_name(offset, names.SNAPSHOT)).write_bytes(b"torn")
    _finish(cut.load)
    assert log.last_stable_offset(15) == 0
    assert log.producers.producers[7].last_sequence == 14


def test_it_ends_soon_when_it_is_stale(cut: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment may have millions of batches."""
    log, looked = cut.log, []
    monkeypatch.setattr("ottla.log.scan.PORTION", 1)

    def scan_headers(*place: Any) -> Any:
        header = next(iterate_headers(log.read(0, max_bytes=10**6).read()))
        for number in range(1_000):
            if number == 10:
                truncate_to(log, 3, now_ms=1)
            looked.append(number)
            yield 0, header

    monkeypatch.setattr(load_file, "scan_headers", scan_headers)
    _finish(cut.load)
    assert len(looked) == 11


def test_a_log_without_producers_needs_none(bench: Any) -> None:
    log = bench.open()
    bench.fill(log, 5)
    truncate_to(log, 6, now_ms=1)
    assert ProducerLoad.begin(log) is None
    assert log.last_stable_offset(6) == 6
    assert bench.append(log, 1).first_offset == 6
    flush(log)
    log.close()
    assert bench.open(recovery_point=7, clean=True).snapshots == []
