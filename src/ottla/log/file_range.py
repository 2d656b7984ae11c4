"""What a read of a log answers: a piece of an open file, not its bytes."""

import os

from ottla.log.open_file import OpenFile


class FileRange:
    """`size_bytes` bytes at `position` of a segment file. Holds the file open, so it can be read at
    any later time.

    It begins with a whole batch; the last one may be cut off. `fd` is for sendfile.
    """

    __slots__ = ("_file", "position", "segment_offset", "size_bytes")

    def __init__(
        self, file: OpenFile | None, segment_offset: int, position: int, size_bytes: int
    ) -> None:
        self._file = file
        self.segment_offset = segment_offset
        self.position = position
        self.size_bytes = size_bytes

    @property
    def fd(self) -> int:
        """The open file; -1 for an empty range."""
        return -1 if self._file is None else self._file.fd

    def read(self) -> bytes:
        """The bytes; may be called in any thread. Raises OSError."""
        if self._file is None:
            return b""
        return os.pread(self._file.fd, self.size_bytes, self.position)


EMPTY = FileRange(None, -1, 0, 0)
