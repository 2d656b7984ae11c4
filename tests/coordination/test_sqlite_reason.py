"""A full disk is named, whatever SQLite calls it."""

import errno
import os
import sqlite3
import tempfile
from pathlib import Path

import pytest

from ottla.coordination.embedded import EmbeddedTree
from ottla.coordination.embedded_store import FILE_NAME, EmbeddedStore, StoreError
from ottla.coordination.sqlite_reason import sqlite_reason

IO_ERROR = sqlite3.OperationalError("disk I/O error")


def _full(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the probe meets on a full disk."""

    def no_space(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", no_space)


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = f"{tmp_path}/{FILE_NAME}"
    assert sqlite_reason(place, IO_ERROR) == f"{place}: disk I/O error"
    _full(monkeypatch)
    assert sqlite_reason(place, IO_ERROR) == (
        f"{place}: No space left on device (SQLite says: disk I/O error); make room on this disk,"
        " or make it writable"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    reason = sqlite_reason(f"{tmp_path}/none/{FILE_NAME}", IO_ERROR)
    assert "No such file or directory" in reason


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_a_folder_in_the_place_of_a_file_is_named(tmp_path: Path, suffix: str) -> None:
    place = f"{tmp_path}/{FILE_NAME}"
    Path(place + suffix).mkdir()
    assert sqlite_reason(place, IO_ERROR).startswith(f"{place}{suffix} is a folder; rename it")


def test_a_tree_in_memory_has_no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    _full(monkeypatch)
    assert sqlite_reason(":memory:", IO_ERROR) == ":memory:: disk I/O error"


def test_a_store_that_cannot_open_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise IO_ERROR

    monkeypatch.setattr(sqlite3, "connect", refuse)
    monkeypatch.setattr(tempfile, "TemporaryFile", _no_file)
    with pytest.raises(StoreError, match=r"coordination\.sqlite: No space left on device"):
        EmbeddedStore(tmp_path)


def _no_file(**_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_a_call_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(store: EmbeddedStore) -> int:
        raise IO_ERROR

    monkeypatch.setattr(EmbeddedStore, "new_session", fail)
    monkeypatch.setattr(tempfile, "TemporaryFile", _no_file)
    tree = EmbeddedTree(tmp_path)
    with pytest.raises(StoreError, match=r"coordination\.sqlite: No space left on device"):
        await tree.connect()
    await tree.close()
