"""What a read of a log answers: a piece of an open file, not its bytes."""

from __future__ import annotations

import os

from ottla.log.open_file import OpenFile
from ottla.log.page_cache import ReadBuffers, read_cached, read_fully


class FileRange:
    """`size_bytes` bytes at `position` of a segment file. Holds the file open, so it can be read at
    any later time.

    It begins with a whole batch; the last one may be cut off.
    """

    __slots__ = ("_file", "position", "segment_offset", "size_bytes")

    def __init__(
        self, file: OpenFile | None, segment_offset: int, position: int, size_bytes: int
    ) -> None:
        self._file = file
        self.segment_offset = segment_offset
        self.position = position
        self.size_bytes = size_bytes

    def read(self) -> bytes:
        """The bytes; waits for the disk. May be called in any thread. Raises OSError."""
        if self._file is None:
            return b""
        return os.pread(self._file.fd, self.size_bytes, self.position)

    def begin(self, buffers: ReadBuffers) -> memoryview | RangeRead:
        """The bytes where all are in the page cache, else a read that must be finished.

        Raises OSError.
        """
        view = buffers.get(self.size_bytes)
        if self._file is None:
            return view
        done = read_cached(self._file.fd, view, self.position)
        if done == self.size_bytes:
            return view
        return RangeRead(self._file, self.position, view, done)


class RangeRead:
    """A range that is read from the disk: `data` holds its bytes after `finish`."""

    __slots__ = ("_done", "_file", "_position", "data")

    def __init__(self, file: OpenFile, position: int, data: memoryview, done: int) -> None:
        self._file = file
        self._position = position
        self._done = done
        self.data = data

    def finish(self) -> None:
        """Reads the rest, and has the kernel read as much behind it: a consumer of old records
        asks for that next. Waits for the disk: for a worker thread. Raises OSError.

        A file that was cut meanwhile gives fewer bytes.
        """
        fd, size_bytes = self._file.fd, len(self.data)
        done = self._done + read_fully(fd, self.data[self._done :], self._position + self._done)
        self.data = self.data[:done]
        if hasattr(os, "posix_fadvise"):
            next_position = self._position + size_bytes
            os.posix_fadvise(fd, next_position, size_bytes, os.POSIX_FADV_WILLNEED)


EMPTY = FileRange(None, -1, 0, 0)
