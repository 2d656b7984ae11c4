"""Cuts a stream of bytes into frames: four bytes of size, then as many bytes, and so on.

Small frames are read into a scratch buffer, many at once, and copied out of it. A frame that is not
whole by then gets a buffer of its own, into which the rest is read straight; it grows as the bytes
arrive, so a size alone takes no memory.
"""

from __future__ import annotations

import asyncio
from struct import Struct
from typing import Final

FIRST_ALLOCATION_BYTES: Final = 2 << 20
"""A frame gets this much room at first, and more only as its bytes really arrive."""

_SIZE_BYTES: Final = 4
_size_at: Final = Struct(">i").unpack_from


class FrameStream(asyncio.BufferedProtocol):
    """The base of what reads frames: it is told each with `received`, without its size."""

    __slots__ = (
        "_filled",
        "_frame",
        "_frame_bytes",
        "_max_bytes",
        "_min_bytes",
        "_rest",
        "_scratch",
    )  # fmt: skip

    def __init__(self, scratch: memoryview, *, min_bytes: int, max_bytes: int) -> None:
        """`scratch` may serve many connections: nothing stays in it between two reads."""
        self._scratch = scratch
        self._min_bytes = min_bytes
        self._max_bytes = max_bytes
        self._rest = b""
        self._frame: bytearray | None = None
        self._frame_bytes = 0
        self._filled = 0

    def received(self, frame: memoryview) -> None:
        """A whole frame, in memory of its own."""
        raise NotImplementedError

    def refused(self, size_bytes: int) -> None:
        """A size out of bounds: what follows cannot be read, and the connection is to end."""
        raise NotImplementedError

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._frame is not None:
            return memoryview(self._frame)[self._filled :]
        return self._scratch

    def buffer_updated(self, count: int) -> None:
        if self._frame is None:
            self._cut(self._scratch[:count])
            return
        self._filled += count
        if self._filled == self._frame_bytes:
            frame, self._frame = self._frame, None
            self.received(memoryview(frame))
        elif self._filled == len(self._frame):
            larger = bytearray(min(self._frame_bytes, 2 * len(self._frame)))
            larger[: self._filled] = self._frame
            self._frame = larger

    def forget(self) -> None:
        """The connection is over: what came of a frame is of no use."""
        self._frame = None

    def _cut(self, data: memoryview | bytes) -> None:
        if self._rest:
            data, self._rest = self._rest + data, b""
        position, end = 0, len(data)
        while end - position >= _SIZE_BYTES:
            (size,) = _size_at(data, position)
            if not self._min_bytes <= size <= self._max_bytes:
                self.refused(size)
                return
            position += _SIZE_BYTES
            if end - position < size:
                self._begin_frame(size, data[position:])
                return
            self.received(memoryview(bytes(data[position : position + size])))
            position += size
        self._rest = bytes(data[position:])

    def _begin_frame(self, size: int, start: memoryview | bytes) -> None:
        self._frame_bytes = size
        self._frame = bytearray(min(size, max(FIRST_ALLOCATION_BYTES, len(start) + 1)))
        self._frame[: len(start)] = start
        self._filled = len(start)
