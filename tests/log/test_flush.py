import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ottla.log.errors import SyncError
from ottla.log.flush import FlushTask, flush
from ottla.log.truncation import truncate_to
from ottla.protocol.errors import ApiError, ErrorCode


def test_the_recovery_point_is_what_was_there_when_the_flush_began(bench: Any) -> None:
    log = bench.open()
    bench.fill(log, 3)
    assert (log.recovery_point, log.unflushed_records) == (0, 9)
    task = FlushTask(log)
    bench.fill(log, 1)
    task.run()
    assert log.recovery_point == 0
    task.apply()
    assert (log.recovery_point, log.unflushed_records) == (9, 3)
    flush(log)
    assert log.recovery_point == 12


def test_index_entries_are_stored_first(bench: Any) -> None:
    log = bench.open()
    bench.fill(log, 10)
    assert os.path.getsize(log.active.offset_index.path) == 0
    flush(log)
    assert os.path.getsize(log.active.offset_index.path) == 8 * len(log.active.offset_index) > 0


def test_segments_removed_during_a_flush_are_skipped(bench: Any) -> None:
    log = bench.open()
    bench.fill(log, 40)
    task = FlushTask(log)
    for name in bench.names("index"):
        (bench.folder / name).unlink()
    task.run()
    task.apply()
    assert log.recovery_point == log.end_offset, "what is gone does not have to be synced"


def test_a_disk_that_fails_is_a_storage_error_and_moves_nothing(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bench.open()
    bench.fill(log, 3)

    def fail(fd: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fail)
    under_way = FlushTask(log)
    with pytest.raises(SyncError, match="Input/output error") as caught:
        flush(log)
    assert caught.value.code is ErrorCode.kafka_storage_error
    assert log.recovery_point == 0
    monkeypatch.undo()
    # The next fsync of the file would succeed: Linux reports the error once.
    for attempt in (lambda: flush(log), under_way.run, lambda: bench.fill(log, 1)):
        with pytest.raises(SyncError, match="Input/output error"):
            attempt()
    assert (log.recovery_point, log.end_offset) == (0, 9)
    assert log.read(0, max_bytes=1 << 20).size_bytes == log.size_bytes


def test_of_two_flushes_at_once_both_fail(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """They sync the same open file, and only one of them gets the error."""
    log = bench.open()
    bench.fill(log, 3)
    tasks = [FlushTask(log), FlushTask(log)]
    both, calls = threading.Event(), iter((True, False))

    def once(fd: int) -> None:
        if next(calls, False):
            assert not both.wait(0.05), "the other one has passed meanwhile"
            raise OSError(5, "Input/output error")
        both.set()

    monkeypatch.setattr(os, "fdatasync", once)
    with ThreadPoolExecutor(2) as pool:
        flushes = [pool.submit(task.run) for task in tasks]
    assert [type(each.exception()) for each in flushes] == [SyncError, SyncError]


@pytest.mark.parametrize("which", ["index", "leader-epoch-checkpoint.tmp"])
def test_every_file_of_a_log_counts(
    bench: Any, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    log = bench.open()
    bench.fill(log, 3)
    sync = os.fsync

    def fail(fd: int) -> None:
        if os.readlink(f"/proc/self/fd/{fd}").endswith(which):
            raise OSError(5, "Input/output error")
        sync(fd)

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(SyncError):
        flush(log)
    assert log.sync_failure is not None


def test_a_new_log_syncs_the_folders_that_name_its_files(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bench.open()
    bench.fill(log, 1)
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    flush(log)
    assert {str(bench.folder), str(bench.folder.parent)} <= set(synced)
    assert log.unsynced_files == []


def test_what_a_flush_could_not_begin_with_is_synced_by_the_next(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk for the indexes, or no descriptor left, is no failed fsync."""
    log = bench.open()
    bench.fill(log, 3)
    unsynced = list(log.unsynced_files)
    assert unsynced

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", full)
        with pytest.raises(ApiError, match="No space left"):
            FlushTask(log)
    assert log.unsynced_files == unsynced
    task = FlushTask(log)
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", full)
        with pytest.raises(ApiError, match="No space left"):
            task.run()
    assert set(unsynced) <= set(log.unsynced_files)
    flush(log)
    assert (log.recovery_point, log.unsynced_files) == (9, [])


def test_records_truncated_during_a_flush_do_not_count_as_synced(bench: Any) -> None:
    log = bench.open()
    bench.fill(log, 3)
    task = FlushTask(log)
    truncate_to(log, 3, now_ms=1)
    bench.fill(log, 3)
    task.run()
    task.apply()
    assert log.recovery_point == 0
    flush(log)
    assert log.recovery_point == 12


def test_a_deleted_log_flushes_as_a_no_op(bench: Any) -> None:
    log = bench.open()
    bench.fill(log, 10)
    under_way = FlushTask(log)
    renamed = bench.folder.with_name("t-0.deleted")
    bench.folder.rename(renamed)
    log.deleted(str(renamed))
    shutil.rmtree(renamed)
    flush(log)
    under_way.run()
    under_way.apply()
    assert not bench.folder.exists()
