"""The waits of one log, with a real log on disk and a sync that waits for a signal."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ottla.controller.image import PartitionState
from ottla.log.flush import FlushTask
from ottla.log.log import Log
from ottla.log.truncation import truncate_to
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replica.acknowledgement import Acknowledgement, wants_flush
from ottla.replica.partition_host import PartitionHost
from ottla.replica.partition_role import PartitionRole
from ottla.replication.leader import FetchingReplica

WAIT_MS = 60_000


@pytest.fixture
def log(log: Log) -> Log:
    log.config = replace(log.config, flush_messages=1)
    return log


@pytest.fixture
def failures() -> list[ApiError]:
    """The flushes that failed."""
    return []


@pytest.fixture
def acknowledgement(
    log: Log, role: PartitionRole, host: PartitionHost, failures: list[ApiError]
) -> Acknowledgement:
    return Acknowledgement(log, role, host.clock, failures.append)


@pytest.fixture
def append(write: Callable[..., bytes]) -> Callable[..., None]:
    def batches(count: int = 1) -> None:
        for _ in range(count):
            write(b"v")

    return batches


class Sync:
    """Each sync waits in its thread for `release`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = 0
        self._gate = threading.Semaphore(0)
        run = FlushTask.run

        def gated(task: FlushTask) -> None:
            self.begun += 1
            assert self._gate.acquire(timeout=60)
            run(task)

        monkeypatch.setattr(FlushTask, "run", gated)
        self.release = self._gate.release


@pytest.fixture
def sync(monkeypatch: pytest.MonkeyPatch) -> Sync:
    return Sync(monkeypatch)


async def code_of(waiting: Any) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        async with asyncio.timeout(60):
            await waiting
    return refused.value.code


async def test_no_wait_for_records_on_disk(
    log: Log, acknowledgement: Acknowledgement, append: Callable[..., None], sync: Sync
) -> None:
    append()
    assert wants_flush(log)
    waiting = asyncio.create_task(acknowledgement.by_leader(0, 0, WAIT_MS))
    sync.release()
    await waiting
    assert not wants_flush(log)
    await acknowledgement.by_leader(0, 0, 0)
    await acknowledgement.by_all(0, 0, 0)
    assert sync.begun == 1


def cut(log: Log, acknowledgement: Acknowledgement) -> None:
    truncate_to(log, 0, now_ms=1)


def close(log: Log, acknowledgement: Acknowledgement) -> None:
    log.deleted(log.folder)


def lose(log: Log, acknowledgement: Acknowledgement) -> None:
    acknowledgement.fail(ApiError(ErrorCode.not_leader_or_follower))


@pytest.mark.parametrize("happens", [cut, close, lose])
async def test_a_wait_for_the_disk_ends_when_the_records_are_lost(
    log: Log,
    acknowledgement: Acknowledgement,
    append: Callable[..., None],
    sync: Sync,
    eventually: Any,
    happens: Callable[[Log, Acknowledgement], None],
) -> None:
    append(2)
    waiting = asyncio.create_task(acknowledgement.by_leader(1, 0, WAIT_MS))
    await eventually(lambda: sync.begun == 1)
    happens(log, acknowledgement)
    for _ in range(2):
        sync.release()
    assert await code_of(waiting) is ErrorCode.not_leader_or_follower
    flush: Any = acknowledgement._flush
    await eventually(lambda: flush._running is None)
    assert sync.begun <= 2, "one fsync after another"


async def test_a_wait_for_the_disk_has_a_deadline(
    acknowledgement: Acknowledgement, append: Callable[..., None], sync: Sync
) -> None:
    append()
    assert await code_of(acknowledgement.by_leader(0, 0, 1)) is ErrorCode.request_timed_out
    sync.release()


async def test_a_failed_sync_is_reported_once(
    acknowledgement: Acknowledgement,
    append: Callable[..., None],
    failures: list[ApiError],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(task: FlushTask) -> None:
        raise ApiError(ErrorCode.kafka_storage_error, "no disk today")

    monkeypatch.setattr(FlushTask, "run", fails)
    append(2)
    waiting = [asyncio.create_task(acknowledgement.by_leader(at, 0, WAIT_MS)) for at in (0, 1)]
    for each in waiting:
        assert await code_of(each) is ErrorCode.kafka_storage_error
    assert [str(error) for error in failures] == ["no disk today"]


@pytest.fixture
def replicated(log: Log, role: PartitionRole, append: Callable[..., None]) -> PartitionRole:
    """Broker 1 leads two records, broker 2 has none of them yet; flushes are not required."""
    log.config = replace(log.config, flush_messages=2**63 - 1)
    assert role.update(PartitionState(1, 1, (1, 2), (1, 2), 1))
    append(2)
    return role


def copied(role: PartitionRole, acknowledgement: Acknowledgement, offset: int) -> None:
    role.leading().fetched(FetchingReplica(2), offset, 0, end_offset=2, now_ms=1_000)
    assert role.advance()
    acknowledgement.high_watermark_moved(role.high_watermark)


async def test_the_high_watermark_ends_waits_for_all_replicas(
    acknowledgement: Acknowledgement, replicated: PartitionRole
) -> None:
    acknowledgement.high_watermark_moved(0)
    waiting = [asyncio.create_task(acknowledgement.by_all(at, 0, WAIT_MS)) for at in (0, 1)]
    await asyncio.sleep(0)
    copied(replicated, acknowledgement, 1)
    await waiting[0]
    await acknowledgement.by_all(0, 0, 0)
    acknowledgement.fail(ApiError(ErrorCode.not_leader_or_follower))
    assert await code_of(waiting[1]) is ErrorCode.not_leader_or_follower


async def test_the_wait_for_all_replicas_checks_the_isr_at_its_end(
    acknowledgement: Acknowledgement, replicated: PartitionRole
) -> None:
    waiting = asyncio.create_task(acknowledgement.by_all(1, 0, WAIT_MS))
    await asyncio.sleep(0)
    copied(replicated, acknowledgement, 2)
    assert replicated.update(PartitionState(1, 1, (1, 2), (1,), 2))
    replicated.min_insync_replicas = 2
    assert await code_of(waiting) is ErrorCode.not_enough_replicas_after_append


async def test_only_the_leadership_of_the_append_acknowledges(
    log: Log, acknowledgement: Acknowledgement, replicated: PartitionRole
) -> None:
    replicated.stop_leading(replicated.kind)
    assert await code_of(acknowledgement.by_all(0, 0, 0)) is ErrorCode.not_leader_or_follower
    assert replicated.update(PartitionState(1, 2, (1, 2), (1, 2), 2))
    for wait in (acknowledgement.by_all, acknowledgement.by_leader):
        assert await code_of(wait(0, 0, WAIT_MS)) is ErrorCode.not_leader_or_follower
    await acknowledgement.by_leader(0, 1, WAIT_MS)
