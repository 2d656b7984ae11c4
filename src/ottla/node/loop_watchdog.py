"""Watches the event loop from a thread: who holds it answers nobody else.

The thread sends the loop a callback and waits for it. When the callback is late, the thread writes
one line with the last request and where the loop is, and another when the loop goes on. A broker
that holds its loop for longer than its ZooKeeper session's timeout would keep its leaderships for
ever, because the session is fed by another thread. So the session ends then, and others lead.

The loop's CPU time tells a loop that works from a machine that is busy or was suspended. The
callback notes when it ran: the thread itself may run much later, because a loop that pauses often
takes Python's global lock again before a waiting thread has it.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Final, NamedTuple

logger = logging.getLogger("ottla.loop")

HELD_MS: Final = 200
"""Longer is worth a line."""
PROBE_INTERVAL_MS: Final = 100
MAX_FRAMES: Final = 6
MIN_LINE_INTERVAL_MS: Final = 10_000
"""Lines in between are counted, not written, but for longer holds than the one before."""


class LoopClock(NamedTuple):
    """Two clocks of the watched loop, in ms; for any thread."""

    wall_ms: Callable[[], float]
    cpu_ms: Callable[[], float]
    """CPU time of the loop's thread. Where the system does not tell it, that of the process."""


def clock_of_this_thread() -> LoopClock:
    """For the loop's thread."""

    def wall_ms() -> float:
        return time.monotonic() * 1000

    if hasattr(time, "pthread_getcpuclockid"):
        clock = time.pthread_getcpuclockid(threading.get_ident())
        return LoopClock(wall_ms, lambda: time.clock_gettime(clock) * 1000)
    return LoopClock(wall_ms, lambda: time.process_time() * 1000)


class LoopWatchdog:
    """One thread for one loop. `start` and `stop` belong on the loop's thread."""

    def __init__(
        self,
        last_request: Callable[[], str],
        *,
        give_up: Callable[[], None] | None = None,
        give_up_after_ms: int = 0,
    ) -> None:
        """`last_request` describes the request that the loop began last. `give_up` ends what must
        not outlive a held loop, after `give_up_after_ms`; both are called in the thread.
        """
        self.holds = 0
        """How often the loop was held for HELD_MS and more."""
        self.longest_ms = 0
        self._last_request = last_request
        self._give_up = give_up
        self._give_up_after_ms = give_up_after_ms
        self._answered = threading.Event()
        self._answered_ms = 0.0, 0.0
        """By both clocks, when the loop ran the last callback."""
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._line_ms = float("-inf")
        self._line_held_ms = 0.0

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._thread = threading.Thread(
            target=self._watch,
            args=(loop, threading.get_ident(), clock_of_this_thread()),
            name="loop-watchdog",
            daemon=True,
        )
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._answered.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self, loop: asyncio.AbstractEventLoop, thread_id: int, clock: LoopClock) -> None:
        while not self._stopped.wait(PROBE_INTERVAL_MS / 1000):
            self._answered.clear()
            begun_ms, cpu_ms = clock.wall_ms(), clock.cpu_ms()
            try:
                loop.call_soon_threadsafe(self._answer, clock)
            except RuntimeError:
                return  # the loop is closed
            where = self._wait(begun_ms, thread_id, clock)
            if self._stopped.is_set():
                return
            answered_ms, answered_cpu_ms = self._answered_ms
            held_ms = answered_ms - begun_ms
            if held_ms >= HELD_MS:
                self._held(held_ms, answered_cpu_ms - cpu_ms, where, clock.wall_ms())

    def _answer(self, clock: LoopClock) -> None:
        self._answered_ms = clock.wall_ms(), clock.cpu_ms()
        self._answered.set()

    def _wait(self, begun_ms: float, thread_id: int, clock: LoopClock) -> str:
        """Waits for the loop's answer; returns where the loop was when it was late."""
        where, gave_up = "", False
        # The loop answers no more while it waits in `stop`.
        while not self._answered.wait(HELD_MS / 1000) and not self._stopped.is_set():
            if not where:
                where = f"{self._last_request()}, in {stack(sys._current_frames().get(thread_id))}"
            held_ms = clock.wall_ms() - begun_ms
            if self._give_up is not None and not gave_up and held_ms >= self._give_up_after_ms:
                gave_up = True
                logger.error(
                    "the event loop is held for %.1f s, longer than the ZooKeeper session's "
                    "timeout: the session ends, and other brokers lead (%s)",
                    held_ms / 1000, where,
                )  # fmt: skip
                self._give_up()
        # Code that holds Python's global lock keeps this thread from looking.
        return where or f"{self._last_request()}, in code that no other thread could interrupt"

    def _held(self, held_ms: float, cpu_ms: float, where: str, now_ms: float) -> None:
        self.holds += 1
        self.longest_ms = max(self.longest_ms, round(held_ms))
        if now_ms - self._line_ms < MIN_LINE_INTERVAL_MS and held_ms <= self._line_held_ms:
            return
        self._line_ms, self._line_held_ms = now_ms, held_ms
        logger.warning(
            "the event loop was held for %.0f ms (%.0f ms of CPU), and no other client was "
            "answered; the last request: %s",
            held_ms, cpu_ms, where,
        )  # fmt: skip


def stack(frame: FrameType | None) -> str:
    """The innermost calls of a stack, the last one first."""
    if frame is None:
        return "an unknown place"
    calls = traceback.extract_stack(frame)[-MAX_FRAMES:]
    return " < ".join(
        f"{each.name} ({each.filename.rpartition('/')[2]}:{each.lineno})"
        for each in reversed(calls)
    )
