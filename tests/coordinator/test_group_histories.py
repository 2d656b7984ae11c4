"""The driver of histories: what is noted is there when it is asked for, and has limits."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from uuid import UUID

import pytest
from tests.coordinator.conftest import StillClock

from ottla.coordinator import group_histories
from ottla.coordinator.group_histories import MAX_WAITING_BYTES, GroupHistories
from ottla.coordinator.history_file import NAME
from ottla.groups.history.events import (
    CONSUMER,
    Assigned,
    Cause,
    Caused,
    Completed,
    Emptied,
    Who,
    Why,
    size_of,
)
from ottla.groups.stored import GroupMetadataValue, MemberMetadata


def histories(folder: Path | None) -> GroupHistories:
    return GroupHistories(StillClock(), lambda group: 0, lambda index: folder, lambda topic: None)


def joined(epoch: int, group: str = "g") -> Caused:
    return Caused(group, CONSUMER, epoch, 1_000, Cause(Why.JOINED, Who("m")))


def emptied(epoch: int, group: str = "g") -> Emptied:
    return Emptied(group, CONSUMER, epoch, 1_000)


async def test_it_is_there_at_once_and_after_a_restart(tmp_path: Path) -> None:
    first = histories(tmp_path)
    first.note(joined(1))
    first.note(emptied(2))
    first.note(joined(3))
    entries = await first.of("g", is_coordinator=True)
    assert [(each["end"], each["number"]) for each in entries] == [("empty", 0), (None, None)]
    await first.close()
    second = histories(tmp_path)
    assert [each["end"] for each in await second.of("g", is_coordinator=True)] == ["empty"]
    await second.close()


async def test_a_broker_that_is_not_the_coordinator_any_more_knows_how_far_it_went(
    tmp_path: Path,
) -> None:
    here = histories(tmp_path)
    here.note(joined(1))
    assert [each["end"] for each in await here.of("g", is_coordinator=False)] == ["lost"]
    await here.close()


async def test_it_is_written_without_being_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_histories, "WRITE_AFTER_S", 0.001)
    here = histories(tmp_path)
    here.note(joined(1))
    here.note(emptied(1))
    while not (tmp_path / NAME).exists():
        await asyncio.sleep(0.001)
    await here.close()


async def test_the_queue_has_a_limit_and_the_rest_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(group_histories, "MAX_WAITING", 10)
    monkeypatch.setattr(group_histories, "WRITE_AFTER_S", 0.001)
    here = histories(tmp_path)
    for epoch in range(50):
        here.note(emptied(epoch))
    assert len(await here.of("g", is_coordinator=True)) == 10
    while "40 events" not in caplog.text:
        await asyncio.sleep(0.001)
    assert caplog.text.count("rebalance too often") == 1
    await here.close()


async def test_what_waiting_events_refer_to_has_a_limit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A classic group may have a megabyte of assignments, and as many generations as it likes."""
    here = histories(tmp_path)
    member = MemberMetadata("m", None, "c", "h", 1, 1, b"", bytes(1 << 20))
    value = GroupMetadataValue("connect", 1, "p", "m", 5, (member,))
    for _ in range(50):
        here.note(Completed("g", 1_000, value, value))
    assert caplog.text.count("rebalance too often") == 1
    assert len(await here.of("g", is_coordinator=True)) == (MAX_WAITING_BYTES - 1) >> 21
    here.note(Completed("g", 1_000, value, value))
    assert len(await here.of("g", is_coordinator=True)) == MAX_WAITING_BYTES >> 21
    await here.close()


def test_the_size_of_events() -> None:
    big = {UUID(int=1): frozenset(range(1_000))}
    assert size_of(Assigned("g", CONSUMER, 1, 1, {}, {"m": big}, {"m": big})) >= 100_000
    assert size_of(Assigned("g", CONSUMER, 1, 1, dict.fromkeys("abc", ""), {}, {})) >= 300
    assert size_of(joined(1)._replace(lost={"m": big})) >= 50_000
    assert size_of(emptied(1)) == 0


async def test_a_question_that_is_given_up_loses_nothing(tmp_path: Path) -> None:
    here = histories(tmp_path)
    free = threading.Event()
    busy = asyncio.create_task(here._in_thread(free.wait))
    await asyncio.sleep(0)
    here.note(emptied(1))
    question = asyncio.create_task(here.of("g", is_coordinator=True))
    await asyncio.sleep(0)
    question.cancel()
    await asyncio.wait([question])
    free.set()
    await busy
    assert [each["end"] for each in await here.of("g", is_coordinator=True)] == ["empty"]
    await here.close()


async def test_a_disk_that_refuses_is_logged_once_and_memory_has_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / f"{NAME}.new").mkdir()
    here = histories(tmp_path)
    for epoch in (1, 2):
        here.note(emptied(epoch))
        found = await here.of("g", is_coordinator=True)
        assert [each["epoch"] for each in found] == list(range(1, epoch + 1))
    assert caplog.text.count("cannot write the history of groups") == 1
    await here.close()


async def test_a_file_that_cannot_be_read_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / NAME).mkdir()
    here = histories(tmp_path)
    for epoch in (1, 2):
        here.note(emptied(epoch))
        assert await here.of("g", is_coordinator=True) == []
    assert caplog.text.count("nothing is added to it") == 1
    await here.close()


async def test_a_group_without_a_partition_has_no_history() -> None:
    here = GroupHistories(StillClock(), lambda group: None, lambda index: None, lambda topic: None)
    here.note(emptied(1))
    assert await here.of("g", is_coordinator=True) == []
    await here.close()
