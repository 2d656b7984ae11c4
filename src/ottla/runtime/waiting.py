"""Requests that wait for a change of partitions: one waiter each, no polling."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from enum import Enum
from typing import Any, Protocol


class Change(Enum):
    """What happened; it decides which waiters wake."""

    ANY = "any"
    """Every waiter checks again."""
    APPENDED = "appended"
    """The log has grown, the high watermark has not: relevant to followers only."""
    COMMITTED = "committed"
    """The high watermark moved: followers learn it with the next records."""
    LEFT = "left"
    """A follower left the ISR: its next fetch counts, so that it can join again."""
    GONE = "gone"
    """The watched object is gone and does not change any more."""


class Watcher(Protocol):
    """An entry of `waiters`."""

    def changed(self, watched: Any, change: Change) -> None:
        """Called with each change."""


class Watched(Protocol):
    """Something that wakes its waiters when it changes."""

    waiters: dict[Watcher, None] | None
    """In the order in which they began to wait, so that simulation runs repeat exactly."""


class Waiter:
    """Sleeps until one of the watched objects changes or the time is up."""

    __slots__ = ("_future", "_watched")

    def __init__(self, watched: Iterable[Watched]) -> None:
        self._future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._watched = list(watched)
        for each in self._watched:
            watch(each, self)

    def changed(self, watched: Any, change: Change) -> None:
        if not self._future.done():
            self._future.set_result(True)

    async def wait(self, max_ms: int) -> bool:
        """True if woken, False if `max_ms` passed first. Always stops watching."""
        handle = asyncio.get_running_loop().call_later(max_ms / 1000, self._time_is_up)
        try:
            return await self._future
        finally:
            handle.cancel()
            self.stop()

    def _time_is_up(self) -> None:
        if not self._future.done():
            self._future.set_result(False)

    def stop(self) -> None:
        for each in self._watched:
            unwatch(each, self)


def watch(watched: Watched, watcher: Watcher) -> None:
    """Notify `watcher` of each change from now on."""
    if watched.waiters is None:
        watched.waiters = {}
    watched.waiters[watcher] = None


def unwatch(watched: Watched, watcher: Watcher) -> None:
    """Stop notifying `watcher`. Does nothing if it was not watching."""
    if watched.waiters is not None:
        watched.waiters.pop(watcher, None)
        if not watched.waiters:
            watched.waiters = None


def wake(watched: Watched, change: Change = Change.ANY) -> None:
    """Notify all waiters of `watched`."""
    waiters = watched.waiters
    if waiters is None:
        return
    if change is Change.GONE:
        watched.waiters = None
    for waiter in waiters:
        waiter.changed(watched, change)
