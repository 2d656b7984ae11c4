"""Work that needs much memory: one at a time, and not while it waits for others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

T = TypeVar("T")
MAX_AWAY: Final = 4
"""How many may have given their turn away at once, and still hold what they have read."""


class OneAtATime:
    """`async with explaining.next() as turn` waits for its turn; meanwhile `await
    turn.away(answer)` waits for an answer while others have theirs.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._away = 0

    @property
    def is_taken(self) -> bool:
        return self._lock.locked()

    @asynccontextmanager
    async def next(self) -> AsyncIterator[Turn]:
        turn = Turn(self)
        await turn.take()
        try:
            yield turn
        finally:
            turn.give()

    async def take(self) -> None:
        await self._lock.acquire()

    def give(self) -> None:
        self._lock.release()

    def may_leave(self) -> bool:
        """Whether another one may be away."""
        return self._away < MAX_AWAY

    def left(self, by: int) -> None:
        self._away += by


class Turn:
    """One that was waited for."""

    def __init__(self, turns: OneAtATime) -> None:
        self._turns = turns
        self._is_held = False

    async def take(self) -> None:
        await self._turns.take()
        self._is_held = True

    def give(self) -> None:
        """Does nothing if it was cancelled while it waited for its turn to come again."""
        if self._is_held:
            self._is_held = False
            self._turns.give()

    async def away(self, answer: Awaitable[T]) -> T:
        """Wait for an answer while others have their turns. If `MAX_AWAY` do that already, it keeps
        its own.
        """
        if not self._turns.may_leave():
            return await answer
        self._turns.left(1)
        self.give()
        try:
            return await answer
        finally:
            try:
                await self.take()
            finally:
                self._turns.left(-1)
