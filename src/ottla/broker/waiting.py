"""Requests that wait for something to happen on partitions: one waiter each, and no polling."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol


class Watched(Protocol):
    """Something that wakes its waiters when it changes."""

    waiters: set[Waiter] | None


class Waiter:
    """Sleeps until one of the watched changes, or the time is up."""

    __slots__ = ("_future", "_watched")

    def __init__(self, watched: Iterable[Watched]) -> None:
        self._future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._watched = list(watched)
        for each in self._watched:
            if each.waiters is None:
                each.waiters = set()
            each.waiters.add(self)

    def wake(self) -> None:
        if not self._future.done():
            self._future.set_result(True)

    async def wait(self, most_ms: int) -> bool:
        """True if woken, False if `most_ms` went by first. Always stops watching."""
        handle = asyncio.get_running_loop().call_later(most_ms / 1000, self._time_is_up)
        try:
            return await self._future
        finally:
            handle.cancel()
            self.cease()

    def _time_is_up(self) -> None:
        if not self._future.done():
            self._future.set_result(False)

    def cease(self) -> None:
        for each in self._watched:
            if each.waiters is not None:
                each.waiters.discard(self)
                if not each.waiters:
                    each.waiters = None


def wake(watched: Watched) -> None:
    """Wakes everything that waits for `watched`."""
    if watched.waiters is not None:
        for waiter in watched.waiters:
            waiter.wake()
