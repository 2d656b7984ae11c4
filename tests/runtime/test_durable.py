"""Durable data with and without Linux's calls."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from ottla.runtime.durable import reserve, sync_data


@pytest.fixture
def fd(tmp_path: Path) -> int:
    file = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    os.write(file, b"records")
    return file


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was called, on a system like macOS."""
    made: list[str] = []
    monkeypatch.delattr(os, "fdatasync")
    monkeypatch.setattr(os, "fsync", lambda fd: made.append("fsync"))
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", lambda fd, number: made.append(f"fcntl {number}"))
    return made


def test_linux_syncs_the_data(fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    monkeypatch.setattr(os, "fdatasync", made.append)
    sync_data(fd)
    assert made == [fd]


def test_macos_waits_for_the_drive(fd: int, calls: list[str]) -> None:
    sync_data(fd)
    assert calls == ["fcntl 51"]


def test_other_systems_and_file_systems_use_fsync(
    fd: int, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_fd: int, _number: int) -> None:
        raise OSError(errno.ENOTSUP, "not here")

    monkeypatch.setattr(fcntl, "fcntl", refused)
    sync_data(fd)
    monkeypatch.delattr(fcntl, "F_FULLFSYNC")
    sync_data(fd)
    assert calls == ["fsync", "fsync"]


def test_a_disk_error_is_not_hidden(
    fd: int, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_fd: int, _number: int) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(fcntl, "fcntl", broken)
    with pytest.raises(OSError, match="broken"):
        sync_data(fd)
    assert calls == []


@pytest.mark.parametrize("linux", [True, False])
def test_reserving_extends_a_file_and_never_cuts_it(
    fd: int, linux: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not linux:
        monkeypatch.delattr(os, "posix_fallocate")
    reserve(fd, 4096)
    assert os.fstat(fd).st_size == 4096
    reserve(fd, 10)
    assert os.fstat(fd).st_size == 4096
    assert os.pread(fd, 7, 0) == b"records"
