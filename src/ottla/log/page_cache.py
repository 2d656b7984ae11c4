"""Reads that do not wait for a disk: from the page cache, into reused buffers.

`preadv2` with RWF_NOWAIT (Linux 4.14) returns what is in the page cache, and EAGAIN if nothing is.
A system or file system without it is treated as if nothing were cached: such reads run in a thread.

A new buffer of a megabyte costs as much as reading it from the page cache, because the kernel maps
its pages again each time. So large buffers are kept here. A buffer is free once nobody holds a view
of it. bytearray itself knows this: it cannot be resized until then.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Final, TypeAlias

MIN_POOLED_BYTES: Final = 64 << 10
MAX_POOLED_BYTES: Final = 1 << 20
"""Smaller buffers cost little. Larger ones are rare: consumers and followers ask for 1 MiB of a
partition by default."""
MAX_KEPT_BYTES: Final = 4 << 20
"""Limit for all kept buffers together."""

Pread: TypeAlias = Callable[[int, int, int], bytes | bytearray]
"""os.pread, or one that does not wait: descriptor, size in bytes, position."""

_NOWAIT: Final = getattr(os, "RWF_NOWAIT", None)
_UNSUPPORTED: Final = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


def read_cached(fd: int, buffer: memoryview, position: int) -> int:
    """Read only from the page cache, starting at `position`; returns how many bytes were read.

    Raises OSError.
    """
    if _NOWAIT is None:
        return 0
    try:
        return os.preadv(fd, [buffer], position, _NOWAIT)
    except BlockingIOError:
        return 0
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return 0
        raise


class NotCachedError(Exception):
    """The data is not in the page cache, or the system cannot tell: read it in a thread."""


def pread_cached(fd: int, size_bytes: int, position: int) -> bytearray:
    """Like os.pread, but only from the page cache. Raises NotCachedError, OSError."""
    buffer = bytearray(size_bytes)
    if read_cached(fd, memoryview(buffer), position) < size_bytes:
        raise NotCachedError
    return buffer


def read_fully(fd: int, buffer: memoryview, position: int) -> int:
    """Fill the buffer, up to the end of the file; returns the bytes read. Raises OSError."""
    done = 0
    while done < len(buffer):
        count = os.preadv(fd, [buffer[done:]], position + done)
        if count == 0:
            break
        done += count
    return done


class ReadBuffers:
    """Use it only on the event loop's thread. The views can be used in any thread."""

    def __init__(self, max_kept_bytes: int = MAX_KEPT_BYTES) -> None:
        self._max_kept_bytes = max_kept_bytes
        self._kept_bytes = 0
        self._kept: dict[int, list[bytearray]] = {}

    def get(self, size_bytes: int) -> memoryview:
        """A view of this size with arbitrary content. The buffer is free again when neither the
        view nor a slice of it is held.
        """
        if size_bytes <= MIN_POOLED_BYTES or size_bytes > MAX_POOLED_BYTES:
            return memoryview(bytearray(size_bytes))
        length = 1 << (size_bytes - 1).bit_length()
        kept = self._kept.setdefault(length, [])
        for buffer in kept:
            if _is_free(buffer):
                return memoryview(buffer)[:size_bytes]
        buffer = bytearray(length)
        if self._kept_bytes + length <= self._max_kept_bytes:
            self._kept_bytes += length
            kept.append(buffer)
        return memoryview(buffer)[:size_bytes]


def _is_free(buffer: bytearray) -> bool:
    try:
        buffer.append(buffer.pop())
    except BufferError:
        return False
    return True
