"""How many bytes are read in one turn of the event loop."""

from __future__ import annotations

import asyncio

from ottla.replica.read_turns import MAX_BYTES, MIN_BYTES, TURN_BYTES, ReadTurns


async def test_little_needs_no_turn() -> None:
    turns = ReadTurns()
    assert turns.has_room(TURN_BYTES)
    assert not turns.has_room(MIN_BYTES)
    assert turns.has_room(MIN_BYTES - 1)


async def test_the_next_turn_has_room_again() -> None:
    turns = ReadTurns()
    assert turns.has_room(TURN_BYTES)
    await asyncio.sleep(0)
    assert turns.has_room(TURN_BYTES)


async def test_very_much_is_read_in_several_turns() -> None:
    assert not ReadTurns().has_room(MAX_BYTES + 1)


async def test_those_that_wait_are_served_in_order_some_in_each_turn() -> None:
    turns = ReadTurns()
    served: list[list[int]] = []

    async def read(number: int, size_bytes: int) -> None:
        await turns.wait(size_bytes)
        served[-1].append(number)

    sizes = (TURN_BYTES // 2, TURN_BYTES // 2, MAX_BYTES, MIN_BYTES, 0)
    tasks = [asyncio.create_task(read(number, size)) for number, size in enumerate(sizes)]
    while not all(task.done() for task in tasks):
        served.append([])
        await asyncio.sleep(0)
    assert [each for each in served if each] == [[0, 1], [2], [3, 4]]


async def test_others_do_not_overtake_those_that_wait() -> None:
    turns = ReadTurns()
    waiting = asyncio.create_task(turns.wait(MIN_BYTES))
    await asyncio.sleep(0)
    assert not turns.has_room(MIN_BYTES)
    await asyncio.wait_for(waiting, 10)


async def test_one_that_has_gone_takes_no_turn() -> None:
    turns = ReadTurns()
    gone, other = (asyncio.create_task(turns.wait(MAX_BYTES)) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.wait_for(other, 10)
