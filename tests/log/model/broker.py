"""One broker with one partition: the log is opened, checkpointed and stopped as a node does it."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Final
from uuid import UUID

from ottla.log.checkpoint import parse_offsets
from ottla.log.config import LogConfig
from ottla.log.flush import FlushTask
from ottla.log.log import Log
from ottla.log.names import folder_name
from ottla.log.removal import Removal
from ottla.storage.checkpoint_files import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from ottla.storage.log_store import LogStore

TOPIC, INDEX = "t", 0
NAME: Final = (TOPIC, INDEX)
TOPIC_ID: Final = UUID(int=1)


class Broker:
    """The process. After `open` it has a log, until it is stopped or killed."""

    log: Log
    store: LogStore

    def __init__(self, root: Path, config: LogConfig) -> None:
        self.root = root
        self.config = config
        self.folder = root / folder_name(TOPIC, INDEX)
        self.removals: list[Removal] = []
        self.starts = 0

    def open(self, now_ms: int, max_open_files: int) -> None:
        """Start: opens the log, or creates it if it never had a record."""
        self.starts += 1
        self.store = LogStore.open(
            self.root, node_id=1, random=Random(self.starts), max_open_files=max_open_files
        )
        self.removals = []
        self.store.open_logs(lambda _: self.config, now_ms)
        if NAME not in self.store.logs:
            self.store.create(TOPIC, INDEX, self.config, TOPIC_ID, now_ms)
        self.log = self.store.logs[NAME]

    def kill(self) -> None:
        """The process ends. Its memory is lost, and nothing else."""
        self.store.release()

    def stop(self, high_watermark: int) -> None:
        """An orderly stop. Raises ApiError."""
        self.store.close({NAME: high_watermark})

    def checkpoint(self, high_watermark: int) -> None:
        """`LogMaintenance.checkpoint`, without its flush. Raises ApiError."""
        self.store.checkpoint({NAME: high_watermark}).run()

    @property
    def start_checkpoint(self) -> int:
        """What a start after a crash knows of the log's start."""
        return self._checkpointed(LOG_STARTS)

    @property
    def high_watermark_checkpoint(self) -> int:
        return self._checkpointed(HIGH_WATERMARKS)

    @property
    def recovery_point_checkpoint(self) -> int:
        return self._checkpointed(RECOVERY_POINTS)

    def _checkpointed(self, name: str) -> int:
        path = self.root / name
        if not path.exists():
            return 0
        return parse_offsets(path.read_bytes(), name).by_partition.get(NAME, 0)

    def flush(self) -> None:
        task = FlushTask(self.log)
        task.run()
        task.apply()

    def remove_later(self, removal: Removal | None) -> None:
        if removal is not None:
            self.removals.append(removal)

    @property
    def clean_offset(self) -> int | None:
        return self.store.cleaner_offsets.get(NAME)

    @clean_offset.setter
    def clean_offset(self, offset: int) -> None:
        self.store.cleaner_offsets[NAME] = offset
