"""Simulated time: what is to happen, in the order in which it happens."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from random import Random

Action = Callable[[], None]


class Schedule:
    """Actions by time (ms). Two at the same time happen in the order in which they were given."""

    def __init__(self, random: Random) -> None:
        self.now_ms = 0
        self.random = random
        self.steps = 0
        self._waiting: list[tuple[int, int, Action]] = []
        self._given = 0

    def after(self, delay_ms: int, action: Action) -> None:
        """Let `action` happen in so many milliseconds."""
        self._given += 1
        heapq.heappush(self._waiting, (self.now_ms + max(0, delay_ms), self._given, action))

    def step(self) -> bool:
        """Do what is next; False when nothing is left."""
        if not self._waiting:
            return False
        self.now_ms, _, action = heapq.heappop(self._waiting)
        self.steps += 1
        action()
        return True
