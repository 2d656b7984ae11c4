"""The checkpoint files of a data folder, and what a start does without one of them.

A damaged file is no reason to refuse the start: what it says can be found in the logs, or is a
lower bound that is safe. Kafka logs a warning and goes on, too (LogManager.loadLogs), but notices
only files that cannot be parsed. A line says which file it was and what follows from it.

All of them are written together, the recovery points last; the high watermarks also alone. So a
folder that has recovery points has the other files, but for the cleaner's: Kafka writes that with
the first cleaning.
"""

import logging
from typing import Final

import crc32c

from ottla.log.checkpoint import PartitionName, parse_offsets
from ottla.log.errors import DataFolderError
from ottla.storage.clean_stop import CleanStop

logger = logging.getLogger("ottla.storage")

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"
ALL_FILES: Final = (LOG_STARTS, HIGH_WATERMARKS, CLEANER_OFFSETS, RECOVERY_POINTS)
"""In the order in which they are written."""

_CONSEQUENCES: Final = {
    RECOVERY_POINTS: "the end of each log is read from its segments, and after an unclean stop "
    "every batch is checked",
    LOG_STARTS: "each log begins with its first segment, so records deleted before may be read "
    "again until retention removes them",
    HIGH_WATERMARKS: "each partition finds its high watermark again when it has a leader",
    CLEANER_OFFSETS: "the cleaner begins again with each log's first segment",
}


class CheckpointFiles:
    """The checkpoints as a start finds them."""

    def __init__(self, root: str, stop: CleanStop | None) -> None:
        """`stop`: the mark of a clean stop, if there is one. Raises DataFolderError if a file
        cannot be read.
        """
        self._root = root
        self._stop = stop
        self.damaged: set[str] = set()
        """The names of the files that are damaged or missing."""
        self._proven: set[str] = set()
        contents = {name: self._content(name) for name in ALL_FILES}
        needed = {name for name in ALL_FILES if self._checksum(name) is not None}
        if contents[RECOVERY_POINTS] is not None:
            needed |= {LOG_STARTS, HIGH_WATERMARKS}
        if contents[LOG_STARTS] is not None:
            needed.add(RECOVERY_POINTS)
        self._offsets = {
            name: self._parse(name, content) if content is not None or name in needed else {}
            for name, content in contents.items()
        }

    def __getitem__(self, name: str) -> dict[PartitionName, int]:
        """The offsets of that file; none if it is damaged."""
        return self._offsets[name]

    def is_proven(self, name: str) -> bool:
        """Whether the file has a checksum, which is right."""
        return name in self._proven

    def _content(self, name: str) -> bytes | None:
        path = f"{self._root}/{name}"
        try:
            with open(path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DataFolderError(
                f"cannot read {path}: {error.strerror}; make it readable, or remove it:"
                f" then {_CONSEQUENCES[name]}"
            ) from None

    def _parse(self, name: str, content: bytes | None) -> dict[PartitionName, int]:
        try:
            if content is None:
                raise ValueError("it is missing")
            if self._checksum(name) not in (None, crc32c.crc32c(content)):
                raise ValueError("it is not as the last stop has written it")
            offsets, is_proven = parse_offsets(content, name)
            if is_proven:
                self._proven.add(name)
            return offsets
        except ValueError as error:
            self.damaged.add(name)
            logger.warning(
                "%s/%s is damaged (%s): %s", self._root, name, error, _CONSEQUENCES[name]
            )
            return {}

    def _checksum(self, name: str) -> int | None:
        return None if self._stop is None else self._stop.checksums.get(name)
