"""What a power failure leaves of a broker's files: all synced bytes and a part of the others.

A killed process loses nothing that it wrote, because the kernel keeps its pages. A power failure
loses unsynced bytes, so a log may end at any byte after the last sync.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random


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
