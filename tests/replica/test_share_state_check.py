"""What a share coordinator says of a state that a leader has read before."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replica import share_state_check
from ottla.replica.share_state_check import ShareStateCheck
from ottla.runtime.background import Background
from ottla.share.shard import Summary
from ottla.share.share_partition import Write
from ottla.share.stored import ShareKey

KEY = ShareKey("g", UUID(int=7), 0)
LEADER_EPOCH = 3
WRITTEN = Write(8, 2, [])


class Bench:
    """The state has epoch 1 and begins at offset 5."""

    def __init__(self) -> None:
        self.found: Summary | ErrorCode = Summary(1, LEADER_EPOCH, 5, 0)
        self.asked = self.others = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.background = Background(logging.getLogger("tests"), "checking")
        self.check = ShareStateCheck(KEY, LEADER_EPOCH, self, self.background, self.other)
        self.check.read(1, 5)

    async def summary(self, key: ShareKey) -> Summary:
        self.asked += 1
        await self.gate.wait()
        if isinstance(self.found, ErrorCode):
            raise ApiError(self.found)
        return self.found

    def other(self) -> None:
        self.others += 1

    async def ask(self) -> bool:
        """Whether another state is stored."""
        before = self.others
        self.check.begin()
        await self.settle()
        return self.others > before

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    monkeypatch.setattr(share_state_check, "CHECK_S", 0)
    made = Bench()
    yield made
    made.background.cancel()


@pytest.mark.parametrize(
    ("found", "is_other"),
    [
        (Summary(1, LEADER_EPOCH, 5, 2), False),
        (Summary(), True),
        (Summary(2, LEADER_EPOCH, 5, 0), True),
        (Summary(1, 0, 5, 0), True),
        (Summary(1, LEADER_EPOCH + 1, 5, 0), True),
        (Summary(1, LEADER_EPOCH, -1, -1), True),
        (Summary(1, LEADER_EPOCH, 0, 0), True),
        (Summary(1, LEADER_EPOCH, 9, 0), True),
        (ErrorCode.coordinator_not_available, False),
    ],
)
async def test_whether_it_is_another_state(
    bench: Bench, found: Summary | ErrorCode, is_other: bool
) -> None:
    bench.found = found
    assert await bench.ask() is is_other


async def test_what_was_written_since_is_expected(bench: Bench) -> None:
    bench.check.writing()
    bench.check.written(WRITTEN)
    for start, count, is_other in ((8, 2, False), (8, 0, True), (5, 2, True)):
        bench.found = Summary(1, LEADER_EPOCH, start, count)
        assert await bench.ask() is is_other


async def test_after_a_write_that_may_have_failed_the_start_is_not_known(bench: Bench) -> None:
    bench.check.writing()
    for start, is_other in ((5, False), (8, False), (-1, True)):
        bench.found = Summary(1, LEADER_EPOCH, start, 0)
        assert await bench.ask() is is_other


@pytest.mark.parametrize("is_written", [False, True])
async def test_an_answer_that_a_write_has_overtaken_says_nothing(
    bench: Bench, is_written: bool
) -> None:
    bench.gate.clear()
    assert not await bench.ask()
    bench.check.writing()
    if is_written:
        bench.check.written(WRITTEN)
    bench.found = Summary(1, LEADER_EPOCH, 8, 0)
    bench.gate.set()
    await bench.settle()
    assert bench.others == 0


async def test_it_is_asked_once_at_a_time_and_not_often(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.gate.clear()
    await bench.ask()
    assert not bench.check.is_due
    bench.gate.set()
    await bench.settle()
    assert bench.check.is_due
    monkeypatch.setattr(share_state_check, "CHECK_S", 3_600)
    await bench.ask()
    assert not bench.check.is_due
    assert bench.asked == 2
