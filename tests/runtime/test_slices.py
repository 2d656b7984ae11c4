import asyncio

import pytest

from ottla.runtime.slices import Slices


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
