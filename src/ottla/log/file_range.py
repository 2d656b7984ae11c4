"""The result of a read: a range of an open file, not its bytes."""

from __future__ import annotations

import os

from ottla.log.open_file import OpenFile
from ottla.log.page_cache import ReadBuffers, read_cached, read_fully


class FileRange:
    """`size_bytes` bytes at `position` of a segment file. Keeps the file open, so that it can be
    read at any later time.

    It begins with a whole batch; the last one may be incomplete.
    """

    __slots__ = ("_file", "base_offset", "position", "size_bytes")

    def __init__(
        self, file: OpenFile | None, position: int, size_bytes: int, base_offset: int = 0
    ) -> None:
        """`base_offset` is the segment's."""
        self._file = file
        self.position = position
        self.size_bytes = size_bytes
        self.base_offset = base_offset

    def read(self) -> bytes:
        """The bytes. Waits for the disk. Can be called in any thread. Raises OSError."""
        if self._file is None:
            return b""
        return os.pread(self._file.fd, self.size_bytes, self.position)

    def begin(self, buffers: ReadBuffers) -> memoryview | RangeRead:
        """The bytes if all are in the page cache, else a read that must be finished. Raises
        OSError.
        """
        view = buffers.get(self.size_bytes)
        if self._file is None:
            return view
        done = read_cached(self._file.fd, view, self.position)
        if done == self.size_bytes:
            return view
        return RangeRead(self._file, self.position, view, done)


class RangeRead:
    """A range that is read from the disk. `data` has its bytes after `finish`."""

    __slots__ = ("_done", "_file", "_position", "data")

    def __init__(self, file: OpenFile, position: int, data: memoryview, done: int) -> None:
        self._file = file
        self._position = position
        self._done = done
        self.data = data

    def finish(self) -> None:
        """Read the rest, and let the kernel read ahead as much again: a consumer of old records
        needs that next. Waits for the disk: call it in a worker thread. Raises OSError.

        Returns fewer bytes if the file was truncated in the meantime.
        """
        fd, size_bytes = self._file.fd, len(self.data)
        done = self._done + read_fully(fd, self.data[self._done :], self._position + self._done)
        self.data = self.data[:done]
        if hasattr(os, "posix_fadvise"):
            next_position = self._position + size_bytes
            os.posix_fadvise(fd, next_position, size_bytes, os.POSIX_FADV_WILLNEED)


EMPTY = FileRange(None, 0, 0)
