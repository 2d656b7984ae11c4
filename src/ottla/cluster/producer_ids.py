"""Producer ids, assigned from blocks that the controller reserves.

A block is stored before its first id is used, so that no id is ever assigned twice. The rest of a
block at a stop is never used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class ProducerIds:
    """`reserve` stores the next block and returns it: its first id, and the one after its last."""

    def __init__(self, reserve: Callable[[], Awaitable[tuple[int, int]]]) -> None:
        self._reserve = reserve
        self._next = 0
        self._end = 0
        self._lock = asyncio.Lock()

    async def next(self) -> int:
        """Returns an id that no producer had before. Raises ApiError if none can be reserved."""
        await self.fill()
        self._next += 1
        return self._next - 1

    async def fill(self) -> None:
        """Ensures that an id is available. If called early, no producer has to wait, and gets one
        even without a controller (Kafka's ZkProducerIdManager begins with a block).

        Raises ApiError.
        """
        if self._next >= self._end:
            async with self._lock:
                if self._next >= self._end:
                    self._next, self._end = await self._reserve()
