"""Time that a test can advance: an event loop and a clock that are ahead of the machine's.

Everything in a broker that waits does so on its loop, and everything that asks for the time asks
its clock (`runtime.clock`). Both add the same distance to the machine's time. `advance` increases
it in steps, and lets the broker finish after each step what became due.

A step may pass many timers. They fire in their order, and for each it is the time at which it was
due: a group's member expires, and the rebalance that this begins times out later in the same step.
(A timer that fires late would take the broker for one that was paused: `coordinator.timers`.) Work
that repeats after a pause, such as retention, runs once after a step.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import Context
from typing import Any, Final

STEPS: Final = 20
"""Of one `advance`."""
MAX_TURNS: Final = 1_000
"""Turns of the loop to wait after a step; clients may keep the loop busy for longer."""


class AdvancingLoop(asyncio.SelectorEventLoop):
    """asyncio's own loop; uvloop keeps its timers in C, out of reach."""

    def __init__(self, ahead_ms: int = 0) -> None:
        self._ahead_s = ahead_ms / 1000
        self._due_s: float | None = None
        """During `advance`, while a timer's callback runs: when it was due."""
        self._is_advancing = False
        self._in_threads: set[asyncio.Future[Any]] = set()
        super().__init__()

    def time(self) -> float:
        return super().time() + self._ahead_s if self._due_s is None else self._due_s

    @property
    def ahead_ms(self) -> int:
        """How far this loop is ahead of the machine's time."""
        return round((self.time() - super().time()) * 1000)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """As asyncio's; the callback sees the time `when` if `advance` passes it."""
        return super().call_at(when, self._fire, when, callback, args, context=context)

    def _fire(self, when: float, callback: Callable[..., Any], args: tuple[Any, ...]) -> None:
        if not self._is_advancing:
            callback(*args)
            return
        self._due_s = min(when, self.time())
        try:
            callback(*args)
        finally:
            self._due_s = None

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """As asyncio's; remembers the work, so that `advance` can wait for it."""
        future = super().run_in_executor(executor, func, *args)
        self._in_threads.add(future)
        future.add_done_callback(self._in_threads.discard)
        return future

    async def advance(self, by_ms: int) -> None:
        """Let this much time pass at once, and finish what became due. Not for two tasks at once.

        Work in threads that became due is finished too, except for work that waits itself.
        """
        self._is_advancing = True
        try:
            for _ in range(STEPS):
                self._ahead_s += by_ms / 1000 / STEPS
                await self._settle()
        finally:
            self._is_advancing = False

    async def _settle(self) -> None:
        """Wait until no callback is ready and no work runs in a thread."""
        for _ in range(MAX_TURNS):
            await asyncio.sleep(0)
            if self._ready:  # type: ignore[attr-defined]
                continue
            if not self._in_threads:
                return
            await asyncio.wait(self._in_threads, return_when=asyncio.FIRST_COMPLETED)


class AdvancingClock:
    """`runtime.clock.Clock` with the time of the running loop, an AdvancingLoop."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self._ahead_ms()

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000 + self._ahead_ms()

    @staticmethod
    def _ahead_ms() -> int:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, AdvancingLoop)
        return loop.ahead_ms
