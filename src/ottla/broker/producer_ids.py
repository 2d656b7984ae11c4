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
        """An id that no producer had before."""
        if self._next >= self._end:
            async with self._lock:
                if self._next >= self._end:
                    self._next, self._end = await self._reserve()
        self._next += 1
        return self._next - 1
