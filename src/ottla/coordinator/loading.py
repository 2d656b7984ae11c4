"""Loading a shard: every record and marker of its partition is applied, oldest first."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from ottla.coordinator.coordinator_log import CoordinatorLog, LogMarker, LogRecord
from ottla.coordinator.shard_kind import ShardKind
from ottla.shards.shard import Shard

logger = logging.getLogger("ottla.coordinator")

RECORDS_BEFORE_YIELD: Final = 2_000
"""After so many records, other work of the event loop gets its turn."""
MAX_RUN_KEYS: Final = 100_000
"""Limits the memory for the newest records of a run."""


class Loading:
    """Loads one shard from its log."""

    def __init__(self, kind: ShardKind[Any], shard: Shard, log: CoordinatorLog, name: str) -> None:
        """`name` stands in the broker's log: "__consumer_offsets-7"."""
        self._kind = kind
        self._shard = shard
        self._log = log
        self._name = name
        self._run: dict[bytes | None, LogRecord] = {}
        """Newest record of each key since the last record of a transaction, by key."""
        self._ignored = 0
        self._handled = 0

    async def run(self) -> int:
        """Returns the last offset of the log, -1 for an empty one. Raises ApiError."""
        last_offset = -1
        for found in self._log.read_all():
            last_offset = found.offset
            await self._yield_now_and_then()
            if isinstance(found, LogMarker):
                await self._end_run()
                self._shard.apply_marker(found.marker, found.offset)
            elif found.producer is not None or not self._kind.newest_suffices:
                await self._end_run()
                self._apply(found)
            else:
                # Removed first, so that the run is in the order of the newest records.
                self._run.pop(found.key, None)
                self._run[found.key] = found
                if len(self._run) >= MAX_RUN_KEYS:
                    await self._end_run()
        await self._end_run()
        if self._ignored:
            logger.warning(
                "%s: ignored %d records of unknown types or with unreadable contents",
                self._name,
                self._ignored,
            )
        return last_offset

    async def _end_run(self) -> None:
        run, self._run = self._run, {}
        for record in run.values():
            self._apply(record)
            await self._yield_now_and_then()

    def _apply(self, found: LogRecord) -> None:
        try:
            record = None if found.key is None else self._kind.decode(found.key, found.value)
        except ValueError:
            record = None
        if record is None:
            self._ignored += 1
        else:
            self._shard.apply(record, found.offset, found.timestamp_ms, found.producer)

    async def _yield_now_and_then(self) -> None:
        self._handled += 1
        if self._handled % RECORDS_BEFORE_YIELD == 0:
            await asyncio.sleep(0)
