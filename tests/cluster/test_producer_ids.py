import asyncio
from typing import Any

import pytest

from ottla.cluster.producer_ids import ProducerIds
from ottla.protocol.errors import ApiError, ErrorCode


async def test_no_id_is_assigned_twice_and_blocks_are_used_up_first() -> None:
    reserved: list[Any] = []

    async def reserve() -> tuple[int, int]:
        await asyncio.sleep(0)
        first = 10 * len(reserved)
        reserved.append(first)
        return first, first + 10

    ids = ProducerIds(reserve)
    given = await asyncio.gather(*(ids.next() for _ in range(25)))
    assert sorted(given) == list(range(25))
    assert reserved == [0, 10, 20]


async def test_a_block_reserved_early_needs_no_controller() -> None:
    there = True

    async def reserve() -> tuple[int, int]:
        if not there:
            raise ApiError(ErrorCode.coordinator_load_in_progress)
        return 70, 72

    ids = ProducerIds(reserve)
    await asyncio.gather(ids.fill(), ids.fill())
    there = False
    await ids.fill()
    assert [await ids.next(), await ids.next()] == [70, 71]
    with pytest.raises(ApiError):
        await ids.next()
    there = True
    assert await ids.next() == 70
