import asyncio
import threading
from typing import Any

import pytest

from ottla.broker.group_flush import GroupFlush


class Disk:
    """A log whose fsync waits to be let through."""

    def __init__(self) -> None:
        self.appended = 0
        self.begun = 0
        self.flushes = 0
        self.gate = threading.Semaphore(0)
        self.broken = False

    def group(self) -> GroupFlush["Flush"]:
        return GroupFlush(lambda: Flush(self), lambda flush: flush.reached)


class Flush:
    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.disk.begun += 1
        self.reached = disk.appended

    def run(self) -> None:
        assert self.disk.gate.acquire(timeout=10)
        self.disk.flushes += 1
        if self.disk.broken:
            raise OSError(5, "Input/output error")


async def test_many_appends_share_one_flush(eventually: Any) -> None:
    disk = Disk()
    group = disk.group()
    disk.appended = 1
    first = asyncio.ensure_future(group.reached(1))
    await eventually(lambda: disk.begun == 1)
    disk.appended = 50
    others = [asyncio.ensure_future(group.reached(offset)) for offset in range(2, 51)]
    disk.gate.release(2)
    await asyncio.gather(first, *others)
    assert disk.flushes == 2
    await group.reached(50)
    assert disk.flushes == 2


async def test_a_failed_flush_fails_all_who_waited_and_the_next_tries_again() -> None:
    disk = Disk()
    group = disk.group()
    disk.appended, disk.broken = 1, True
    waiting = [asyncio.ensure_future(group.reached(1)) for _ in range(3)]
    disk.gate.release(3)
    for each in waiting:
        with pytest.raises(OSError, match="Input/output"):
            await each
    disk.broken = False
    disk.gate.release()
    await group.reached(1)


async def test_one_who_goes_away_does_not_end_the_flush_of_others() -> None:
    disk = Disk()
    group = disk.group()
    disk.appended = 1
    leaving = asyncio.ensure_future(group.reached(1))
    staying = asyncio.ensure_future(group.reached(1))
    await asyncio.sleep(0.01)
    leaving.cancel()
    disk.gate.release()
    await staying
    assert disk.flushes == 1
