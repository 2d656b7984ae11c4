"""Limits how many requests of some types begin in one turn of the event loop.

One poll of the sockets returns all requests that have arrived, and the loop answers them one after
the other. The 500 members of a group join at once, and a request of somebody else that arrives
behind them would wait for all of them. Those that take turns wait, so the others overtake them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

MAX_A_TURN: Final = 32


class Turns:
    """For the event loop's thread only. First come, first served."""

    def __init__(self, size: int = MAX_A_TURN) -> None:
        self._size = size
        self._left = size
        self._waiting: deque[asyncio.Future[None]] = deque()
        """Bounded by the connections: each waits for one request at most."""
        self._is_next_due = False

    async def take(self) -> None:
        """Returns in a turn that has room for one more."""
        if self._left and not self._waiting:
            self._left -= 1
            self._await_next()
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    def _await_next(self) -> None:
        if not self._is_next_due:
            self._is_next_due = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        self._is_next_due = False
        self._left = self._size
        while self._waiting and self._left:
            turn = self._waiting.popleft()
            if not turn.done():  # the client left meanwhile
                turn.set_result(None)
                self._left -= 1
        if self._left < self._size:
            self._await_next()
