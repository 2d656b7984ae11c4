"""One at a time, and others while one waits for an answer."""

from __future__ import annotations

import asyncio

import pytest

from ottla.runtime.one_at_a_time import MAX_AWAY, OneAtATime


async def test_one_at_a_time() -> None:
    turns, order = OneAtATime(), []

    async def work(name: str) -> None:
        async with turns.next():
            order.append(f"{name} begins")
            await asyncio.sleep(0)
            order.append(f"{name} ends")

    await asyncio.gather(work("one"), work("two"))
    assert order == ["one begins", "one ends", "two begins", "two ends"]
    assert not turns.is_taken


async def test_who_waits_for_an_answer_lets_others_pass() -> None:
    turns, answers = OneAtATime(), [asyncio.get_running_loop().create_future() for _ in range(2)]
    at_work: list[int] = []

    async def work(number: int) -> None:
        async with turns.next() as turn:
            await turn.away(answers[number])
            at_work.append(number)
            await asyncio.sleep(0)
            assert turns.is_taken

    both = [asyncio.create_task(work(number)) for number in range(2)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not turns.is_taken
    answers[1].set_result(None)
    await both[1]
    assert at_work == [1]
    answers[0].set_result(None)
    await both[0]
    assert at_work == [1, 0]


async def test_no_more_than_a_few_are_away() -> None:
    turns, answer = OneAtATime(), asyncio.get_running_loop().create_future()

    async def work() -> None:
        async with turns.next() as turn:
            await turn.away(answer)

    tasks = [asyncio.create_task(work()) for _ in range(MAX_AWAY + 1)]
    for _ in range(4 * MAX_AWAY):
        await asyncio.sleep(0)
    assert turns.is_taken
    answer.set_result(None)
    await asyncio.gather(*tasks)
    assert not turns.is_taken


@pytest.mark.parametrize("is_back", [False, True])
async def test_one_that_is_cancelled_takes_no_turn_of_others(is_back: bool) -> None:
    turns, answer = OneAtATime(), asyncio.get_running_loop().create_future()

    async def work() -> None:
        async with turns.next() as turn:
            await turn.away(answer)

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    async with turns.next():
        if is_back:
            answer.set_result(None)
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task], timeout=0)
        assert turns.is_taken
    await asyncio.wait([task])
    assert task.cancelled()
    assert not turns.is_taken
