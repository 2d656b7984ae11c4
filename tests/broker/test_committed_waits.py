import asyncio

import pytest

from ottla.broker.committed_waits import CommittedWaits
from ottla.protocol.errors import ApiError, ErrorCode


async def test_the_high_watermark_answers_what_it_has_passed_and_no_more() -> None:
    waits = CommittedWaits()
    tasks = [asyncio.create_task(waits.wait(offset, 60_000)) for offset in (3, 9, 5)]
    await asyncio.sleep(0)
    waits.reached(6)
    await asyncio.gather(tasks[0], tasks[2])
    assert (len(waits), tasks[1].done()) == (1, False)
    waits.reached(10)
    await tasks[1]
    assert len(waits) == 0


async def test_all_end_with_the_error_given() -> None:
    waits = CommittedWaits()
    tasks = [asyncio.create_task(waits.wait(offset, 60_000)) for offset in (3, 9)]
    await asyncio.sleep(0)
    waits.fail(ErrorCode.not_leader_or_follower)
    codes = [error.code for error in await asyncio.gather(*tasks, return_exceptions=True)]  # type: ignore[union-attr]
    assert codes == [ErrorCode.not_leader_or_follower] * 2


async def test_the_time_is_up_and_nothing_stays_behind() -> None:
    waits = CommittedWaits()
    for timeout_ms in (0, 1):
        with pytest.raises(ApiError) as refused:
            await waits.wait(1, timeout_ms)
        assert refused.value.code is ErrorCode.request_timed_out
    assert len(waits) == 0
