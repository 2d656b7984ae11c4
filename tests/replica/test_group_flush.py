import asyncio
import threading
from typing import Any

import pytest

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replica.group_flush import GroupFlush

WAIT_MS = 60_000


class Disk:
    """A log whose fsync waits for a signal."""

    def __init__(self) -> None:
        self.appended = 0
        self.begun = 0
        self.flushes = 0
        self.gate = threading.Semaphore(0)
        self.broken = False
        self.failures: list[ApiError] = []

    def group(self) -> GroupFlush["Flush"]:
        return GroupFlush(lambda: Flush(self), self.end, self.failures.append)

    def end(self, flush: "Flush") -> int:
        return min(flush.up_to_offset, self.appended)


class Flush:
    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.disk.begun += 1
        self.up_to_offset = disk.appended

    def run(self) -> None:
        assert self.disk.gate.acquire(timeout=60)
        self.disk.flushes += 1
        if self.disk.broken:
            raise ApiError(ErrorCode.kafka_storage_error, "Input/output error")


async def test_many_appends_share_one_flush(eventually: Any) -> None:
    disk = Disk()
    group = disk.group()
    disk.appended = 1
    first = asyncio.ensure_future(group.reached(1, WAIT_MS))
    await eventually(lambda: disk.begun == 1)
    disk.appended = 50
    others = [asyncio.ensure_future(group.reached(offset, WAIT_MS)) for offset in range(2, 51)]
    disk.gate.release(2)
    await asyncio.gather(first, *others)
    assert disk.flushes == 2


async def test_a_failed_flush_fails_all_waits_and_the_next_retries() -> None:
    disk = Disk()
    group = disk.group()
    disk.appended, disk.broken = 1, True
    waiting = [asyncio.ensure_future(group.reached(1, WAIT_MS)) for _ in range(3)]
    disk.gate.release(3)
    for each in waiting:
        with pytest.raises(ApiError, match="Input/output"):
            await each
    assert [str(error) for error in disk.failures] == ["Input/output error"]
    disk.broken = False
    disk.gate.release()
    await group.reached(1, WAIT_MS)


async def test_a_cancelled_wait_does_not_end_the_flush_of_others(eventually: Any) -> None:
    disk = Disk()
    group = disk.group()
    disk.appended = 1
    leaving = asyncio.ensure_future(group.reached(1, WAIT_MS))
    staying = asyncio.ensure_future(group.reached(1, WAIT_MS))
    await eventually(lambda: disk.begun == 1)
    leaving.cancel()
    disk.gate.release()
    await staying
    assert disk.flushes == 1


async def test_a_wait_past_the_truncated_end_fails(eventually: Any) -> None:
    """No number of fsyncs would ever reach it."""
    disk = Disk()
    group = disk.group()
    disk.appended = 9
    waiting = [asyncio.ensure_future(group.reached(offset, WAIT_MS)) for offset in (4, 9)]
    await eventually(lambda: disk.begun == 1)
    disk.appended = 5
    disk.gate.release(2)
    await waiting[0]
    with pytest.raises(ApiError) as refused:
        await waiting[1]
    assert refused.value.code is ErrorCode.not_leader_or_follower
    assert disk.flushes <= 2


async def test_a_wait_ends_at_its_deadline_but_the_flush_continues(eventually: Any) -> None:
    disk = Disk()
    group = disk.group()
    disk.appended = 1
    with pytest.raises(ApiError) as refused:
        await group.reached(1, 1)
    assert refused.value.code is ErrorCode.request_timed_out
    staying = asyncio.ensure_future(group.reached(1, WAIT_MS))
    disk.gate.release()
    await staying
    assert (disk.begun, disk.flushes) == (1, 1)


async def test_all_waits_end_with_the_given_error(eventually: Any) -> None:
    disk = Disk()
    group = disk.group()
    disk.appended = 1
    waiting = asyncio.ensure_future(group.reached(1, WAIT_MS))
    await eventually(lambda: disk.begun == 1)
    group.fail(ApiError(ErrorCode.not_leader_or_follower))
    with pytest.raises(ApiError) as refused:
        await waiting
    assert refused.value.code is ErrorCode.not_leader_or_follower
    disk.gate.release()
    await eventually(lambda: group._running is None)
