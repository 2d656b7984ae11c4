"""Threads are bounded, and so is what waits for them."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ottla.console.errors import BusyError
from ottla.console.workers import Workers


async def test_what_a_function_returns_and_raises() -> None:
    workers = Workers(1, 1)
    assert await workers.run(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await workers.run(lambda: 1 // 0)
    assert await workers.run(threading.get_ident) != threading.get_ident()
    workers.close()


async def test_one_too_many_is_refused_at_once() -> None:
    workers, free = Workers(1, 1), threading.Event()
    waiting = [asyncio.create_task(workers.run(lambda: free.wait(30))) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(BusyError):
        await workers.run(lambda: 0)
    free.set()
    assert await asyncio.gather(*waiting) == [True, True]
    assert await workers.run(lambda: 7) == 7
    workers.close()


async def test_a_visitor_who_left_counts_until_his_thread_is_done() -> None:
    workers, free, begun = Workers(1, 0), threading.Event(), threading.Event()

    def work() -> bool:
        begun.set()
        return free.wait(30)

    left = asyncio.create_task(workers.run(work))
    await asyncio.to_thread(begun.wait, 30)
    left.cancel()
    await asyncio.gather(left, return_exceptions=True)
    with pytest.raises(BusyError):
        await workers.run(lambda: 0)
    free.set()
    while workers.waiting:
        await asyncio.sleep(0.01)
    assert await workers.run(lambda: 7) == 7
    workers.close()
