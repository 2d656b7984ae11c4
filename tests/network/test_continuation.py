import asyncio
from typing import Any

import pytest

from ottla.network.continuation import carried_on


def begin(future: asyncio.Future[str]) -> tuple[Any, Any]:
    """A coroutine that waits twice, and what it waits for first."""

    async def work() -> list[str]:
        try:
            first = await future
        except asyncio.CancelledError:
            first = "cancelled"
        await asyncio.sleep(0)
        return [first, "end"]

    coroutine = work()
    return coroutine, coroutine.send(None)


async def test_the_rest_of_a_coroutine_runs_in_this_task() -> None:
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    coroutine, waits_for = begin(future)
    asyncio.get_running_loop().call_soon(future.set_result, "done")
    assert await carried_on(coroutine, waits_for, None) == ["done", "end"]


async def test_an_error_ends_the_wait() -> None:
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    coroutine, waits_for = begin(future)
    result = await carried_on(coroutine, waits_for, asyncio.CancelledError())
    assert result == ["cancelled", "end"]
    assert future.cancelled()


async def test_an_error_of_the_coroutine_is_raised() -> None:
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    coroutine, waits_for = begin(future)
    with pytest.raises(ValueError, match="bad"):
        await carried_on(coroutine, waits_for, ValueError("bad"))
