"""The kernel's part of a simulated disk: which bytes are synced, and which are in the page cache.

A killed process loses nothing that it wrote, because the kernel keeps its pages. A power failure
loses unsynced bytes, so a log may end at any byte after the last sync. A read that must not wait
for the disk gets all of its bytes, or some, or none. A full disk takes the first bytes of a write,
and then none.
"""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final

from ottla.storage import folder_lock
from simulation.process import CURRENT

COLD_READS: Final = 0.1
"""The share of reads whose bytes are not all in the page cache."""


REPLACED: Final = ("leader-epoch-checkpoint", "*.snapshot")
"""Files that are written under another name, and then renamed."""


class PageCache:
    """Decides which reads find their bytes in the page cache; files in memory cannot tell."""

    def __init__(self, random: Random) -> None:
        self._random = random

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Carry out RWF_NOWAIT for every `preadv` of this process."""
        original = os.preadv

        def preadv(fd: int, buffers: Sequence[memoryview], position: int, flags: int = 0) -> int:
            if not flags & os.RWF_NOWAIT:
                return original(fd, buffers, position, flags)
            if self._random.random() >= COLD_READS:
                return original(fd, buffers, position)
            (buffer,) = buffers
            count = self._random.randrange(len(buffer) + 1)
            if not count:
                raise BlockingIOError(errno.EAGAIN, "nothing is in the page cache")
            return original(fd, [buffer[:count]], position)

        os.preadv = preadv  # type: ignore[assignment]
        try:
            yield
        finally:
            os.preadv = original


class FullDisks:
    """Disks without space, by the host of their broker: its log and indexes cannot grow."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._full: dict[str, bool] = {}
        """Whether the disk still takes the first bytes of a write."""
        self.were_full = False
        """Some disk was full at some time."""

    def fill(self, host: str) -> None:
        """There is no space from now on."""
        self._full[host] = self.were_full = True

    def empty(self, host: str) -> None:
        """There is space again."""
        self._full.pop(host, None)

    def has_space(self, host: str) -> bool:
        """Whether writes of this host succeed."""
        return host not in self._full

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Refuse the writes of processes whose disk is full."""
        originals = os.pwritev, os.pwrite, os.posix_fallocate

        def pwritev(fd: int, buffers: Sequence[memoryview], position: int) -> int:
            left = self._left(sum(map(len, buffers)))
            if left is None:
                return originals[0](fd, buffers, position)
            return originals[1](fd, b"".join(buffers)[:left], position)

        def pwrite(fd: int, data: bytes, position: int) -> int:
            left = self._left(len(data))
            return originals[1](fd, data if left is None else data[:left], position)

        def posix_fallocate(fd: int, position: int, size: int) -> None:
            if os.fstat(fd).st_size < position + size:
                self._left(0)
            originals[2](fd, position, size)

        os.pwritev, os.pwrite = pwritev, pwrite  # type: ignore[assignment]
        os.posix_fallocate = posix_fallocate
        try:
            yield
        finally:
            os.pwritev, os.pwrite, os.posix_fallocate = originals

    def _left(self, size_bytes: int) -> int | None:
        """How much of a write the disk of this process takes; None: all of it. Raises OSError."""
        process = CURRENT.get(None)
        if not self._full or process is None or process.host not in self._full:
            return None
        takes_some, self._full[process.host] = self._full[process.host], False
        if takes_some and size_bytes > 1:
            return self._random.randrange(1, size_bytes)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextmanager
def locks_by_folder() -> Iterator[None]:
    """Identify the lock of a data folder by the folder's name: an inode differs from run to run,
    and is in the broker's registration."""
    original = folder_lock.identity_of
    folder_lock.identity_of = lambda path: f"simulated/{Path(path).parent.name}"
    try:
        yield
    finally:
        folder_lock.identity_of = original


class SyncedSizes:
    """The size of each file when it was last synced, by inode."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Record every `fsync` and `fdatasync` of this process instead of running it."""
        originals = os.fsync, os.fdatasync

        def sync(fd: int) -> None:
            status = os.fstat(fd)
            self._sizes[status.st_ino] = status.st_size

        os.fsync = os.fdatasync = sync  # type: ignore[assignment]
        try:
            yield
        finally:
            os.fsync, os.fdatasync = originals

    def synced_bytes(self, path: str) -> int:
        """The size of a file at its last sync; 0 if the file is gone."""
        try:
            status = os.stat(path)
        except FileNotFoundError:
            return 0
        return min(self._sizes.get(status.st_ino, 0), status.st_size)

    def cut_unsynced(self, folder: Path, random: Random) -> list[str]:
        """Truncate each segment at a random size, at least its synced one; return what was cut."""
        cut = []
        for path in sorted(folder.glob("*/*.log")):
            status, synced = path.stat(), self.synced_bytes(str(path))
            size = random.randint(synced, status.st_size)
            if size < status.st_size:
                os.truncate(path, size)
                cut.append(f"{path.parent.name}/{path.name} at {size} of {status.st_size}")
        return cut

    def empty_unsynced(self, folder: Path, random: Random) -> list[str]:
        """Empty half of the files that were replaced without a sync; return their names. On some
        file systems the name comes to the disk before the content.
        """
        emptied = []
        for path in sorted(itertools.chain(*(folder.glob(f"*/{each}") for each in REPLACED))):
            if self.synced_bytes(str(path)) < path.stat().st_size and random.random() < 0.5:
                os.truncate(path, 0)
                emptied.append(f"{path.parent.name}/{path.name}")
        return emptied
