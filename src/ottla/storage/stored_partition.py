"""A partition as this room sees it: its log, and what retention and flushes need to know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from ottla.controller.image import PartitionState
from ottla.log.log import Log
from ottla.runtime.waiting import Watcher
from ottla.timelines.partition_timeline import Timeline


class StoredPartition(Protocol):
    """One partition on this broker."""

    topic: str
    index: int
    log: Log
    flushed_ms: int
    """When the log was last known to be on disk, on the monotonic clock."""
    waiters: dict[Watcher, None] | None

    @property
    def state(self) -> PartitionState | None:
        """As the controller last assigned it."""

    @property
    def high_watermark(self) -> int:
        """The offset after the last committed record."""

    def timeline_at(self, now_ms: int) -> Timeline:
        """The partition's history, with times; opened now if this is its first event."""

    async def flush(self) -> None:
        """Sync the log in a thread. Raises ApiError KAFKA_STORAGE_ERROR."""


class StoredPartitions(Protocol):
    """All partitions that are on this broker now."""

    def __iter__(self) -> Iterator[StoredPartition]: ...

    def get(self, topic: str, index: int) -> StoredPartition | None:
        """None if this broker does not hold it."""
