import os
import shutil
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from ottla.log import names
from ottla.log.compaction import plan_compaction
from ottla.log.flush import flush
from ottla.log.log import Log
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.log.partition_metadata import read_topic_id
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.record import Record


def _again(bench: Any, folder: Path | None = None, **how: Any) -> Log:
    bench.files = OpenFiles(8)
    return open_log(str(folder or bench.folder), bench.config, bench.files, now_ms=1, **how)


def test_a_new_log_has_its_folder_and_files_from_its_first_record_on(
    bench: Any, tmp_path: Path
) -> None:
    bench.folder = tmp_path / "new-0"
    log = bench.open()
    assert (log.start_offset, log.end_offset, log.size_bytes) == (0, 0, 0)
    assert not log.is_on_disk
    log.topic_id = uuid4()
    flush(log)
    log.close()
    assert not bench.folder.exists()
    bench.append(log)
    assert log.is_on_disk
    flush(log)
    stem = "0" * 20
    files = {f"{stem}.index", f"{stem}.log", f"{stem}.timeindex", "leader-epoch-checkpoint"}
    assert {*bench.names(), *(each.name for each in bench.folder.iterdir())} == {
        *files,
        "partition.metadata",
    }
    assert read_topic_id(str(bench.folder)) == log.topic_id


def test_a_log_whose_creation_was_interrupted_is_new(bench: Any) -> None:
    log = bench.open()
    log.make_files()
    os.unlink(log.active.path)
    again = bench.open()
    assert again.end_offset == 0
    assert bench.append(again).first_offset == 0


def test_an_empty_log_keeps_its_start_in_its_files(bench: Any) -> None:
    log = bench.open(start_offset=7)
    assert (log.start_offset, log.end_offset, log.size_bytes) == (7, 7, 0)
    stem = "0" * 19 + "7"
    assert bench.names() == [f"{stem}.index", f"{stem}.log", f"{stem}.timeindex"]


def test_a_clean_log_opens_without_opening_a_file(bench: Any) -> None:
    log = bench.configure(segment_bytes=900).open()
    bench.fill(log, 12)
    expected = bench.read_all(log)
    flush(log)
    log.close()
    again = _again(bench, recovery_point=36, clean=True)
    assert len(bench.files) == 0
    assert (again.end_offset, again.recovery_point) == (36, 36)
    assert bench.read_all(again) == expected
    assert bench.append(again).first_offset == 36


def test_the_file_overrides_a_wrong_checkpoint(bench: Any) -> None:
    log = bench.open()
    bench.fill(log, 4)
    log.close()
    assert bench.append(_again(bench, recovery_point=50, clean=True)).first_offset == 12


def test_indexes_that_are_missing_are_rebuilt(bench: Any) -> None:
    log = bench.configure(segment_bytes=900).open()
    bench.fill(log, 12)
    log.close()
    expected = {
        name: (bench.folder / name).read_bytes()
        for name in [*bench.names(".index"), *bench.names(".timeindex")]
    }
    for name in expected:
        (bench.folder / name).unlink()
    _again(bench, recovery_point=36, clean=True)
    assert {name: (bench.folder / name).read_bytes() for name in expected} == expected


@pytest.mark.parametrize("content", [b"x" * 13, b"\x7f" * 16, bytes(80)])
def test_insane_indexes_are_rebuilt_when_first_used(bench: Any, content: bytes) -> None:
    log = bench.configure(segment_bytes=900).open()
    bench.fill(log, 12)
    expected = bench.read_all(log)
    log.close()
    for name in bench.names("index"):
        (bench.folder / name).write_bytes(content)
    again = _again(bench, recovery_point=36, clean=True)
    for offset in range(36):
        assert bench.read_all(again, offset) == expected[offset:]
    assert bench.append(again).first_offset == 36


def test_index_files_without_a_log_go(bench: Any) -> None:
    log = bench.open()
    bench.fill(log, 2)
    log.close()
    for suffix in (names.INDEX, names.TIME_INDEX, names.TXN_INDEX):
        (bench.folder / names.file_name(99, suffix)).write_bytes(b"")
    _again(bench)
    assert not [name for name in bench.names() if "99" in name]


def test_a_start_past_the_end_empties_the_log(bench: Any) -> None:
    log = bench.open()
    bench.fill(log, 2)
    log.close()
    again = _again(bench, start_offset=100)
    assert (again.start_offset, again.end_offset, again.size_bytes) == (100, 100, 0)


def test_the_start_survives_as_checkpointed(bench: Any) -> None:
    log = bench.open()
    bench.fill(log, 4)
    log.close()
    again = _again(bench, start_offset=5)
    assert (again.start_offset, again.end_offset) == (5, 12)
    assert [record.offset for record in bench.read_all(again)] == list(range(5, 12))


def test_stray_snapshots_go_but_for_the_last(bench: Any) -> None:
    log = bench.open()
    sent = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    bench.append(log, 3, **sent)
    log.close()
    for offset in (1, 2):
        source = bench.folder / names.file_name(3, names.SNAPSHOT)
        shutil.copy(source, bench.folder / names.file_name(offset, names.SNAPSHOT))
    again = _again(bench, recovery_point=3, clean=True)
    assert bench.names(names.SNAPSHOT) == [names.file_name(3, names.SNAPSHOT)]
    assert again.producers.producers[1].last_sequence == 2
    assert bench.append(again, 3, **sent).is_duplicate


def test_a_folder_that_cannot_be_made_is_a_storage_error(bench: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ApiError) as caught:
        _again(bench, tmp_path / "file" / "t-0")
    assert caught.value.code is ErrorCode.kafka_storage_error


class StopError(Exception):
    """The crash, at one chosen rename."""


def _compact_until(bench: Any, log: Log, step: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Compacts, and dies before the rename of number `step`; whether it came that far."""
    done = 0
    real = os.rename

    def rename(old: str, new: str) -> None:
        nonlocal done
        if done == step:
            raise StopError
        done += 1
        real(old, new)

    compaction = plan_compaction(
        log, clean_offset=None, now_ms=bench.now_ms, high_watermark=log.end_offset
    )
    assert compaction is not None
    compaction.run()
    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", rename)
        try:
            compaction.apply()
        except StopError:
            return True
    return False


def test_a_compaction_that_dies_at_any_rename_loses_no_last_value(
    make_bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, died = 0, True
    while died:
        bench = make_bench(f"step-{step}").configure(
            segment_bytes=900, cleanup_compact=True, min_cleanable_dirty_ratio=0.0
        )
        log = bench.open()
        for number in range(60):
            key = b"key%d" % (number % 5)
            bench.append(log, [Record(0, bench.now_ms, key, b"%d" % number)])
        expected = {record.key: record.value for record in bench.read_all(log)}
        died = _compact_until(bench, log, step, monkeypatch)
        again = _again(bench, recovery_point=log.active.base_offset)
        assert {record.key: record.value for record in bench.read_all(again)} == expected
        assert again.end_offset == 60
        bases = [segment.base_offset for segment in again.segments]
        assert bases == sorted(set(bases))
        assert not [name for name in bench.names() if name.endswith(("cleaned", "swap", "deleted"))]
        step += 1
    assert step > 10


def test_a_compaction_that_dies_while_it_writes_leaves_the_old_segments(bench: Any) -> None:
    log = bench.open()
    bench.fill(log, 5)
    expected = bench.read_all(log)
    for suffix in (names.LOG, names.INDEX):
        (bench.folder / (names.file_name(0, suffix) + names.CLEANED)).write_bytes(b"half")
    # A swap from the same offset on belongs to the same unfinished work.
    (bench.folder / (names.file_name(0, names.TIME_INDEX) + names.SWAP)).write_bytes(b"half")
    again = _again(bench)
    assert bench.read_all(again) == expected
    assert not [name for name in bench.names() if name.endswith((names.CLEANED, names.SWAP))]


def test_files_marked_as_deleted_go(bench: Any) -> None:
    log = bench.open()
    bench.fill(log, 2)
    log.close()
    (bench.folder / (names.file_name(50, names.LOG) + names.DELETED)).write_bytes(b"old")
    assert _again(bench).end_offset == 6
    assert not bench.names(names.DELETED)


def test_what_recovery_has_rebuilt_is_synced_before_a_clean_stop_trusts_it(bench: Any) -> None:
    log = bench.open()
    bench.fill(log, 12)
    flush(log)
    again = bench.open(recovery_point=log.end_offset)
    assert again.unflushed_records == 0
    rebuilt = again.active
    assert {rebuilt.path, *rebuilt.index_paths} <= set(again.unsynced_files)


def test_a_lost_segment_is_one_line(bench: Any, caplog: pytest.LogCaptureFixture) -> None:
    log = bench.configure(segment_bytes=900).open()
    bench.fill(log, 12)
    bases = [segment.base_offset for segment in log.segments]
    assert len(bases) == 3
    log.close()
    os.truncate(log.segments[1].path, 0)
    bench.open(recovery_point=36)
    ends = (line for line in caplog.messages if "has no offsets" in line)
    assert next(ends).startswith(f"{bench.folder} has no offsets {bases[1]} to {bases[2] - 1}: ")
    # Compaction leaves gaps.
    caplog.clear()
    bench.configure(cleanup_compact=True).open(recovery_point=36)
    assert not [line for line in caplog.messages if "has no offsets" in line]


def test_what_becomes_of_index_files_is_said(bench: Any, caplog: pytest.LogCaptureFixture) -> None:
    log = bench.open()
    bench.fill(log, 2)
    log.close()
    orphan = bench.folder / names.file_name(99, names.INDEX)
    orphan.touch()
    missing, folder = (
        bench.folder / name for name in (*bench.names("0.index"), *bench.names("0.timeindex"))
    )
    missing.unlink()
    folder.unlink()
    folder.mkdir()
    assert bench.read_all(bench.open(recovery_point=6, clean=True))
    assert caplog.messages == [
        f"cannot use {folder} (Is a directory): it is now {folder}.damaged",
        f"{orphan} has no .log file, and is removed",
        f"{missing} is missing: it is built again",
    ]


def test_a_folder_in_the_place_of_a_log_refuses_with_its_name(bench: Any) -> None:
    path = bench.folder / names.file_name(0, names.LOG)
    path.mkdir(parents=True)
    with pytest.raises(ApiError, match=f"cannot open {bench.folder}: {path}: Is a directory"):
        bench.open()
