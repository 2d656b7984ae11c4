"""The watchdog sees a loop that is held; the tests hold a real one for a moment."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, cast

import pytest

from ottla.node.loop_watchdog import (
    HELD_MS,
    LoopClock,
    LoopWatchdog,
    clock_of_this_thread,
    stack,
)


def hold(milliseconds: float) -> None:
    """Holds the loop, with the global lock free now and then."""
    until = time.monotonic() + milliseconds / 1000
    while time.monotonic() < until:
        pass


async def until_seen(watchdog: LoopWatchdog) -> None:
    async with asyncio.timeout(60):
        while not watchdog.holds:
            await asyncio.sleep(0.01)


async def test_a_held_loop_gets_one_line(caplog: pytest.LogCaptureFixture) -> None:
    watchdog = LoopWatchdog(lambda: "Metadata from 192.0.2.7")
    watchdog.start()
    with caplog.at_level(logging.WARNING, "ottla.loop"):
        hold(4 * HELD_MS)
        await until_seen(watchdog)
    watchdog.stop()
    (line,) = caplog.messages[:1]
    assert "the event loop was held for" in line
    assert "Metadata from 192.0.2.7, in hold (test_loop_watchdog.py:" in line
    assert watchdog.longest_ms >= HELD_MS


async def test_a_loop_that_waits_is_not_held() -> None:
    watchdog = LoopWatchdog(lambda: "")
    watchdog.start()
    began = time.monotonic()
    await asyncio.sleep(5 * HELD_MS / 1000)
    seen = watchdog.holds
    watchdog.stop()
    # A machine that stood still for so long may have been seen.
    assert seen == 0 or time.monotonic() - began > 6 * HELD_MS / 1000


async def test_what_must_not_outlive_a_held_loop_is_given_up() -> None:
    given_up = threading.Event()
    watchdog = LoopWatchdog(lambda: "", give_up=given_up.set, give_up_after_ms=2 * HELD_MS)
    watchdog.start()
    hold(5 * HELD_MS)
    await until_seen(watchdog)
    watchdog.stop()
    assert given_up.is_set()


async def test_a_short_hold_gives_nothing_up() -> None:
    given_up = threading.Event()
    watchdog = LoopWatchdog(lambda: "", give_up=given_up.set, give_up_after_ms=60_000)
    watchdog.start()
    hold(2 * HELD_MS)
    await until_seen(watchdog)
    watchdog.stop()
    assert not given_up.is_set()


async def test_lines_do_not_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    watchdog = LoopWatchdog(lambda: "")
    with caplog.at_level(logging.WARNING, "ottla.loop"):
        for now_ms, held_ms in ((0, 300), (1_000, 250), (2_000, 400), (13_000, 250)):
            watchdog._held(held_ms, held_ms, "", now_ms)
    assert [line.partition(" ms")[0].rpartition(" ")[2] for line in caplog.messages] == [
        "300", "400", "250",
    ]  # fmt: skip
    assert (watchdog.holds, watchdog.longest_ms) == (4, 400)


def test_an_unknown_stack() -> None:
    assert stack(None) == "an unknown place"


async def test_a_stop_ends_a_probe_that_the_loop_cannot_answer() -> None:
    """The loop waits for the thread, and the thread for the loop."""
    watchdog = LoopWatchdog(lambda: "")
    watchdog._stopped.set()
    watchdog._answered.clear()
    clock = clock_of_this_thread()
    watchdog._wait(clock.wall_ms(), 0, clock)


def test_a_thread_that_runs_late_is_no_held_loop() -> None:
    """Loops that pause often take Python's global lock again before the thread has it."""
    watchdog = LoopWatchdog(lambda: "")
    now_ms = 0.0

    class Loop:
        """Answers within 10 ms; the thread sees it after a second. Closed afterwards."""

        is_closed = False

        def call_soon_threadsafe(self, callback: Callable[..., None], *arguments: Any) -> None:
            nonlocal now_ms
            if self.is_closed:
                raise RuntimeError
            self.is_closed = True
            now_ms += 10
            callback(*arguments)
            now_ms += 1_000

    clock = LoopClock(lambda: now_ms, lambda: now_ms)
    watchdog._watch(cast(asyncio.AbstractEventLoop, Loop()), 0, clock)
    assert now_ms == 1_010
    assert watchdog.holds == 0
