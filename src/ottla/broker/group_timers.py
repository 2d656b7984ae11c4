"""The timers of one shard of groups, on the event loop.

A heartbeat moves its member's timer a few seconds on, thousands of times for each time that one
runs out; so a timer that is moved later is left as it is, and looks at its new time when it fires.
There is one timer a key, so as many as there are members, and two a group.

An event loop that was held up (a debugger, SIGSTOP, a busy machine) fires its timers before it
reads the heartbeats that came meanwhile. So a timer that is late waits a moment more: it was us who
were not heard of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ottla.groups.step import TimerEvent, TimerKey

LATE_S: Final = 0.25
MOMENT_S: Final = 0.25


@dataclass(slots=True)
class _Timer:
    due_s: float
    event: TimerEvent
    fires_s: float
    """When the handle fires; uvloop gives handles that cannot tell (a delay of 0)."""
    handle: asyncio.TimerHandle


class GroupTimers:
    """Calls `fire(event)` when a timer has run out."""

    def __init__(self, fire: Callable[[TimerEvent], None]) -> None:
        self._fire = fire
        self._timers: dict[TimerKey, _Timer] = {}
        self._loop = asyncio.get_running_loop()

    def __len__(self) -> int:
        return len(self._timers)

    def set(self, key: TimerKey, delay_ms: int, event: TimerEvent) -> None:
        """Sets the timer of this key, or moves it."""
        due_s = self._loop.time() + delay_ms / 1000
        timer = self._timers.get(key)
        if timer is None:
            handle = self._loop.call_at(due_s, self._look, key)
            self._timers[key] = _Timer(due_s, event, due_s, handle)
            return
        if due_s < timer.fires_s:
            timer.handle.cancel()
            timer.fires_s = due_s
            timer.handle = self._loop.call_at(due_s, self._look, key)
        timer.due_s = due_s
        timer.event = event

    def cancel(self, key: TimerKey) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.handle.cancel()

    def cancel_all(self) -> None:
        for timer in self._timers.values():
            timer.handle.cancel()
        self._timers.clear()

    def _look(self, key: TimerKey) -> None:
        timer = self._timers[key]
        now_s = self._loop.time()
        if now_s - timer.due_s > LATE_S:
            timer.due_s = now_s + MOMENT_S
        if timer.due_s > timer.fires_s:
            timer.fires_s = timer.due_s
            timer.handle = self._loop.call_at(timer.due_s, self._look, key)
            return
        del self._timers[key]
        self._fire(timer.event)
