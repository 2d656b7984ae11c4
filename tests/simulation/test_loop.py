"""The event loop in virtual time: order, threads, kills and pauses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from simulation.loop import VirtualLoop
from simulation.process import Process


def run(main: Callable[[VirtualLoop], Any], seed: int = 1) -> Any:
    loop = VirtualLoop(Random(seed))
    try:
        return loop.run(lambda: main(loop))
    finally:
        loop.close()


def test_an_hour_of_virtual_time_passes_at_once() -> None:
    async def main(loop: VirtualLoop) -> float:
        await asyncio.sleep(3_600)
        return loop.time()

    assert run(main) == 3_600


def test_callbacks_of_one_process_keep_their_order() -> None:
    async def main(loop: VirtualLoop) -> list[tuple[str, int]]:
        seen: list[tuple[str, int]] = []
        for name in ("a", "b"):
            process = Process(name)
            for number in range(5):
                process.context.run(loop.call_soon, seen.append, (name, number))
        await asyncio.sleep(1)
        return seen

    seen = run(main)
    assert [number for name, number in seen if name == "a"] == list(range(5))
    assert [number for name, number in seen if name == "b"] == list(range(5))
    assert seen == run(main)
    orders = {tuple(run(main, seed)) for seed in range(20)}
    assert len(orders) > 1, "the seed decides which process runs next"


def test_a_killed_process_runs_no_finally() -> None:
    async def main(loop: VirtualLoop) -> list[str]:
        seen: list[str] = []

        async def work() -> None:
            try:
                await asyncio.sleep(10)
            finally:
                seen.append("finally")

        process = Process("a")
        task = loop.start_in(process, work)
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        await asyncio.sleep(1)
        loop.forget(process)
        await asyncio.sleep(60)
        return seen

    assert run(main) == []


def test_a_paused_process_continues_where_it_stopped() -> None:
    async def main(loop: VirtualLoop) -> float:
        async def work() -> float:
            await asyncio.sleep(1)
            return loop.time()

        process = Process("a")
        task = loop.start_in(process, work)
        process.is_paused = True
        await asyncio.sleep(5)
        assert not task.done()
        process.is_paused = False
        ended_at: float = await task
        return ended_at

    # The process notices its timer when it runs again.
    assert run(main) >= 5


def test_a_thread_returns_its_result_or_error_later() -> None:
    async def main(loop: VirtualLoop) -> tuple[str, float, str]:
        result = await asyncio.to_thread(lambda: "done")
        took_s = loop.time()
        try:
            await asyncio.to_thread(int, "no number")
        except ValueError as error:
            return result, took_s, str(error)
        raise AssertionError

    result, took_s, error = run(main)
    assert result == "done"
    assert 0 < took_s < 0.01
    assert "no number" in error


def test_a_cancelled_callback_does_not_run() -> None:
    async def main(loop: VirtualLoop) -> tuple[list[str], float]:
        seen: list[str] = []
        later = loop.call_later(5, seen.append, "later")
        soon = loop.call_soon(seen.append, "soon")
        assert (later.when(), later.cancelled()) == (5, False)
        for handle in (later, soon):
            handle.cancel()
            assert handle.cancelled()
        await asyncio.sleep(10)
        return seen, loop.time()

    assert run(main) == ([], 10)


def test_an_error_in_a_callback_is_reported_and_does_not_end_the_loop() -> None:
    async def main(loop: VirtualLoop) -> list[str]:
        seen: list[str] = []
        loop.set_exception_handler(lambda _, context: seen.append(repr(context["exception"])))
        loop.call_soon(int, "no number")
        await asyncio.sleep(1)
        return seen

    (error,) = run(main)
    assert error.startswith("ValueError(")
