import os
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from ottla.log import names
from ottla.log.flush import flush
from ottla.log.truncation import truncate_fully, truncate_to
from ottla.protocol.errors import ApiError
from ottla.records.build import build_batch
from ottla.records.header import read_header
from ottla.records.record import Record


@pytest.fixture
def long(bench: Any) -> Any:
    bench.log = bench.configure(segment_bytes=900).open()
    for number in range(20):
        sent = {"producer_id": 6, "producer_epoch": 0, "base_sequence": number * 3}
        bench.append(bench.log, 3, leader_epoch=number // 5, **sent)
    flush(bench.log)
    bench.all = bench.read_all(bench.log)
    assert len(bench.log.segments) > 3
    return bench


@pytest.mark.parametrize("offset", [57, 45, 30, 15, 3, 0])
def test_a_truncation_removes_records_epochs_and_producers(long: Any, offset: int) -> None:
    log = long.log
    removal = truncate_to(log, offset, now_ms=1)
    if removal is not None:
        removal.run()
    assert (log.end_offset, log.recovery_point) == (offset, offset)
    assert long.read_all(log) == long.all[:offset]
    assert log.epochs.latest == (offset - 1) // 15 if offset else log.epochs.latest == -1
    producer = log.producers.producers.get(6)
    assert (producer.last_sequence if producer else -1) == offset - 1
    assert len(long.names(".log")) == len(log.segments)
    sent = {"producer_id": 6, "producer_epoch": 0, "base_sequence": offset}
    assert long.append(log, 3, leader_epoch=9, **sent).first_offset == offset
    again = long.open(recovery_point=0)
    assert [record.offset for record in long.read_all(again)] == list(range(offset + 3))


def test_a_batch_is_never_cut_in_two(long: Any) -> None:
    truncate_to(long.log, 31, now_ms=1)
    assert long.log.end_offset == 30


def test_a_truncation_past_the_end_does_nothing(long: Any) -> None:
    assert truncate_to(long.log, 60, now_ms=1) is None
    assert truncate_to(long.log, 99, now_ms=1) is None
    assert long.log.end_offset == 60


@pytest.mark.parametrize("renamed", [0, 1, 2, 3, 5, 8])
def test_a_crash_amid_a_cut_leaves_no_gap(
    long: Any, renamed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def rename(source: str, target: str) -> None:
        if len(done) == renamed:
            raise OSError("crashed")
        os.replace(source, target)
        done.append(target)

    assert len(long.log.segments) >= 4
    with monkeypatch.context() as patched:
        patched.setattr("ottla.log.retention.os.rename", rename)
        with pytest.raises(ApiError):
            truncate_to(long.log, 10, now_ms=1)
    again = long.open(recovery_point=60)
    offsets = [record.offset for record in long.read_all(again)]
    assert offsets == list(range(again.end_offset))
    assert again.end_offset > 10


def test_a_log_can_restart_at_another_offset(long: Any) -> None:
    truncate_fully(long.log, 500, now_ms=1).run()
    log = long.log
    assert (log.start_offset, log.end_offset, log.size_bytes) == (500, 500, 0)
    assert log.epochs.entries == []
    assert not log.producers.producers
    assert long.append(log, 1).first_offset == 500
    assert len(long.names(".log")) == 1


@pytest.fixture
def unended(bench: Any) -> Any:
    """A log with an open transaction, stopped in order: a snapshot at its end has it."""
    log = bench.configure(segment_bytes=900).open()
    for _ in range(6):
        bench.send(log, 7, 3)
    flush(log)
    log.close()
    assert len(log.segments) > 1
    bench.log = bench.open(recovery_point=18, clean=True)
    assert bench.log.last_stable_offset(18) == 0
    return bench


@pytest.mark.parametrize("offset", [500, 18, 7])
def test_no_producer_outlives_a_full_truncation(unended: Any, offset: int) -> None:
    """ProducerStateManager.truncateFullyAndStartAt: another leader may have ended the transaction
    where this log has nothing."""
    log = unended.log
    truncate_fully(log, offset, now_ms=1)
    assert not unended.names(names.SNAPSHOT)
    unended.append(log, 3)
    again = unended.open(recovery_point=offset)
    assert not again.producers.producers
    assert again.last_stable_offset(offset + 3) == offset + 3


def test_a_start_past_the_end_forgets_the_producers(unended: Any) -> None:
    """As a full truncation, LogLoader.deleteSegmentsIfLogStartGreaterThanLogEnd."""
    again = unended.open(start_offset=500)
    assert not unended.names(names.SNAPSHOT)
    assert not again.epochs.entries
    unended.append(again, 3)
    flush(again)
    later = unended.open(recovery_point=503, start_offset=500)
    assert not later.producers.producers


class CrashError(Exception):
    """The process is killed before a change of the folder."""


def _crash_at(
    step: int, monkeypatch: pytest.MonkeyPatch, work: Callable[[], object], error: type[Exception]
) -> bool:
    """Does `work`, up to the change of the folder number `step`; whether it came that far."""
    done = 0

    def change(original: Any) -> Any:
        def changed(path: Any, *rest: Any, **how: Any) -> Any:
            nonlocal done
            creates = original is os.open and rest[0] & os.O_CREAT
            if original is not os.open or creates:
                if done == step:
                    raise error("stopped here")
                done += 1
            return original(path, *rest, **how)

        return changed

    with monkeypatch.context() as patched:
        for name in ("rename", "replace", "unlink", "ftruncate", "open"):
            patched.setattr(os, name, change(getattr(os, name)))
        try:
            work()
        except (CrashError, ApiError):
            return True
    return False


@pytest.mark.parametrize("offset", [500, 18, 10, 0])
def test_no_crash_amid_a_cut_revives_a_transaction(
    make_bench: Any, monkeypatch: pytest.MonkeyPatch, offset: int
) -> None:
    """The follower is killed, comes back, cuts again and copies what its leader has."""
    step, crashed = 0, True
    while crashed:
        bench = make_bench(f"step-{step}").configure(segment_bytes=900)
        log = bench.open()
        bench.fill(log, 2)
        for _ in range(6):
            bench.send(log, 7, 3)
        flush(log)
        log.close()
        log = bench.open(recovery_point=24, clean=True)
        cut = truncate_fully if offset == 500 else truncate_to
        crashed = _crash_at(step, monkeypatch, partial(cut, log, offset, now_ms=1), CrashError)
        again = bench.open(recovery_point=24)
        offsets = [record.offset for record in bench.read_all(again)]
        assert offsets == list(range(again.start_offset, again.start_offset + len(offsets)))
        assert again.end_offset in (again.start_offset + len(offsets), 500)
        cut(again, offset, now_ms=1)
        bench.fill(again, 2)  # killed before its first roll
        later = bench.open(recovery_point=offset)
        is_open = offset in (10, 18)
        assert later.last_stable_offset(later.end_offset) == (6 if is_open else later.end_offset)
        assert later.end_offset == max(offset - offset % 3, again.start_offset) + 6
        step += 1
    assert step > 3


@pytest.mark.parametrize("offset", [500, 18, 10, 0])
def test_a_cut_that_the_disk_refuses_leaves_a_log_that_works(
    make_bench: Any, monkeypatch: pytest.MonkeyPatch, offset: int
) -> None:
    step, refused = 0, True
    while refused:
        bench = make_bench(f"step-{step}").configure(segment_bytes=900)
        log = bench.open()
        bench.fill(log, 8)
        flush(log)
        cut = truncate_fully if offset == 500 else truncate_to
        refused = _crash_at(step, monkeypatch, partial(cut, log, offset, now_ms=1), OSError)
        for _ in range(2):
            assert log.segments
            records = bench.read_all(log)
            end_offset = records[-1].offset + 1 if records else log.start_offset
            assert (log.end_offset, log.producers.end_offset) == (end_offset, end_offset)
            assert [each.offset for each in records] == list(range(log.start_offset, end_offset))
            assert log.recovery_point <= end_offset
            assert bench.append(log, 3).first_offset == end_offset
            flush(log)
            log.close()
            again = bench.open(recovery_point=end_offset + 3, start_offset=log.start_offset)
            assert (again.start_offset, again.end_offset) == (log.start_offset, end_offset + 3)
            assert bench.read_all(again) == bench.read_all(log)
            log = again
            cut(log, offset, now_ms=1)
        step += 1
    assert step > 1


def test_a_stop_after_a_cut_remembers_open_transactions(bench: Any) -> None:
    """KAFKA-5435: a clean log without a snapshot counts as one without producers."""
    log = bench.open()
    bench.send(log, 7, 3)
    bench.append(log, 3)  # no replica has it
    truncate_to(log, 3, now_ms=1)
    flush(log)
    log.close()
    again = bench.open(recovery_point=3, clean=True)
    assert again.last_stable_offset(3) == 0
    assert bench.end(again, 7, commit=False).first_offset == 3
    assert again.last_stable_offset(4) == 4


def test_a_cut_at_a_segment_s_start_keeps_its_snapshot(long: Any) -> None:
    log = long.log
    base_offset = log.segments[2].base_offset
    truncate_to(log, base_offset, now_ms=1)
    assert log.snapshots[-1] == log.active.base_offset == base_offset
    assert log.active.size_bytes == 0
    assert len(long.names(names.SNAPSHOT)) == len(log.snapshots)


def test_a_cut_in_a_gap_stays_after_a_restart(bench: Any) -> None:
    """The new end is above the last batch: the high watermark may be there."""
    log = bench.configure(segment_bytes=10**6).open()
    for offset in (0, 10, 20):
        batch = build_batch([Record(0, 1, None, b"v")], base_offset=offset, leader_epoch=0)
        log.append_as_follower(batch, [read_header(batch)], now_ms=1)
    truncate_to(log, 15, now_ms=1)
    flush(log)
    for clean in (False, True):
        log.close()
        log = bench.open(recovery_point=15, clean=clean)
        assert log.end_offset == 15
    assert bench.append(log).first_offset == 15
    assert [record.offset for record in bench.read_all(log)] == [0, 10, 15]


def test_a_crash_in_a_full_truncation_does_not_revive_transactions(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never are the old records beside the new segment: their transactions would not end."""
    log = bench.open()
    bench.send(log, 7, 3)
    log.close()
    log = bench.open(recovery_point=3, clean=True)
    made = os.open

    def crash(path: str, flags: int, *others: Any) -> int:
        if path.endswith("00050.index"):
            raise KeyboardInterrupt
        return made(path, flags, *others)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", crash)
        with pytest.raises(KeyboardInterrupt):
            truncate_fully(log, 50, now_ms=1)
    again = bench.open(recovery_point=3)
    assert (again.start_offset, again.end_offset) == (50, 50)
    assert again.last_stable_offset(50) == 50
    assert not again.producers.producers


def test_a_disk_that_refuses_a_snapshot_s_end_changes_nothing(
    long: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would be loaded after the next cut, once the log has grown past it."""
    log = long.log

    def refuse(path: str) -> None:
        raise OSError("no disk today")

    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", refuse)
        with pytest.raises(ApiError):
            truncate_to(log, 10, now_ms=1)
    assert log.end_offset == 60
    truncate_to(log, 10, now_ms=1)
    assert max(log.snapshots, default=0) <= 10
    assert len(long.names(names.SNAPSHOT)) == len(log.snapshots)
