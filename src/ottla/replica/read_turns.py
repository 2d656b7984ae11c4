"""Large answers take turns: the event loop copies only some megabytes at once.

8 MiB from the page cache and to a socket take 4 ms. With the requests of eight consumers in one
turn of the event loop, everybody else would wait for all of them: 40 ms, and several times as long
on a machine whose cores are shared with the consumers.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

MIN_BYTES: Final = 256 << 10
"""Less needs no turn: many consumers get a few kilobytes at a time."""
TURN_BYTES: Final = 4 << 20
"""Of one turn of the event loop. What is begun in it may exceed it: one partition."""
MAX_BYTES: Final = 2 * TURN_BYTES
"""More is read in several turns."""


class ReadTurns:
    """For the event loop's thread only."""

    def __init__(self) -> None:
        self._left_bytes = TURN_BYTES
        self._is_next_due = False
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def has_room(self, size_bytes: int) -> bool:
        """Whether so much may be read now; otherwise `wait` for it."""
        if size_bytes < MIN_BYTES:
            return True
        if self._waiting or self._left_bytes <= 0 or size_bytes > MAX_BYTES:
            return False
        self._take(size_bytes)
        return True

    async def wait(self, size_bytes: int) -> None:
        """Returns in a turn of the event loop in which so much may be read; in the order of the
        calls.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size_bytes, future))
        self._plan_next()
        await future

    def _take(self, size_bytes: int) -> None:
        self._left_bytes -= size_bytes
        self._plan_next()

    def _plan_next(self) -> None:
        if not self._is_next_due:
            self._is_next_due = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        self._is_next_due = False
        self._left_bytes = TURN_BYTES
        while self._waiting and self._left_bytes > 0:
            size_bytes, future = self._waiting.popleft()
            if not future.done():  # its connection may have ended
                self._take(size_bytes)
                future.set_result(None)
