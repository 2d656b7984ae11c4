"""Deletes files some time after they were renamed (`file.delete.delay.ms`)."""

import logging
import os
import shutil
from dataclasses import dataclass

logger = logging.getLogger("ottla.logs")


@dataclass(frozen=True, slots=True)
class Removal:
    """Renamed files or folders to delete. `run()` can be called in any thread after `delay_ms`.

    Crash before it: the next start removes them, because their names mark them as deleted. So it
    does with what cannot be deleted now; one line says so for each path.
    """

    paths: tuple[str, ...]
    delay_ms: int

    def __add__(self, other: "Removal") -> "Removal":
        return Removal(self.paths + other.paths, max(self.delay_ms, other.delay_ms))

    def run(self) -> None:
        for path in self.paths:
            try:
                if os.path.isdir(path):
                    shutil.rmtree(path)
                else:
                    os.unlink(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                logger.warning(
                    "cannot delete %s: %s; the next start tries again", path, error.strerror
                )
