"""Deleting files some time after nobody can find them any more (`file.delete.delay.ms`)."""

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Removal:
    """Renamed files or folders that are to go. `run()` may be called in any thread once `delay_ms`
    is over.

    Crash before it: the next start removes them, as their names say that they are deleted.
    """

    paths: tuple[str, ...]
    delay_ms: int

    def run(self) -> None:
        for path in self.paths:
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(FileNotFoundError):
                    os.unlink(path)
