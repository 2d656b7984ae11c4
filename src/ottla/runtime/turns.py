"""Limits how much of some work begins in one turn of the event loop.

One poll of the sockets returns all requests that have arrived, and the loop answers them one after
the other. The 500 members of a group join at once, and a request of somebody else that arrives
behind them would wait for all of them. Those that take turns wait, so the others overtake them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

MAX_A_TURN: Final = 32
"""Requests of types that many clients send at the same time."""


class Turns:
    """For the event loop's thread only. First come, first served."""

    def __init__(self, size: int = MAX_A_TURN) -> None:
        """`size`: of one turn. What is begun in it may exceed it."""
        self._size = size
        self._left = size
        self._is_next_due = False
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        """Bounded by the connections: each waits for one request at most."""

    async def take(self) -> None:
        """Returns in a turn that has room for one more."""
        if not self.try_take(1):
            await self.wait(1)

    def try_take(self, size: int) -> bool:
        """Whether so much may begin now; otherwise `wait` for it."""
        if self._waiting or self._left <= 0:
            return False
        self._begin(size)
        return True

    async def wait(self, size: int) -> None:
        """Returns in a later turn of the event loop in which so much may begin; in the order of the
        calls.
        """
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        self._plan_next()
        await turn

    def _begin(self, size: int) -> None:
        self._left -= size
        self._plan_next()

    def _plan_next(self) -> None:
        if not self._is_next_due:
            self._is_next_due = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        self._is_next_due = False
        self._left = self._size
        while self._waiting and self._left > 0:
            size, turn = self._waiting.popleft()
            if not turn.done():  # its connection may have ended
                self._begin(size)
                turn.set_result(None)
