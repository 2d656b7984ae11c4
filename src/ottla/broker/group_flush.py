"""fsync before the acknowledgement, many appends to one fsync (flush.messages=1).

The loop never waits for a disk: appends go on while a worker thread syncs, and the next sync covers
all that came meanwhile. A failed sync fails every append that waited for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class Flushing(Protocol):
    """A flush that was made on the loop; `run` belongs into a worker thread."""

    def run(self) -> None: ...


F = TypeVar("F", bound=Flushing)


class GroupFlush(Generic[F]):
    """One log's flushes: at most one under way, everyone else waits for it or for the next.

    `begin` (on the loop) makes the flush of all that is there now; `end` (on the loop) takes its
    result in and returns the offset below which all is on disk.
    """

    def __init__(self, begin: Callable[[], F], end: Callable[[F], int]) -> None:
        self._begin, self._end = begin, end
        self._flushed = 0
        self._running: asyncio.Task[None] | None = None

    async def reached(self, offset: int) -> None:
        """Returns when everything below `offset` is on disk. Raises OSError of the sync."""
        while self._flushed < offset:
            if self._running is None:
                self._running = asyncio.create_task(self._one_flush())
            # Others wait for the same sync: one that goes away must not end it.
            await asyncio.shield(self._running)

    async def _one_flush(self) -> None:
        try:
            flush = self._begin()
            await asyncio.to_thread(flush.run)
            self._flushed = max(self._flushed, self._end(flush))
        finally:
            self._running = None
