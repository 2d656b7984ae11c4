import asyncio

import pytest

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replica.offset_waits import OffsetWaits


async def test_a_move_ends_only_the_waits_it_passed() -> None:
    waits = OffsetWaits()
    tasks = [asyncio.create_task(waits.wait(offset, 60_000)) for offset in (3, 9, 5)]
    await asyncio.sleep(0)
    waits.reached(6)
    await asyncio.gather(tasks[0], tasks[2])
    assert (len(waits), tasks[1].done()) == (1, False)
    waits.reached(10)
    await tasks[1]
    assert len(waits) == 0


async def test_all_waits_fail_with_the_given_error() -> None:
    waits = OffsetWaits()
    tasks = [asyncio.create_task(waits.wait(offset, 60_000)) for offset in (3, 9)]
    await asyncio.sleep(0)
    waits.fail(ApiError(ErrorCode.not_leader_or_follower, "another broker leads"))
    errors = await asyncio.gather(*tasks, return_exceptions=True)
    assert [str(error) for error in errors] == ["another broker leads"] * 2
    assert errors[0] is not errors[1]


async def test_only_the_waits_from_an_offset_on_fail() -> None:
    waits = OffsetWaits()
    tasks = [asyncio.create_task(waits.wait(offset, 60_000)) for offset in (9, 3, 5)]
    await asyncio.sleep(0)
    waits.fail(ApiError(ErrorCode.not_leader_or_follower), from_offset=5)
    await asyncio.sleep(0)
    assert [task.done() for task in tasks] == [True, False, True]
    waits.reached(4)
    await tasks[1]
    assert all(isinstance(tasks[number].exception(), ApiError) for number in (0, 2))


async def test_a_timed_out_wait_leaves_nothing_behind() -> None:
    waits = OffsetWaits()
    for timeout_ms in (0, 1):
        with pytest.raises(ApiError) as refused:
            await waits.wait(1, timeout_ms)
        assert refused.value.code is ErrorCode.request_timed_out
    assert len(waits) == 0
