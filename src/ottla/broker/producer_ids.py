"""Producer ids, handed out from blocks that the controller reserves.

A block is written down before the first id of it is used, so that no id is given twice, whatever
happens; what is left of a block at a stop is never used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class ProducerIds:
    """`reserve` writes down the next block and returns it: first id, and the id behind the last."""

    def __init__(self, reserve: Callable[[], Awaitable[tuple[int, int]]]) -> None:
        self._reserve = reserve
        self._next = 0
        self._end = 0
        self._lock = asyncio.Lock()

    async def next(self) -> int:
        """An id that no producer had before. Raises ApiError where none can be reserved now."""
        await self.fill()
        self._next += 1
        return self._next - 1

    async def fill(self) -> None:
        """Has an id at hand when it returns; early, a producer need not wait for it, and can have
        one while there is no controller (Kafka's ZkProducerIdManager begins with a block).

        Raises ApiError.
        """
        if self._next >= self._end:
            async with self._lock:
                if self._next >= self._end:
                    self._next, self._end = await self._reserve()
