"""Compaction at work: one log after the other, the dirtiest first, off the loop."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from ottla.broker.partition import Partition
from ottla.log.compaction import Compaction, plan_compaction

if TYPE_CHECKING:
    from ottla.broker.node import Node

logger = logging.getLogger("ottla.cleaner")

MAX_ROUNDS = 100
"""A log with more keys than one round remembers is cleaned in several; then others get a turn."""


class LogCleaner:
    """Compacts the logs of a node whose topics ask for it."""

    def __init__(self, node: Node) -> None:
        self._node = node

    async def clean(self) -> None:
        """One pass over all compacted logs. Raises ApiError KAFKA_STORAGE_ERROR."""
        for partition in list(self._node.partitions):
            if partition.log.config.cleanup_compact:
                await self._clean(partition)

    async def _clean(self, partition: Partition) -> None:
        name = (partition.topic, partition.index)
        for _ in range(MAX_ROUNDS):
            plan = self._plan(partition)
            if plan is None:
                return
            reached_before = self._node.store.cleaner_offsets.get(name)
            cuts_before = partition.log.cuts
            await asyncio.to_thread(plan.run)
            is_here = self._node.partitions.get(*name) is partition
            if not is_here or partition.log.cuts != cuts_before:
                # Deleted meanwhile; or cut, and what it read may be other records now.
                plan.discard()
                return
            before = partition.log.size_bytes
            for removal in plan.apply():
                self._node.care.later(removal)
            self._node.store.cleaner_offsets[name] = plan.clean_offset
            logger.info(
                "%s-%d is clean up to offset %d: %d bytes of %d stay",
                *name, plan.clean_offset, partition.log.size_bytes, before,
            )  # fmt: skip
            if plan.clean_offset == reached_before:
                return

    def _plan(self, partition: Partition) -> Compaction | None:
        return plan_compaction(
            partition.log,
            clean_offset=self._node.store.cleaner_offsets.get((partition.topic, partition.index)),
            now_ms=self._node.clock.now_ms(),
            high_watermark=partition.high_watermark,
        )
