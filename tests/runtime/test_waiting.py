import asyncio

from ottla.runtime.waiting import Waiter, Watcher, wake


class Watched:
    def __init__(self) -> None:
        self.waiters: dict[Watcher, None] | None = None


async def test_a_change_wakes_and_ends_the_watching() -> None:
    one, other = Watched(), Watched()
    waiting = asyncio.ensure_future(Waiter([one, other]).wait(60_000))
    await asyncio.sleep(0)
    wake(other)
    wake(other)
    assert await waiting is True
    assert one.waiters is None
    assert other.waiters is None


async def test_time_ends_the_waiting() -> None:
    watched = Watched()
    assert await Waiter([watched]).wait(1) is False
    assert watched.waiters is None


async def test_a_waiter_that_is_cancelled_leaves_nothing_behind() -> None:
    watched = Watched()
    waiting = asyncio.ensure_future(Waiter([watched]).wait(60_000))
    other = asyncio.ensure_future(Waiter([watched]).wait(60_000))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert watched.waiters is not None
    assert len(watched.waiters) == 1
    wake(watched)
    assert await other is True


async def test_waking_nobody_leaves_nothing_behind() -> None:
    watched = Watched()
    wake(watched)
    assert not watched.waiters
