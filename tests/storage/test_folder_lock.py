"""One process on a folder, and what the lock proves about others."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ottla.log.errors import DataFolderError
from ottla.storage import folder_lock
from ottla.storage.folder_lock import FILE_NAME, FolderLock


def test_a_folder_has_one_holder_at_a_time(tmp_path: Path) -> None:
    held = FolderLock.take(str(tmp_path))
    with pytest.raises(DataFolderError, match="in use by another broker"):
        FolderLock.take(str(tmp_path))
    held.release()
    held.release()
    FolderLock.take(str(tmp_path)).release()


def test_the_identity_is_that_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    boot = tmp_path / "boot"
    boot.write_text("this boot\n")
    monkeypatch.setattr(folder_lock, "BOOT_ID", str(boot))
    folder, copy, moved = tmp_path / "folder", tmp_path / "copy", tmp_path / "moved"
    folder.mkdir()
    first = FolderLock.take(str(folder))
    first.release()
    shutil.copytree(folder, copy)
    folder.rename(moved)
    for place, is_same in ((moved, True), (copy, False)):
        lock = FolderLock.take(str(place))
        assert (lock.identity == first.identity) is is_same
        lock.release()
    assert first.identity is not None
    (moved / FILE_NAME).rename(moved / "kept")  # its inode cannot be taken again
    replaced = FolderLock.take(str(moved))
    assert replaced.identity != first.identity
    replaced.release()


def test_another_boot_has_another_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for boot in ("one", "two", "", None):
        path = tmp_path / f"boot {boot}"
        if boot is not None:
            path.write_text(f"{boot}\n")
        monkeypatch.setattr(folder_lock, "BOOT_ID", str(path))
        lock = FolderLock.take(str(tmp_path))
        found.append(lock.identity)
        lock.release()
    assert found[0] != found[1]
    assert found[2:] == [None, None]


def test_a_lock_that_was_deleted_or_replaced_is_noticed(tmp_path: Path) -> None:
    lock = FolderLock.take(str(tmp_path))
    assert lock.is_there
    (tmp_path / FILE_NAME).rename(tmp_path / "kept")
    assert not lock.is_there
    (tmp_path / FILE_NAME).touch()
    assert not lock.is_there
    lock.release()
