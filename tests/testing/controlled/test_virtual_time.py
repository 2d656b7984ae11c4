"""Timers that fall due while time is advanced."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from ottla.runtime.clock import SystemClock
from ottla.testing.controlled.virtual_time import STEPS, AdvancingClock, AdvancingLoop

HOUR_MS = 3_600_000


def run(main: Callable[[AdvancingLoop], Coroutine[Any, Any, Any]]) -> Any:
    with asyncio.Runner(loop_factory=AdvancingLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, AdvancingLoop)
        return runner.run(main(loop))


def test_timers_fire_in_order_and_those_they_start_too() -> None:
    async def main(loop: AdvancingLoop) -> list[str]:
        fired: list[str] = []

        began_s = loop.time()

        def fires(name: str) -> None:
            fired.append(f"{name} at {loop.time() - began_s:.0f}")
            if name == "session":
                loop.call_later(300, fires, "rebalance")

        loop.call_later(45, fires, "session")
        loop.call_later(60, fires, "other")
        loop.call_later(400, fires, "later")
        far = loop.call_later(7200, fires, "too far")
        await loop.advance(HOUR_MS)
        far.cancel()
        return fired

    assert run(main) == ["session at 45", "other at 60", "rebalance at 345", "later at 400"]


def test_work_after_a_pause_is_done() -> None:
    async def main(loop: AdvancingLoop) -> list[str]:
        done: list[str] = []

        async def work() -> None:
            await asyncio.sleep(60)
            done.append("first")
            await asyncio.sleep(60)
            done.append("second")

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        await loop.advance(HOUR_MS)
        await task
        return done

    assert run(main) == ["first", "second"]


def test_both_clocks_are_ahead_of_the_machine() -> None:
    async def main(loop: AdvancingLoop) -> None:
        clock = AdvancingClock()
        before = SystemClock()
        wall_ms, monotonic_ms = before.now_ms(), before.monotonic_ms()
        await loop.advance(25 * HOUR_MS)
        assert clock.now_ms() >= wall_ms + 25 * HOUR_MS
        assert clock.monotonic_ms() >= monotonic_ms + 25 * HOUR_MS
        assert loop.ahead_ms == 25 * HOUR_MS

    run(main)


def test_work_in_threads_that_became_due_is_finished() -> None:
    async def main(loop: AdvancingLoop) -> None:
        done = threading.Event()

        async def work() -> None:
            await asyncio.sleep(60)
            await asyncio.to_thread(done.set)

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        await loop.advance(HOUR_MS)
        assert done.is_set()
        await task

    run(main)


def test_work_that_repeats_often_is_not_repeated_for_each_interval() -> None:
    async def main(loop: AdvancingLoop) -> int:
        rounds = 0

        async def repeat() -> None:
            nonlocal rounds
            while True:
                await asyncio.sleep(1)
                rounds += 1

        task = asyncio.create_task(repeat())
        await asyncio.sleep(0)
        await loop.advance(HOUR_MS)
        task.cancel()
        return rounds

    assert 1 <= run(main) <= STEPS + 1
