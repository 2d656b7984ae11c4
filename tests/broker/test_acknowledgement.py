"""The waits of one log, with a real one on disk and a sync that waits to be let through."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.acknowledgement import Acknowledgement
from ottla.log.config import LogConfig
from ottla.log.flush import FlushTask
from ottla.log.log import Log
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.log.truncation import truncate_to
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.build import build_batch
from ottla.records.header import read_header
from ottla.records.record import Record

WAIT_MS = 60_000


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return open_log(str(tmp_path / "t-0"), LogConfig(flush_messages=1), OpenFiles(8), now_ms=1)


def append(log: Log, count: int = 1) -> None:
    for _ in range(count):
        batch = build_batch([Record(0, 1, b"k", b"v")])
        log.append(batch, [read_header(batch)], leader_epoch=0, now_ms=1)


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


async def test_what_is_on_disk_is_not_waited_for(log: Log, sync: Sync) -> None:
    acknowledgement = Acknowledgement(log, lambda error: None)
    append(log)
    assert acknowledgement.wants_flush
    waiting = asyncio.create_task(acknowledgement.flushed(0, WAIT_MS))
    sync.release()
    await waiting
    assert not acknowledgement.wants_flush
    await acknowledgement.flushed(0, 0)
    assert sync.begun == 1


def cut(log: Log, acknowledgement: Acknowledgement) -> None:
    truncate_to(log, 0, now_ms=1)


def close(log: Log, acknowledgement: Acknowledgement) -> None:
    log.deleted(log.folder)


def lose(log: Log, acknowledgement: Acknowledgement) -> None:
    acknowledgement.fail(ApiError(ErrorCode.not_leader_or_follower))


@pytest.mark.parametrize("happens", [cut, close, lose])
async def test_a_wait_for_the_disk_ends_when_the_records_are_gone(
    log: Log, sync: Sync, eventually: Any, happens: Callable[[Log, Acknowledgement], None]
) -> None:
    acknowledgement = Acknowledgement(log, lambda error: None)
    append(log, 2)
    waiting = asyncio.create_task(acknowledgement.flushed(1, WAIT_MS))
    await eventually(lambda: sync.begun == 1)
    happens(log, acknowledgement)
    for _ in range(2):
        sync.release()
    assert await code_of(waiting) is ErrorCode.not_leader_or_follower
    await eventually(lambda: acknowledgement._flush._running is None)
    assert sync.begun <= 2, "one fsync after another"


async def test_a_wait_for_the_disk_has_a_deadline(log: Log, sync: Sync) -> None:
    acknowledgement = Acknowledgement(log, lambda error: None)
    append(log)
    assert await code_of(acknowledgement.flushed(0, 1)) is ErrorCode.request_timed_out
    sync.release()


async def test_a_sync_that_fails_is_reported_once(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[ApiError] = []
    acknowledgement = Acknowledgement(log, failures.append)

    def fails(task: FlushTask) -> None:
        raise ApiError(ErrorCode.kafka_storage_error, "no disk today")

    monkeypatch.setattr(FlushTask, "run", fails)
    append(log, 2)
    waiting = [asyncio.create_task(acknowledgement.flushed(at, WAIT_MS)) for at in (0, 1)]
    for each in waiting:
        assert await code_of(each) is ErrorCode.kafka_storage_error
    assert [str(error) for error in failures] == ["no disk today"]


async def test_the_high_watermark_ends_waits_for_all_replicas(log: Log) -> None:
    acknowledgement = Acknowledgement(log, lambda error: None)
    acknowledgement.moved(1)
    waiting = [asyncio.create_task(acknowledgement.committed(at, WAIT_MS)) for at in (0, 1)]
    await asyncio.sleep(0)
    acknowledgement.moved(1)
    await waiting[0]
    acknowledgement.fail(ApiError(ErrorCode.not_leader_or_follower))
    assert await code_of(waiting[1]) is ErrorCode.not_leader_or_follower
