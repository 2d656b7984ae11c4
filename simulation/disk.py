"""The kernel's part of a simulated disk: which bytes are synced, and which are in the page cache.

A killed process loses nothing that it wrote, because the kernel keeps its pages. A power failure
loses unsynced bytes, so a log may end at any byte after the last sync. A read that must not wait
for the disk gets all of its bytes, or some, or none. A full disk takes the first bytes of a write,
and then none. A sync fails once: the kernel then takes the pages that it could not write for clean,
so the next sync of the file succeeds, and the bytes are on no disk.
"""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
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

    def __init__(self, note: Callable[[str], None] = lambda text: None) -> None:
        """`note` writes a line of the transcript."""
        self._note = note
        self._sizes: dict[int, int] = {}
        self._failing: dict[str, bool] = {}
        """Hosts whose next sync fails, and whether it has to be that of a log."""
        self._lost: set[int] = set()
        """Files that have lost pages in a failed sync: no later one brings them to the disk."""
        self.have_failed = False
        """Some sync failed at some time."""

    def fail_next(self, host: str, *, only_logs: bool) -> None:
        """The next sync of this host fails."""
        self._failing[host] = only_logs

    def fail_no_more(self) -> None:
        """What has not failed yet does not fail."""
        self._failing.clear()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Record every `fsync` and `fdatasync` of this process instead of running it."""
        originals = os.fsync, os.fdatasync

        def sync(fd: int) -> None:
            status = os.fstat(fd)
            if self._fails(fd):
                self._lost.add(status.st_ino)
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            if status.st_ino not in self._lost:
                self._sizes[status.st_ino] = status.st_size

        os.fsync = os.fdatasync = sync  # type: ignore[assignment]
        try:
            yield
        finally:
            os.fsync, os.fdatasync = originals

    def _fails(self, fd: int) -> bool:
        process = CURRENT.get(None)
        if not self._failing or process is None or process.host not in self._failing:
            return False
        path = os.readlink(f"/proc/self/fd/{fd}")
        if self._failing[process.host] and not path.endswith(".log"):
            return False
        del self._failing[process.host]
        self.have_failed = True
        self._note(f"{process.host}: the sync of {'/'.join(path.split('/')[-2:])} fails")
        return True

    def drop_lost(self, folder: Path) -> list[str]:
        """After the end of the process that uses the folder: the pages that a failed sync lost are
        no longer in the page cache either. Truncates these logs; returns what was cut."""
        cut = []
        for path in sorted(folder.glob("*/*.log")) if self._lost else ():
            status = path.stat()
            if status.st_ino in self._lost:
                self._lost.discard(status.st_ino)
                synced = self.synced_bytes(str(path))
                if synced < status.st_size:
                    os.truncate(path, synced)
                    cut.append(f"{path.parent.name}/{path.name} at {synced} of {status.st_size}")
        return cut

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
