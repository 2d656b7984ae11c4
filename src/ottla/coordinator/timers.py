"""The timers of one shard, on the event loop: one for each key.

Most timers are moved long before they expire: a heartbeat moves its member's timer a few seconds
on. So a timer that is moved later keeps its handle, and checks its new time when that fires.

An event loop that was stalled (a debugger, SIGSTOP, a busy machine) fires its timers before it
reads the heartbeats that came meanwhile. So a timer that fires late waits a little longer: it was
this broker that did not listen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final

LATE_S: Final = 0.25
MORE_S: Final = 0.25


@dataclass(slots=True)
class _Timer:
    due_s: float
    event: Any
    fires_s: float
    """When the handle fires; uvloop has handles without a time (a delay of 0)."""
    handle: asyncio.TimerHandle


class ShardTimers:
    """Calls `fire(event)` when a timer has expired."""

    def __init__(self, fire: Callable[[Any], None]) -> None:
        self._fire = fire
        self._timers: dict[Hashable, _Timer] = {}
        self._loop = asyncio.get_running_loop()

    def __len__(self) -> int:
        return len(self._timers)

    def set(self, key: Hashable, delay_ms: int, event: Any) -> None:
        """Sets the timer of this key, or moves it."""
        due_s = self._loop.time() + delay_ms / 1000
        timer = self._timers.get(key)
        if timer is None:
            handle = self._loop.call_at(due_s, self._check, key)
            self._timers[key] = _Timer(due_s, event, due_s, handle)
            return
        if due_s < timer.fires_s:
            timer.handle.cancel()
            timer.fires_s = due_s
            timer.handle = self._loop.call_at(due_s, self._check, key)
        timer.due_s = due_s
        timer.event = event

    def cancel(self, key: Hashable) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.handle.cancel()

    def cancel_all(self) -> None:
        for timer in self._timers.values():
            timer.handle.cancel()
        self._timers.clear()

    def _check(self, key: Hashable) -> None:
        timer = self._timers[key]
        now_s = self._loop.time()
        if now_s - timer.due_s > LATE_S:
            timer.due_s = now_s + MORE_S
        if timer.due_s > timer.fires_s:
            timer.fires_s = timer.due_s
            timer.handle = self._loop.call_at(timer.due_s, self._check, key)
            return
        del self._timers[key]
        self._fire(timer.event)
