"""What a power failure leaves of a broker's files: all that was synced, and of the rest a part.

A killed process loses nothing that it wrote: the system keeps its pages. A power failure takes
what was not synced, so the tail of a log may end at any byte.
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
        """Note every `fsync` and `fdatasync` of this process; nothing really needs to be synced."""
        originals = os.fsync, os.fdatasync

        def sync(fd: int) -> None:
            status = os.fstat(fd)
            self._sizes[status.st_ino] = status.st_size

        os.fsync = os.fdatasync = sync  # type: ignore[assignment]
        try:
            yield
        finally:
            os.fsync, os.fdatasync = originals

    def cut_unsynced(self, folder: Path, random: Random) -> list[str]:
        """Cut each segment somewhere at or after its synced size; returns what was cut."""
        cut = []
        for path in sorted(folder.glob("*/*.log")):
            status = path.stat()
            synced = min(self._sizes.get(status.st_ino, 0), status.st_size)
            size = random.randint(synced, status.st_size)
            if size < status.st_size:
                os.truncate(path, size)
                cut.append(f"{path.parent.name}/{path.name} at {size} of {status.st_size}")
        return cut
