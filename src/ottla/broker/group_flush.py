"""fsync before the acknowledgement, many appends to one fsync (flush.messages=1).

The loop never waits for a disk: appends go on while a worker thread syncs, and the next sync covers
all that came meanwhile. A failed sync fails every append that waited for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class GroupFlush:
    """One log's flushes: at most one under way, at most one waiting."""

    def __init__(self, flush: Callable[[], int]) -> None:
        """`flush` syncs in a worker thread and returns the offset up to which all is on disk."""
        self._flush = flush
        self._flushed = 0
        self._running: asyncio.Task[int] | None = None

    async def reached(self, offset: int) -> None:
        """Returns when everything below `offset` is on disk. Raises OSError of the sync."""
        while self._flushed < offset:
            if self._running is None:
                self._running = asyncio.create_task(asyncio.to_thread(self._flush))
            task = self._running
            try:
                # Others wait for the same sync: one that goes away must not end it.
                self._flushed = max(self._flushed, await asyncio.shield(task))
            finally:
                if self._running is task and task.done():
                    self._running = None
