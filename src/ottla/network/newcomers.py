"""Connections that have not shown yet who they are, of all listeners, in the order of arrival.

A client could open them and send nothing. So each has a deadline, and when there are too
many, the oldest has to go: a client that means it is done within milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

MAX_NEWCOMERS: Final = 1000
HANDSHAKE_WITHIN_MS: Final = 10_000
"""Of TLS, from the connection on."""
AUTHENTICATED_WITHIN_MS: Final = 30_000
"""From the connection on, without the handshake of TLS."""


class Newcomers:
    """For the event loop's thread only."""

    def __init__(self, maximum: int = MAX_NEWCOMERS) -> None:
        self.expelled = 0
        """How many had to go for others."""
        self.maximum = maximum
        self._waiting: dict[Hashable, Callable[[], object]] = {}

    def add(self, newcomer: Hashable, end: Callable[[], object]) -> None:
        """`end` is called if it has to go."""
        if len(self._waiting) >= self.maximum:
            oldest = next(iter(self._waiting))
            self.expelled += 1
            self._waiting.pop(oldest)()
        self._waiting[newcomer] = end

    def remove(self, newcomer: Hashable) -> None:
        """It has shown who it is, or has gone; it may have been removed already."""
        self._waiting.pop(newcomer, None)

    def __len__(self) -> int:
        return len(self._waiting)
