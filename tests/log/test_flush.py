import os
import shutil
from typing import Any

import pytest

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


def test_a_disk_that_fails_is_a_storage_error_and_moves_nothing(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bench.open()
    bench.fill(log, 3)

    def fail(fd: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fail)
    with pytest.raises(ApiError, match="Input/output error") as caught:
        flush(log)
    assert caught.value.code is ErrorCode.kafka_storage_error
    assert log.recovery_point == 0
    monkeypatch.undo()
    assert log.unsynced_files
    flush(log)
    assert log.recovery_point == 9
    assert not log.unsynced_files


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
