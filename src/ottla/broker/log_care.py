"""What the logs want from time to time: retention, flushes, checkpoints, old files removed.

Deciding is cheap and happens on the loop, a slice of the partitions at a time; whatever waits for a
disk runs in a worker thread. The intervals are Kafka's settings.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from ottla.broker.background import Background
from ottla.broker.log_cleaner import LogCleaner
from ottla.broker.partition import Partition
from ottla.broker.waiting import wake
from ottla.log.checkpoint import PartitionName
from ottla.log.removal import Removal
from ottla.log.retention import remove_expired
from ottla.protocol.errors import ApiError

if TYPE_CHECKING:
    from ottla.broker.node import Node

logger = logging.getLogger("ottla.logs")

PARTITIONS_A_SLICE = 200
CHECKPOINT_DELAY_MS = 100
"""From a cut or a deletion to the checkpoint files that show it; those in between share one write.
"""
MAX_INTERVAL_MS = 24 * 3600 * 1000
"""Kafka's "never" is 2^63-1 ms, which no timer takes; once a day is as good."""


class LogCare:
    """The periodic work over all logs of a node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._background = Background(logger, "the care for logs")
        self._checkpoint_due = asyncio.Event()
        self._checkpointing = asyncio.Lock()
        self._high_watermarks: dict[PartitionName, int] = {}
        """As written last."""

    def start(self) -> None:
        config = self._node.config
        works: list[tuple[Callable[[], Awaitable[None]], int]] = [
            (self.retain, config.log_retention_check_interval_ms),
            (self.flush_old, config.log_flush_scheduler_interval_ms),
            (self.checkpoint, config.log_flush_offset_checkpoint_interval_ms),
            (
                self.checkpoint_high_watermarks,
                config.replica_high_watermark_checkpoint_interval_ms,
            ),
            (self.forget_producers, config.producer_id_expiration_check_interval_ms),
        ]
        if config.log_cleaner_enable:
            works.append((LogCleaner(self._node).clean, config.log_cleaner_backoff_ms))
        for work, interval_ms in works:
            self._background.keep(partial(self._again_and_again, work, interval_ms))
        self._background.keep(self._checkpoint_when_due)
        for removal in self._node.store.removals:
            self.later(removal)

    async def close(self) -> None:
        """Ends the periodic work; what waits to be removed is removed at the next start."""
        await self._background.close()

    async def _again_and_again(self, work: Callable[[], Awaitable[None]], interval_ms: int) -> None:
        wait_ms = min(self._node.config.log_initial_task_delay_ms, interval_ms)
        while True:
            await asyncio.sleep(min(wait_ms, MAX_INTERVAL_MS) / 1000)
            wait_ms = interval_ms
            try:
                await work()
            except ApiError as error:
                # The disk: said once a round, and tried again in the next.
                logger.error("%s", error)

    async def retain(self) -> None:
        """Takes the segments out whose time has come."""
        for number, partition in enumerate(list(self._node.partitions)):
            if number % PARTITIONS_A_SLICE == 0:
                await asyncio.sleep(0)
            self._retain(partition)

    def _retain(self, partition: Partition) -> None:
        log, now_ms = partition.log, self._node.clock.now_ms()
        before = log.start_offset
        by_size = 0 <= log.config.retention_bytes < log.size_bytes
        removal = remove_expired(log, now_ms=now_ms, high_watermark=partition.high_watermark)
        if removal is None:
            return
        self.later(removal)
        if log.start_offset > before:
            reason = "retention.bytes" if by_size else "retention.ms"
            partition.timeline.started_at(log.start_offset, now_ms, reason)
            logger.info(
                "%s-%d begins at offset %d now (%s)",
                partition.topic, partition.index, log.start_offset, reason,
            )  # fmt: skip
            wake(partition)

    async def flush_old(self) -> None:
        """Syncs the logs whose unsynced records are older than flush.ms."""
        for partition in list(self._node.partitions):
            log, now_ms = partition.log, self._node.clock.monotonic_ms()
            if log.unflushed_records and log.config.flush_ms <= now_ms - partition.flushed_ms:
                await partition.flush()

    async def checkpoint(self) -> None:
        """Flushes what lies in closed segments, and writes the checkpoint files."""
        for partition in list(self._node.partitions):
            if partition.log.recovery_point < partition.log.active.base_offset:
                await partition.flush()
        await self._write_checkpoints()

    async def checkpoint_high_watermarks(self) -> None:
        """Writes what is committed, where that has moved: a leader that crashed begins with it
        (Kafka's ReplicaManager.checkpointHighWatermarks).
        """
        async with self._checkpointing:
            now = self._node.high_watermarks()
            if now != self._high_watermarks:
                await asyncio.to_thread(self._node.store.write_high_watermarks, now)
                self._high_watermarks = now

    async def _write_checkpoints(self) -> None:
        async with self._checkpointing:
            now = self._node.high_watermarks()
            task = self._node.store.checkpoint(now)
            await asyncio.to_thread(task.run)
            self._high_watermarks = now

    def was_cut(self, topic: str, index: int, offset: int) -> None:
        """A follower's log was cut at `offset`: what is appended there from now on is neither
        flushed, committed nor clean, whatever the checkpoint files say of these offsets. They are
        written anew, as Kafka's LogManager.truncateTo does it, lest a crash leave torn records
        unseen.
        """
        self._node.store.cut(topic, index, offset)
        self._checkpoint_due.set()

    def deleted(self, removal: Removal) -> None:
        """A partition was deleted. The checkpoint files are written without it (as Kafka's
        LogManager.asyncDelete does), because after a crash a new topic of that name would begin at
        the old one's log start, high watermark and recovery point. `removal` runs after its delay.
        """
        self._checkpoint_due.set()
        self.later(removal)

    async def _checkpoint_when_due(self) -> None:
        while True:
            await self._checkpoint_due.wait()
            await asyncio.sleep(CHECKPOINT_DELAY_MS / 1000)
            self._checkpoint_due.clear()
            try:
                await self._write_checkpoints()
            except ApiError as error:
                logger.error("%s", error)

    async def forget_producers(self) -> None:
        """Forgets the producers that have been silent for producer.id.expiration.ms."""
        now_ms, after_ms = self._node.clock.now_ms(), self._node.config.producer_id_expiration_ms
        for number, partition in enumerate(list(self._node.partitions)):
            if number % PARTITIONS_A_SLICE == 0:
                await asyncio.sleep(0)
            partition.log.forget_producers(now_ms, after_ms)

    def later(self, removal: Removal) -> None:
        """Removes renamed files when their delay is over."""
        self._background.spawn(self._remove(removal))

    async def _remove(self, removal: Removal) -> None:
        await asyncio.sleep(removal.delay_ms / 1000)
        await asyncio.to_thread(removal.run)
