"""The disk of a broker whose process is `faults.broker`: its next sync fails, its power fails."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

from faults.broker import FAIL, SYNCED


class ControlledDisk:
    """`folder` is for the files between a test and the process, `data` is the broker's folder."""

    def __init__(self, folder: Path, data: Path) -> None:
        self._folder = folder
        self._data = data
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def program(self) -> tuple[str, ...]:
        """Python's arguments, for `BrokerProcess.program`."""
        return ("-m", "faults.broker", str(self._folder), "serve")

    def fail_next_sync(self) -> None:
        """The next sync of a segment fails, once."""
        (self._folder / FAIL).touch()

    @property
    def has_failed(self) -> bool:
        """Since the last call of `fail_next_sync`."""
        return not (self._folder / FAIL).exists()

    def fail_no_more(self) -> None:
        """What has not failed yet does not fail."""
        (self._folder / FAIL).unlink(missing_ok=True)

    def lose_unsynced(self, random: Random) -> int:
        """The broker was killed, as by a power failure: truncate each segment at a random size, at
        least its size at the last sync. Returns how many bytes are gone."""
        synced = self._synced()
        lost = 0
        for path in sorted(self._data.glob("*/*.log")):
            status = path.stat()
            size = random.randint(min(synced.get(status.st_ino, 0), status.st_size), status.st_size)
            os.truncate(path, size)
            lost += status.st_size - size
        return lost

    def _synced(self) -> dict[int, int]:
        """The largest synced size of each segment, by inode."""
        sizes: dict[int, int] = {}
        for line in (self._folder / SYNCED).read_text().splitlines():
            inode, size = map(int, line.split())
            sizes[inode] = max(size, sizes.get(inode, 0))
        return sizes
