"""Periodic work on the logs: retention, flushes, checkpoints, removal of old files.

Decisions are cheap and run on the event loop, a slice of the partitions at a time. Work that waits
for the disk runs in a worker thread. The intervals are Kafka's settings.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from ottla.config.broker import BrokerConfig
from ottla.log.checkpoint import PartitionName
from ottla.log.errors import RebuildingError, storage_error
from ottla.log.log import Log
from ottla.log.producer_load import ProducerLoad
from ottla.log.removal import Removal
from ottla.log.retention import remove_expired
from ottla.log.task import Rebuild
from ottla.protocol.errors import ApiError
from ottla.runtime.background import Background
from ottla.runtime.clock import Clock
from ottla.runtime.repeated_failure import RepeatedFailure
from ottla.runtime.waiting import wake
from ottla.storage.log_cleaner import LogCleaner
from ottla.storage.log_store import LogStore, gone_error
from ottla.storage.storage_failure import StorageFailure
from ottla.storage.stored_partition import StoredPartition, StoredPartitions

logger = logging.getLogger("ottla.logs")

PARTITIONS_A_SLICE = 200
CHECKPOINT_DELAY_MS = 100
"""From a truncation or deletion to the write of the checkpoint files; those in between share one
write."""
LOADS_AT_ONCE = 2
"""Truncated logs whose producers are read, and indexes that are built again, at a time: it is
Python's work, and there is one lock."""
FOLDER_CHECK_MS = 1_000
"""Kafka notices that its folder is gone when it next writes a checkpoint, after up to a minute."""
MAX_INTERVAL_MS = 24 * 3600 * 1000
"""Kafka's "never" is 2^63-1 ms, which no timer accepts; once a day has the same effect."""


class LogMaintenance:
    """The periodic work on all logs of a broker."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        store: LogStore,
        partitions: StoredPartitions,
        failure: StorageFailure,
    ) -> None:
        self._config = config
        self._clock = clock
        self._store = store
        self._partitions = partitions
        self._failure = failure
        self._cleaner = LogCleaner(store, partitions, clock, failure, self.remove_later)
        self._background = Background(logger, "log maintenance")
        self._checkpoint_due = asyncio.Event()
        self._checkpointing = asyncio.Lock()
        self._loading = asyncio.Semaphore(LOADS_AT_ONCE)
        self._writing: asyncio.Future[None] | None = None
        """The write of checkpoint files that runs in a thread now."""
        self._changes: list[asyncio.Event] = []
        """One for each periodic work: the settings have changed."""
        self._high_watermarks: dict[PartitionName, int] = {}
        """As last written to disk."""

    def start(self) -> None:
        config = self._config
        self._store.files.rebuild_later = self.rebuild_later
        works: list[tuple[Callable[[], Awaitable[None]], Callable[[], int]]] = [
            (self.retain, lambda: config.log_retention_check_interval_ms),
            (self.flush_old, lambda: config.log_flush_scheduler_interval_ms),
            (self.checkpoint, lambda: config.log_flush_offset_checkpoint_interval_ms),
            (
                self.checkpoint_high_watermarks,
                lambda: config.replica_high_watermark_checkpoint_interval_ms,
            ),
            (self.forget_producers, lambda: config.producer_id_expiration_check_interval_ms),
            (self.check_folder, lambda: FOLDER_CHECK_MS),
        ]
        if config.log_cleaner_enable:
            works.append((self._cleaner.clean, lambda: config.log_cleaner_backoff_ms))
        for work, interval_ms in works:
            change = asyncio.Event()
            self._changes.append(change)
            self._background.keep(partial(self._repeat, work, interval_ms, change))
        self._background.keep(self._checkpoint_when_due)
        for removal in self._store.removals:
            self.remove_later(removal)

    async def close(self) -> None:
        """Ends the periodic work. The next start removes the files that still wait for removal.

        Afterwards no thread writes checkpoint files: the store writes them when it closes.
        """
        self._store.files.rebuild_later = None
        await self._background.close()
        if self._writing is not None:
            try:
                await self._writing
            except ApiError as error:
                self._failure.check_sync(error)

    def reconfigured(self) -> None:
        """Dynamic settings have changed: an interval may be shorter than what is left to wait."""
        for change in self._changes:
            change.set()

    async def _repeat(
        self,
        work: Callable[[], Awaitable[None]],
        interval_ms: Callable[[], int],
        change: asyncio.Event,
    ) -> None:
        failures = RepeatedFailure(logger, logging.ERROR, self._clock)
        initial_ms = self._config.log_initial_task_delay_ms
        await _wait(lambda: min(initial_ms, interval_ms()), change)
        while True:
            try:
                await work()
            except ApiError as error:
                # A disk failure: retried in the next round.
                failures.log("%s", error)
            await _wait(interval_ms, change)

    async def retain(self) -> None:
        """Removes the segments that retention no longer keeps."""
        for number, partition in enumerate(list(self._partitions)):
            if number % PARTITIONS_A_SLICE == 0:
                await asyncio.sleep(0)
            try:
                self._retain(partition)
            except RebuildingError:
                continue  # the next round knows its times
            except ApiError as error:
                logger.error("retention of %s-%d: %s", partition.topic, partition.index, error)
                self._failure.write_failed(partition, error)

    def _retain(self, partition: StoredPartition) -> None:
        log, now_ms = partition.log, self._clock.now_ms()
        before = log.start_offset
        by_size = 0 <= log.config.retention_bytes < log.size_bytes
        removal = remove_expired(log, now_ms=now_ms, high_watermark=partition.high_watermark)
        if removal is None:
            return
        self.remove_later(removal)
        if log.start_offset > before:
            reason = "retention.bytes" if by_size else "retention.ms"
            partition.timeline_at(now_ms).started_at(log.start_offset, now_ms, reason)
            logger.info(
                "%s-%d now begins at offset %d (%s)",
                partition.topic, partition.index, log.start_offset, reason,
            )  # fmt: skip
            wake(partition)

    async def compact(self, partition: StoredPartition) -> None:
        """Compacts one log now, whatever its min.cleanable.dirty.ratio."""
        await self._cleaner.compact(partition, only_if_due=False)

    async def flush_old(self) -> None:
        """Syncs the logs whose unsynced records are older than flush.ms."""
        for partition in list(self._partitions):
            log, now_ms = partition.log, self._clock.monotonic_ms()
            if log.unflushed_records and log.config.flush_ms <= now_ms - partition.flushed_ms:
                await partition.flush()

    async def check_folder(self) -> None:
        """Stops the broker if its data folder was deleted."""
        if self._store.is_gone:
            self._failure.folder_is_gone(gone_error(self._store.root))

    async def checkpoint(self) -> None:
        """Flushes closed segments, and writes the checkpoint files."""
        for number, partition in enumerate(list(self._partitions)):
            if number % PARTITIONS_A_SLICE == 0:
                await asyncio.sleep(0)
            if partition.log.unflushed_records and _is_gone(partition.log):
                self._failure.folder_is_gone(gone_error(partition.log.folder))
                return
            if partition.log.recovery_point < partition.log.active.base_offset:
                await partition.flush()
        await self._write_checkpoints()

    async def checkpoint_high_watermarks(self) -> None:
        """Writes the high watermarks if one has moved: a restarted leader begins with them after a
        crash (Kafka's ReplicaManager.checkpointHighWatermarks).
        """
        async with self._checkpointing:
            now = self.high_watermarks()
            if now != self._high_watermarks:
                await self._write(partial(self._store.write_high_watermarks, now))
                self._high_watermarks = now

    async def _write_checkpoints(self) -> None:
        async with self._checkpointing:
            now = self.high_watermarks()
            task = self._store.checkpoint(now)
            await self._write(task.run)
            task.apply()
            self._high_watermarks = now

    async def _write(self, work: Callable[[], None]) -> None:
        """Runs `work` in a thread, which continues if the caller is cancelled; `close` waits."""
        self._writing = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            await asyncio.shield(self._writing)
        except ApiError as error:
            self._failure.check_sync(error)
            self._failure.checkpoint_failed(self._partitions, error)
            raise

    def high_watermarks(self) -> dict[PartitionName, int]:
        """The high watermarks of all partitions on this broker."""
        return {(each.topic, each.index): each.high_watermark for each in self._partitions}

    def was_truncated(self, topic: str, index: int, offset: int) -> None:
        """A follower's log was truncated at `offset`. Records appended there from now on are not
        flushed, committed or clean, but the checkpoint files may claim it of these offsets. So the
        files are rewritten, as by Kafka's LogManager.truncateTo; otherwise recovery after a crash
        could miss torn records.
        """
        self._store.truncated(topic, index, offset)
        self._checkpoint_due.set()

    def deleted(self, removal: Removal) -> None:
        """A partition was deleted. The checkpoint files are soon rewritten without it; until then
        its name is not free. `removal` runs after its delay.
        """
        self._checkpoint_due.set()
        self.remove_later(removal)

    async def free(self, topic: str, index: int) -> None:
        """Returns when no checkpoint file names a deleted partition any more, so that a new one may
        have its name. Otherwise, after a crash, the new one would begin at the old log start, high
        watermark and recovery point. Kafka writes the files while it deletes, before another topic
        can have the name (LogManager.asyncDelete); here many deletions share one write.

        Raises ApiError KAFKA_STORAGE_ERROR.
        """
        if (topic, index) in self._store.stale:
            await self._write_checkpoints()

    def put_aside(self) -> None:
        """A partition's folder is set aside as a stray: the checkpoint files are rewritten without
        it, as when it is deleted.
        """
        self._checkpoint_due.set()

    async def _checkpoint_when_due(self) -> None:
        failures = RepeatedFailure(logger, logging.ERROR, self._clock)
        while True:
            await self._checkpoint_due.wait()
            await asyncio.sleep(CHECKPOINT_DELAY_MS / 1000)
            self._checkpoint_due.clear()
            try:
                await self._write_checkpoints()
            except ApiError as error:
                failures.log("%s", error)

    async def forget_producers(self) -> None:
        """Drops the state of producers that were silent for producer.id.expiration.ms."""
        now_ms, after_ms = self._clock.now_ms(), self._config.producer_id_expiration_ms
        for number, partition in enumerate(list(self._partitions)):
            if number % PARTITIONS_A_SLICE == 0:
                await asyncio.sleep(0)
            partition.log.forget_producers(now_ms, after_ms)

    def load_later(self, partition: StoredPartition, load: ProducerLoad) -> None:
        """Reads a truncated log's producers again, in a thread."""
        self._background.spawn(self._load(partition, load))

    async def _load(self, partition: StoredPartition, load: ProducerLoad) -> None:
        try:
            async with self._loading:
                await asyncio.to_thread(load.run)
            load.apply()
        except ApiError as error:
            logger.error("%s-%d: %s", partition.topic, partition.index, error)
            self._failure.write_failed(partition, error)
        finally:
            load.end()
            wake(partition)

    def rebuild_later(self, rebuild: Rebuild) -> None:
        """Builds the indexes of a segment again, in a thread."""
        self._background.spawn(self._rebuild(rebuild))

    async def _rebuild(self, rebuild: Rebuild) -> None:
        try:
            async with self._loading:
                await asyncio.to_thread(rebuild.run)
            rebuild.apply()
        finally:
            rebuild.end()

    def remove_later(self, removal: Removal) -> None:
        """Removes renamed files after their delay."""
        self._background.spawn(self._remove(removal))

    async def _remove(self, removal: Removal) -> None:
        await asyncio.sleep(removal.delay_ms / 1000)
        await asyncio.to_thread(removal.run)


def _is_gone(log: Log) -> bool:
    """Whether the log's files were deleted by somebody else. Raises ApiError
    KAFKA_STORAGE_ERROR if that cannot be known.
    """
    if log.is_closed or not log.is_on_disk:
        return False
    try:
        os.stat(log.active.path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError as error:
        raise storage_error(f"cannot find {log.active.path}", error) from None
    return False


async def _wait(interval_ms: Callable[[], int], change: asyncio.Event) -> None:
    """Waits for the interval; it is read again after a change."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    while (left_s := start + min(interval_ms(), MAX_INTERVAL_MS) / 1000 - loop.time()) > 0:
        change.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(left_s):
                await change.wait()
