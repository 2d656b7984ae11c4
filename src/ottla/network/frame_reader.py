"""Splits a stream of bytes into frames: a size of four bytes, then that many bytes.

Pure: it takes bytes and returns frames, so that any transport can feed it. Small frames are copied
out of the read buffer, all of one read at once. An incomplete large frame gets a buffer of its own,
and the transport can read the rest directly into it (`room`). That buffer grows as the bytes
arrive, so a size alone allocates no memory.

A request's type, its first two bytes, decides how large its frame may be. So a large frame is
begun only when they are there.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final

from ottla.protocol.primitives import Buffer

FIRST_ALLOCATION_BYTES: Final = 2 << 20
"""At most so much is allocated for a frame at first; it grows only as the bytes arrive."""
MAX_GROWTH_BYTES: Final = 2 << 20
"""Of a frame's memory at once: one or two milliseconds, nearly all of it for the kernel to find
memory. The C library moves such large blocks without copying them.
"""
MIN_ALLOCATION_BYTES: Final = 64 << 10
AHEAD: Final = 8
"""The first allocation has room for so many times the bytes that came: the first read of a client
that sends its whole frame has 64 KiB and more."""
LARGE_BYTES: Final = 1 << 20
"""A frame above this size is checked against the limit of its type."""
COPIED_BYTES: Final = 4096
"""A frame up to this size is copied out of the read buffer."""

_SIZE_BYTES: Final = 4
_KEY_BYTES: Final = 2
_size_at: Final = Struct(">i").unpack_from
_key_at: Final = Struct(">h").unpack_from


class FrameReader:
    """The frames of one stream, without their sizes, in memory that nothing else writes to."""

    __slots__ = (
        "_allocated",
        "_filled",
        "_frame",
        "_frame_bytes",
        "_limit_of",
        "_min_bytes",
        "_rest",
        "bad_size",
        "max_bytes",
    )

    def __init__(
        self,
        *,
        min_bytes: int,
        max_bytes: int,
        limit_of: Callable[[int], int] | None = None,
        allocated: Callable[[int], None] | None = None,
    ) -> None:
        """`limit_of` has the largest frame of each request type, if the frames are requests.
        `allocated` is called with the bytes of each new buffer for an incomplete frame.
        """
        self._limit_of = limit_of
        self._allocated = allocated
        self._min_bytes = min_bytes
        self.max_bytes = max_bytes
        """The largest frame; it may change between two."""
        self._rest = b""
        self._frame: bytearray | None = None
        self._frame_bytes = 0
        self._filled = 0
        self.bad_size: int | None = None
        """A size out of bounds. The rest of the stream cannot be read: it must end."""

    @property
    def room(self) -> memoryview | None:
        """Where the next bytes belong; None if they may go to any buffer, for `feed`."""
        frame = self._frame
        if frame is None:
            return None
        if self._filled == len(frame):
            more = min(self._frame_bytes - len(frame), len(frame), MAX_GROWTH_BYTES)
            try:
                frame += bytes(more)
            except BufferError:  # somebody still holds the room before
                frame = self._frame = frame + bytes(more)
            if self._allocated is not None:
                self._allocated(more)
        return memoryview(frame)[self._filled :]

    @property
    def held_bytes(self) -> int:
        """The memory of the incomplete frame."""
        return 0 if self._frame is None else len(self._frame)

    @property
    def is_full(self) -> bool:
        """The incomplete frame is large, and must grow before more can be read."""
        frame = self._frame
        return frame is not None and FIRST_ALLOCATION_BYTES <= len(frame) == self._filled

    def filled(self, count: int) -> list[Buffer]:
        """`count` bytes were read into `room`. Returns the frame that they complete, if any."""
        frame = self._frame
        assert frame is not None
        self._filled += count
        if self._filled == self._frame_bytes:
            self._frame = None
            return [memoryview(frame).toreadonly()]
        return []

    def feed(self, read: Buffer) -> list[Buffer]:
        """The frames that these bytes complete. `read` may change afterwards."""
        frames: list[Buffer] = []
        while (room := self.room) is not None and read:
            count = min(len(room), len(read))
            room[:count] = read[:count]
            room.release()
            frames += self.filled(count)
            read = read[count:]
        if not read or self.bad_size is not None:
            return frames
        data = self._rest + bytes(read)
        view = memoryview(data)
        position, end = 0, len(data)
        while end - position >= _SIZE_BYTES:
            (size,) = _size_at(data, position)
            if not self._min_bytes <= size <= self.max_bytes:
                self.bad_size = size
                break
            begin = position + _SIZE_BYTES
            if size > LARGE_BYTES and self._limit_of is not None:
                if end - begin < _KEY_BYTES:
                    break
                (key,) = _key_at(data, begin)
                if size > self._limit_of(key):
                    self.bad_size = size
                    break
            position = begin + size
            if position > end:
                self._begin_frame(size, data[begin:])
                self._rest = b""
                return frames
            # A view keeps the whole read in memory: only a large frame is worth that.
            whole = view if size > COPIED_BYTES else data
            frames.append(whole[begin:position])
        self._rest = data[position:]
        return frames

    def _begin_frame(self, size: int, start: bytes) -> None:
        self._frame_bytes = size
        ahead = min(max(MIN_ALLOCATION_BYTES, AHEAD * len(start)), FIRST_ALLOCATION_BYTES)
        self._frame = bytearray(min(size, max(ahead, len(start) + 1)))
        self._frame[: len(start)] = start
        self._filled = len(start)
        if self._allocated is not None:
            self._allocated(len(self._frame))

    def forget(self) -> None:
        """The stream has ended: drops the incomplete frame."""
        self._frame = None
        self._rest = b""
