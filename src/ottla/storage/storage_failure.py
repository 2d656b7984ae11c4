"""Decides what a broker does when its disk refuses a write.

Kafka takes the log directory offline, and a broker without another one stops (KIP-112,
ReplicaManager.handleLogDirFailure). Here there is one directory. So a broker that cannot write to a
partition which another live in-sync replica leads, or could lead, shuts down in order: it hands
over leadership, no leader waits for its copies, and producers and groups continue. If no other
replica could lead, the broker keeps running, because its records can still be read; producers get
KAFKA_STORAGE_ERROR and retry.

A failed fsync is different: nobody knows what is on the disk, and the next fsync does not tell
(`log.errors.SyncError`). The broker always stops, as Kafka's does, and not cleanly. Its next start
reads the files from the disk again.

It stops, too, if its folder is gone: what is written now is in no folder, so it must not be
acknowledged (Kafka's LogManager.handleLogDirFailure, without any log directory left).

Brokers on one machine may share a disk, which is full for all of them at once. So that not all of
them stop, each waits for those with lower ids to leave, and then checks which ones are left.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

from ottla.controller.image import ClusterImage, PartitionState
from ottla.log.errors import SyncError
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.clock import Clock
from ottla.runtime.repeated_failure import RepeatedFailure
from ottla.storage.stored_partition import StoredPartition

logger = logging.getLogger("ottla.storage")

TURN_MS: Final = 2_000
"""Longer than a broker takes to hand over the partitions that it leads."""


class StorageFailure:
    """Notified of each failed write to a partition: by a producer, a group, a replica fetcher,
    retention or the cleaner; and of each failed fsync. `reason` is why this broker must stop.
    """

    def __init__(self, broker_id: int, image: ClusterImage, clock: Clock) -> None:
        self.reason: str | None = None
        self.end: Callable[[], None] = lambda: None
        """Called once, when this broker must stop."""
        self.has_lost_sync = False
        """An fsync has failed: the stop must not count as clean."""
        self.on_lost_sync: Callable[[], None] = lambda: None
        """Called once, at the first failed fsync."""
        self._broker_id = broker_id
        self._image = image
        self._unled = RepeatedFailure(logger, logging.ERROR, clock)
        """Writes to partitions that no other broker can lead."""
        self._unread = RepeatedFailure(logger, logging.ERROR, clock)
        self._turn: asyncio.TimerHandle | None = None
        """Set while it waits for its turn to stop."""
        self._is_closed = False

    @property
    def will_stop(self) -> bool:
        """This broker must stop, or waits for its turn to find out whether it must."""
        return self.reason is not None or self._turn is not None

    def close(self) -> None:
        """The broker stops anyway: later failures have no effect."""
        self._is_closed = True
        if self._turn is not None:
            self._turn.cancel()

    def write_failed(self, partition: StoredPartition, error: ApiError) -> None:
        """A write to `partition` failed. Errors other than KAFKA_STORAGE_ERROR are ignored."""
        self.failed(partition.topic, partition.index, partition.state, error)

    def read_failed(self, topic: str, index: int, error: ApiError) -> None:
        """A client could not read a partition. Errors other than KAFKA_STORAGE_ERROR are ignored.

        Kafka takes the log directory offline (LocalLog.read). Here the broker keeps running: its
        other partitions can still be read.
        """
        if error.code is ErrorCode.kafka_storage_error:
            self._unread.log("cannot read %s-%d: %s", topic, index, error)

    def failed(self, topic: str, index: int, state: PartitionState | None, error: ApiError) -> None:
        """As `write_failed`, for a partition that may not be open."""
        self.check_sync(error)
        if error.code is not ErrorCode.kafka_storage_error or self.reason or self._turn:
            return
        if self._is_closed:
            return
        name, others = f"{topic}-{index}", self._others_that_could_lead(state)
        if others:
            logger.error("cannot write %s, which %s can lead: %s", name, others, error)
            before = sum(each < self._broker_id for each in others)
            if before == 0:
                self._end(error)
                return
            self._turn = asyncio.get_running_loop().call_later(
                before * TURN_MS / 1000, self._end_in_turn, topic, index, error
            )
            return
        self._unled.log("cannot write %s, which no other broker can lead: %s", name, error)

    def check_sync(self, error: Exception) -> None:
        """Stop if this is a failed fsync; other errors are ignored."""
        if isinstance(error, SyncError):
            self.lost_sync(str(error))

    def lost_sync(self, why: str) -> None:
        """An fsync has failed, in the logs, the checkpoints or the coordination store: stop."""
        if self.has_lost_sync:
            return
        self.has_lost_sync = True
        self.on_lost_sync()
        logger.error("%s: nobody knows what is on the disk", why)
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None
        if self.reason is None:
            self.reason = f"{why}: this broker stops, because nobody knows what is on the disk"
            if not self._is_closed:
                self.end()

    def checkpoint_failed(self, partitions: Iterable[StoredPartition], error: ApiError) -> None:
        """The checkpoint files cannot be written, which the caller logs: as a failed write to each
        of `partitions` (Kafka's CheckpointFileWithFailureHandler.write).
        """
        for partition in partitions:
            if self._others_that_could_lead(partition.state):
                self.write_failed(partition, error)
                return

    def folder_is_gone(self, error: ApiError) -> None:
        """A folder with records was deleted; `error` names it."""
        if self.reason is None and not self._is_closed:
            self.reason = f"{error}: this broker stops, because nothing it writes would be kept"
            logger.error("%s", self.reason)
            if self._turn is not None:
                self._turn.cancel()
                self._turn = None
            self.end()

    def _end_in_turn(self, topic: str, index: int, error: ApiError) -> None:
        self._turn = None
        if self._others_that_could_lead(self._image.partition(topic, index)):
            self._end(error)

    def _end(self, error: ApiError) -> None:
        self.reason = f"{error}: this broker stops so that others can take over"
        self.end()

    def _others_that_could_lead(self, state: PartitionState | None) -> list[int]:
        own, live = self._broker_id, self._image.brokers
        return [] if state is None else [each for each in state.isr if each != own and each in live]
