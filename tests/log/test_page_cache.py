import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.log import page_cache
from ottla.log.page_cache import MAX_POOLED_BYTES, ReadBuffers, read_cached, read_fully


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "f").write_bytes(b"0123456789")
    opened = os.open(tmp_path / "f", os.O_RDONLY)
    yield opened
    os.close(opened)


def test_the_file_is_read_as_far_as_it_goes(fd: int) -> None:
    buffer = memoryview(bytearray(8))
    assert read_fully(fd, buffer, 1) == 8
    assert bytes(buffer) == b"12345678"
    assert read_fully(fd, buffer, 7) == 3
    assert bytes(buffer[:3]) == b"789"
    assert read_cached(fd, buffer, 0) in (0, 8)


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (BlockingIOError(errno.EAGAIN, "not cached"), False),
        (OSError(errno.EOPNOTSUPP, "not on this file system"), False),
        (OSError(errno.EIO, "broken"), True),
    ],
)
def test_nothing_is_cached_where_the_system_cannot_tell(
    fd: int, monkeypatch: pytest.MonkeyPatch, error: OSError, raised: bool
) -> None:
    def fails(*_: object) -> int:
        raise error

    monkeypatch.setattr(page_cache, "_NOWAIT", 8)
    monkeypatch.setattr(os, "preadv", fails)
    buffer = memoryview(bytearray(8))
    if raised:
        with pytest.raises(OSError, match="broken"):
            read_cached(fd, buffer, 0)
    else:
        assert read_cached(fd, buffer, 0) == 0
    monkeypatch.setattr(page_cache, "_NOWAIT", None)
    assert read_cached(fd, buffer, 0) == 0


def test_a_buffer_is_used_again_once_nobody_holds_a_view_of_it() -> None:
    buffers = ReadBuffers()
    first = buffers.get(200_000)
    assert len(first) == 200_000
    owner, part = first.obj, memoryview(first)[:10]
    del first
    assert buffers.get(200_000).obj is not owner, "a part of it is still held"
    del part
    assert buffers.get(150_000).obj is owner


def test_small_and_huge_buffers_and_too_many_are_not_kept() -> None:
    buffers = ReadBuffers(max_kept_bytes=MAX_POOLED_BYTES)
    for size_bytes in (0, 100, MAX_POOLED_BYTES + 1):
        view = buffers.get(size_bytes)
        assert len(view) == size_bytes
    assert buffers._kept_bytes == 0
    held = [buffers.get(MAX_POOLED_BYTES) for _ in range(3)]
    assert buffers._kept_bytes == MAX_POOLED_BYTES
    assert len({id(each.obj) for each in held}) == 3
