import asyncio
import logging
from typing import Any

import pytest

from ottla.runtime.background import Background


@pytest.fixture
def background(monkeypatch: pytest.MonkeyPatch) -> Background:
    monkeypatch.setattr("ottla.runtime.background.RESTART_AFTER_MS", 1)
    return Background(logging.getLogger("ottla.test"), "the part")


class Work:
    """Fails for the first `bugs` times, then lasts."""

    def __init__(self, bugs: int) -> None:
        self.bugs = bugs
        self.begun = 0
        self.ended = 0

    async def run(self) -> None:
        self.begun += 1
        try:
            await asyncio.sleep(0)
            if self.begun <= self.bugs:
                raise RuntimeError("a bug of ours")
            await asyncio.Event().wait()
        finally:
            self.ended += 1


async def test_lasting_work_lasts_until_the_close(background: Background) -> None:
    work = Work(0)
    background.keep(work.run)
    await asyncio.sleep(0.01)
    assert (work.begun, work.ended, len(background)) == (1, 0, 1)
    await background.close()
    assert (work.begun, work.ended, len(background)) == (1, 1, 0)


async def test_lasting_work_that_fails_is_told_and_begun_anew(
    background: Background, caplog: pytest.LogCaptureFixture, eventually: Any
) -> None:
    work = Work(2)
    background.keep(work.run)
    await eventually(lambda: work.begun == 3)
    assert caplog.text.count("the part failed; restarting in 1 ms") == 2
    assert "RuntimeError: a bug of ours" in caplog.text
    await background.close()
    assert work.ended == 3


async def test_work_that_ends_by_itself_is_not_begun_anew(
    background: Background, caplog: pytest.LogCaptureFixture, eventually: Any
) -> None:
    work = Work(1)
    background.spawn(work.run())
    background.spawn(asyncio.sleep(0))
    await eventually(lambda: len(background) == 0)
    await asyncio.sleep(0.01)
    assert work.begun == 1
    assert caplog.text.count("the part failed\n") == 1


async def test_what_fails_at_the_close_stays_closed(background: Background) -> None:
    work = Work(1)
    background.keep(work.run)
    await asyncio.sleep(0)  # it is about to fail
    await background.close()
    await asyncio.sleep(0.01)
    assert (work.begun, len(background)) == (1, 0)


async def test_a_task_may_end_all(background: Background, eventually: Any) -> None:
    other = Work(0)
    background.keep(other.run)

    async def end() -> None:
        background.cancel()

    background.spawn(end())
    await eventually(lambda: len(background) == 0)
    assert other.ended == 1
