import asyncio

from ottla.runtime.turns import Turns


async def test_so_many_begin_in_a_turn_of_the_loop_in_their_order() -> None:
    turns = Turns(2)
    begun: list[int] = []

    async def begin(number: int) -> None:
        await turns.take()
        begun.append(number)

    tasks = [asyncio.create_task(begin(number)) for number in range(5)]
    seen = []
    while len(begun) < 5:
        await asyncio.sleep(0)
        seen.append(len(begun))
    assert begun == [0, 1, 2, 3, 4]
    assert sorted(set(seen)) == [2, 4, 5]
    await asyncio.gather(*tasks)


async def test_one_that_comes_later_does_not_overtake() -> None:
    turns = Turns(1)
    await turns.take()
    begun: list[str] = []

    async def begin(name: str) -> None:
        await turns.take()
        begun.append(name)

    tasks = [asyncio.create_task(begin(name)) for name in ("first", "second")]
    while not begun:
        await asyncio.sleep(0)
    tasks.append(asyncio.create_task(begin("third")))
    await asyncio.gather(*tasks)
    assert begun == ["first", "second", "third"]


async def test_one_whose_client_left_takes_no_turn() -> None:
    turns = Turns(1)
    first, left, stays = (asyncio.create_task(turns.take()) for _ in range(3))
    await asyncio.sleep(0)
    assert first.done()
    assert not left.done()
    left.cancel()
    async with asyncio.timeout(60):
        await stays
    assert left.cancelled()
    async with asyncio.timeout(60):
        await turns.take()
