import os
from pathlib import Path

import pytest

from ottla.log import file_range
from ottla.log.file_range import EMPTY, FileRange, RangeRead
from ottla.log.open_file import OpenFile
from ottla.log.page_cache import ReadBuffers


@pytest.fixture
def held(tmp_path: Path) -> FileRange:
    (tmp_path / "f").write_bytes(b"0123456789")
    return FileRange(OpenFile(str(tmp_path / "f")), 3, 4)


def test_a_range_is_a_piece_of_a_file_that_stays_open(held: FileRange, tmp_path: Path) -> None:
    os.unlink(tmp_path / "f")
    assert held.read() == held.read() == b"3456"


def test_nothing_is_a_range_too() -> None:
    assert (EMPTY.read(), EMPTY.size_bytes) == (b"", 0)
    empty = EMPTY.begin(ReadBuffers())
    assert isinstance(empty, memoryview)
    assert bytes(empty) == b""


@pytest.mark.parametrize("cached", [0, 1, 3])
def test_what_is_not_cached_is_read_later(
    held: FileRange, monkeypatch: pytest.MonkeyPatch, cached: int
) -> None:
    def some(fd: int, buffer: memoryview, position: int) -> int:
        return os.preadv(fd, [buffer[:cached]], position) if cached else 0

    monkeypatch.setattr(file_range, "read_cached", some)
    read = held.begin(ReadBuffers())
    assert isinstance(read, RangeRead)
    read.finish()
    assert bytes(read.data) == b"3456"


def test_a_file_that_was_cut_meanwhile_gives_fewer_bytes(
    held: FileRange, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(file_range, "read_cached", lambda fd, buffer, position: 0)
    read = held.begin(ReadBuffers())
    assert isinstance(read, RangeRead)
    os.truncate(tmp_path / "f", 5)
    read.finish()
    assert bytes(read.data) == b"34"


def test_data_dropped_from_the_page_cache_is_read_whole(tmp_path: Path) -> None:
    content = os.urandom(300_000)
    (tmp_path / "f").write_bytes(content)
    file = OpenFile(str(tmp_path / "f"))
    os.fsync(file.fd)
    os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_DONTNEED)
    buffers = ReadBuffers()
    first = whole(FileRange(file, 100, 200_000).begin(buffers))
    assert first == content[100:200_100]
    second = whole(FileRange(file, 200, 200_000).begin(buffers))
    assert second == content[200:200_200]
    assert first == content[100:200_100], "its buffer was in use still"


def whole(read: memoryview | RangeRead) -> memoryview:
    if isinstance(read, memoryview):
        return read
    read.finish()
    return read.data
