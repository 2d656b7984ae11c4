"""Large answers take turns: the event loop copies only some megabytes at once.

8 MiB from the page cache and to a socket take 4 ms. With the requests of eight consumers in one
turn of the event loop, everybody else would wait for all of them: 40 ms, and several times as long
on a machine whose cores are shared with the consumers.
"""

from __future__ import annotations

from typing import Final

from ottla.runtime.turns import Turns

MIN_BYTES: Final = 256 << 10
"""Less needs no turn: many consumers get a few kilobytes at a time."""
TURN_BYTES: Final = 4 << 20
"""Of one turn of the event loop. What is begun in it may exceed it: one partition."""
MAX_BYTES: Final = 2 * TURN_BYTES
"""More is read in several turns."""


class ReadTurns:
    """For the event loop's thread only."""

    def __init__(self) -> None:
        self._turns = Turns(TURN_BYTES)

    def has_room(self, size_bytes: int) -> bool:
        """Whether so much may be read now; otherwise `wait` for it."""
        if size_bytes < MIN_BYTES:
            return True
        return size_bytes <= MAX_BYTES and self._turns.try_take(size_bytes)

    async def wait(self, size_bytes: int) -> None:
        """Returns in a turn of the event loop in which so much may be read; in the order of the
        calls.
        """
        await self._turns.wait(size_bytes)
