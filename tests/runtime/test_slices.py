import asyncio
from collections.abc import Generator

import pytest

from ottla.runtime.slices import Slices, in_turns, parts, until_done


@pytest.mark.parametrize(("count", "pauses"), [(0, 0), (3, 0), (4, 1), (7, 2)])
async def test_others_run_after_each_slice(count: int, pauses: int) -> None:
    ran = 0

    async def others() -> None:
        nonlocal ran
        while True:
            ran += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    slices = Slices(3)
    for _ in range(count):
        await slices.count()
    task.cancel()
    assert ran == pauses


def test_parts_of_a_slice() -> None:
    assert list(parts([])) == []
    assert list(parts(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(parts(range(4), 2)) == [[0, 1], [2, 3]]


async def test_steps_take_turns_with_the_loop_until_the_last() -> None:
    steps = [False, True, True]
    until_done(steps.pop)
    assert len(steps) == 2, "the first runs at once"
    await asyncio.sleep(0)
    assert len(steps) == 1
    await asyncio.sleep(0)
    assert steps == []
    await asyncio.sleep(0)


async def test_elements_may_be_counted_together() -> None:
    pauses = 0

    async def others() -> None:
        nonlocal pauses
        while True:
            pauses += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    slices = Slices(3)
    for elements in (2, 1, 3, 4, 1):  # the last three begin a new slice
        await slices.count(elements)
    task.cancel()
    assert pauses == 3


async def test_steps_take_turns_with_others() -> None:
    turns: list[str] = []

    def steps() -> Generator[None, None, str]:
        for _ in range(2):
            turns.append("step")
            yield
        return "done"

    async def other() -> None:
        for _ in range(2):
            turns.append("other")
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    assert await in_turns(steps()) == "done"
    await beside
    assert turns == ["step", "other", "step", "other"]
