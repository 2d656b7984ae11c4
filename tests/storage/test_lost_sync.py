import os
from pathlib import Path
from typing import Any

import pytest

from ottla.storage import lost_sync


def test_the_next_start_reads_the_folder_from_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    dropped: set[str] = set()

    def fadvise(fd: int, *advice: Any) -> None:
        assert advice == (0, 0, os.POSIX_FADV_DONTNEED)
        dropped.add(os.readlink(f"/proc/self/fd/{fd}"))

    monkeypatch.setattr(os, "posix_fadvise", fadvise)
    (tmp_path / "t-0").mkdir()
    paths = [tmp_path / "t-0" / "0.log", tmp_path / "coordination.sqlite-wal"]
    for path in paths:
        path.touch()
    lost_sync.read_disk_again(str(tmp_path))
    assert (dropped, caplog.messages) == (set(), [])
    lost_sync.note(str(tmp_path))
    lost_sync.read_disk_again(str(tmp_path))
    assert set(map(str, paths)) <= dropped
    assert caplog.messages == [
        f"{tmp_path}: an fsync has failed; its files are read from the disk again"
    ]
    lost_sync.forget(str(tmp_path))
    lost_sync.forget(str(tmp_path))
    assert not (tmp_path / lost_sync.FILE_NAME).exists()


def test_a_disk_that_takes_nothing_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lost_sync.note(str(tmp_path / "none"))
    (line,) = caplog.messages
    assert line.endswith("No such file or directory")


def test_without_the_call_nothing_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "posix_fadvise")
    lost_sync.note(str(tmp_path))
    lost_sync.read_disk_again(str(tmp_path))
