"""Turns of a share group's states: they are begun, or deleted, never both at once.

A question to a share coordinator is repeated for seconds, and no request says in which order two of
them were decided. If a deletion took effect after the beginning that was decided later, the group
would count on a state that there is not, and nobody could read the partition. If a beginning did
after the deletion of its group, a new group of that name would be fenced by the old one's epoch.
Kafka has no such turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from ottla.protocol.errors import ApiError, ErrorCode

WAIT_S: Final = 15
"""For the questions before: a little more than one of them is asked for with all its tries."""
MAX_WAITING: Final = 1_000
"""Of one group."""
_NOT_YET: Final = "Share coordinators are still asked about this group's states. Try again."


class _Group:
    def __init__(self) -> None:
        self.beginning = 0
        """They share a turn."""
        self.is_deleting = False
        self.deletions = 0
        """With those that wait: nothing begins before them."""
        self.waiting: list[asyncio.Future[None]] = []

    @property
    def is_unused(self) -> bool:
        return not (self.beginning or self.deletions or self.waiting)


class StateTurns:
    """For the event loop's thread only."""

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}

    @asynccontextmanager
    async def beginning(self, group: str) -> AsyncIterator[None]:
        """The turn of a question that begins states, beside others of that kind. Raises ApiError:
        COORDINATOR_NOT_AVAILABLE if it does not come.
        """
        turns = self._groups.setdefault(group, _Group())
        try:
            await _until(turns, lambda: not turns.deletions)
            turns.beginning += 1
            try:
                yield
            finally:
                turns.beginning -= 1
        finally:
            self._changed(group, turns)

    @asynccontextmanager
    async def deleting(self, group: str) -> AsyncIterator[None]:
        """The turn of a deletion, alone; raises the same."""
        turns = self._groups.setdefault(group, _Group())
        turns.deletions += 1
        try:
            await _until(turns, lambda: not (turns.beginning or turns.is_deleting))
            turns.is_deleting = True
            try:
                yield
            finally:
                turns.is_deleting = False
        finally:
            turns.deletions -= 1
            self._changed(group, turns)

    def _changed(self, group: str, turns: _Group) -> None:
        for each in turns.waiting:
            if not each.done():
                each.set_result(None)
        turns.waiting.clear()
        if turns.is_unused and self._groups.get(group) is turns:
            del self._groups[group]


async def _until(turns: _Group, is_free: Callable[[], bool]) -> None:
    if is_free():
        return
    if len(turns.waiting) >= MAX_WAITING:
        raise ApiError(ErrorCode.coordinator_not_available, _NOT_YET)
    try:
        async with asyncio.timeout(WAIT_S):
            while not is_free():
                changed = asyncio.get_running_loop().create_future()
                turns.waiting.append(changed)
                await changed
    except TimeoutError:
        raise ApiError(ErrorCode.coordinator_not_available, _NOT_YET) from None
