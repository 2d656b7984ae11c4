"""Compaction: one log at a time, off the event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from ottla.log.checkpoint import PartitionName
from ottla.log.compaction import Compaction, plan_compaction
from ottla.log.errors import RebuildingError
from ottla.log.log import Log
from ottla.log.removal import Removal
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.clock import Clock
from ottla.storage.after_rebuild import after_rebuild
from ottla.storage.log_store import LogStore
from ottla.storage.storage_failure import StorageFailure
from ottla.storage.stored_partition import StoredPartition, StoredPartitions

logger = logging.getLogger("ottla.cleaner")

MAX_ROUNDS = 100
"""A log with more keys than one round can hold takes several; then other logs get a turn."""


class LogCleaner:
    """Compacts the logs of topics with cleanup.policy=compact.

    `remove` deletes the files of replaced segments after their delay.
    """

    def __init__(
        self,
        store: LogStore,
        partitions: StoredPartitions,
        clock: Clock,
        failure: StorageFailure,
        remove: Callable[[Removal], None],
    ) -> None:
        self._store = store
        self._partitions = partitions
        self._clock = clock
        self._failure = failure
        self._remove = remove
        self._cleaning = asyncio.Lock()
        self._uncleanable: dict[PartitionName, Log] = {}

    async def clean(self) -> None:
        """One pass over all compacted logs. Failures are logged. The next pass retries those of the
        disk. A log that cannot be read as records is left out from then on
        (LogCleanerManager.markPartitionUncleanable).
        """
        here = list(self._partitions)
        logs = {(each.topic, each.index): each.log for each in here}
        self._uncleanable = {
            name: log for name, log in self._uncleanable.items() if logs.get(name) is log
        }
        for partition in here:
            name, log = (partition.topic, partition.index), partition.log
            if log.config.cleanup_compact and self._uncleanable.get(name) is not log:
                await self.compact(partition, only_if_due=True)

    async def compact(self, partition: StoredPartition, *, only_if_due: bool) -> None:
        """Compacts one log up to its active segment, or up to min.compaction.lag.ms ago. Without
        `only_if_due` min.cleanable.dirty.ratio does not matter. Failures are logged.
        """
        name = (partition.topic, partition.index)
        async with self._cleaning:
            try:
                await self._clean(partition, only_if_due)
            except RebuildingError as error:
                logger.warning("cannot compact %s-%d yet: %s", *name, error)
            except ApiError as error:
                logger.error("cannot compact %s-%d: %s", *name, error)
                self._failure.write_failed(partition, error)
                if error.code is not ErrorCode.kafka_storage_error:
                    self._uncleanable[name] = partition.log
                    logger.error("%s-%d is not compacted any more before the next start", *name)
            else:
                self._uncleanable.pop(name, None)

    async def _clean(self, partition: StoredPartition, only_if_due: bool) -> None:
        name = (partition.topic, partition.index)
        for _ in range(MAX_ROUNDS):
            plan = await after_rebuild(partial(self._plan, partition, only_if_due))
            if plan is None:
                return
            reached_before = self._store.cleaner_offsets.get(name)
            cuts_before = partition.log.cuts
            await asyncio.to_thread(plan.run)
            is_here = self._partitions.get(*name) is partition
            if not is_here or partition.log.cuts != cuts_before:
                # Deleted meanwhile, or truncated: the offsets it read may hold other records now.
                plan.discard()
                return
            before = partition.log.size_bytes
            for removal in plan.apply():
                self._remove(removal)
            self._store.cleaner_offsets[name] = plan.clean_offset
            logger.info(
                "%s-%d is clean up to offset %d: %d of %d bytes remain",
                *name, plan.clean_offset, partition.log.size_bytes, before,
            )  # fmt: skip
            if plan.clean_offset == reached_before:
                return

    async def _plan(self, partition: StoredPartition, only_if_due: bool) -> Compaction | None:
        return plan_compaction(
            partition.log,
            clean_offset=self._store.cleaner_offsets.get((partition.topic, partition.index)),
            now_ms=self._clock.now_ms(),
            high_watermark=partition.high_watermark,
            only_if_due=only_if_due,
        )
