"""Deletes files some time after they were renamed (`file.delete.delay.ms`)."""

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Removal:
    """Renamed files or folders to delete. `run()` can be called in any thread after `delay_ms`.

    Crash before it: the next start removes them, because their names mark them as deleted.
    """

    paths: tuple[str, ...]
    delay_ms: int

    def __add__(self, other: "Removal") -> "Removal":
        return Removal(self.paths + other.paths, max(self.delay_ms, other.delay_ms))

    def run(self) -> None:
        for path in self.paths:
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(FileNotFoundError):
                    os.unlink(path)
