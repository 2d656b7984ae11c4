"""The driver: steps become files, in time, at the stop, and when somebody asks."""

import asyncio
import logging
from pathlib import Path

import pytest

from ottla.broker import journey as driver
from ottla.broker.journey import Journey
from ottla.journey.lookup import Opening
from ottla.journey.no_timeline import NoTimeline
from ottla.journey.step import Kind
from ottla.journey.timeline import PartitionTimeline
from ottla.log.config import LogConfig
from ottla.log.log import Log
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log

FIRST = "00000000000000000000.timeline"


class StillClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.ms = 1_000_000

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
def log(tmp_path: Path) -> Log:
    made = open_log(str(tmp_path / "t-0"), LogConfig(), OpenFiles(8), now_ms=1000)
    made.make_files()
    return made


def opened(journey: Journey, log: Log) -> PartitionTimeline:
    timeline = journey.open(log, high_watermark=0)
    assert isinstance(timeline, PartitionTimeline)
    return timeline


async def test_a_flush_writes_the_steps_that_are_over(clock, log):
    journey = Journey(clock)
    timeline = opened(journey, log)
    timeline.appended(0, 9, clock.ms, "a", -1)
    await journey.flush()
    assert not (Path(log.folder) / FIRST).exists()
    clock.ms += 100
    await journey.flush()
    assert (Path(log.folder) / FIRST).stat().st_size > 0
    await journey.close()


async def test_what_comes_before_the_first_record_is_written_with_it(clock, tmp_path):
    log = open_log(str(tmp_path / "t-0"), LogConfig(), OpenFiles(8), now_ms=1000)
    journey = Journey(clock)
    timeline = opened(journey, log)
    timeline.in_sync(1, 0, (1, 2), 0, clock.ms)
    clock.ms += 1000
    await journey.flush()
    told = await journey.told(timeline, 0)
    assert told is not None
    assert told.steps == ()
    assert not Path(log.folder).exists()
    log.make_files()
    timeline.appended(0, 1, clock.ms, "a", -1)
    told = await journey.told(timeline, 0)
    assert told is not None
    assert [step.kind for step in told.steps] == [Kind.IN_SYNC, Kind.END]
    await journey.close()


async def test_the_stop_writes_all(clock, log):
    journey = Journey(clock)
    journey.start()
    opened(journey, log).appended(0, 9, clock.ms, "a", -1)
    await journey.close()
    assert (Path(log.folder) / FIRST).stat().st_size > 0


async def test_the_task_flushes_by_itself(clock, log, monkeypatch):
    monkeypatch.setattr(driver, "FLUSH_MS", 1)
    journey = Journey(clock)
    journey.start()
    opened(journey, log).appended(0, 9, clock.ms, "a", -1)
    clock.ms += 1000
    async with asyncio.timeout(60):
        while not (Path(log.folder) / FIRST).exists():
            await asyncio.sleep(0.01)
    await journey.close()


async def test_who_asks_hears_what_is_not_written_yet(clock, log):
    journey = Journey(clock)
    timeline = opened(journey, log)
    timeline.appended(0, 9, clock.ms, "a", -1)
    told = await journey.told(timeline, 3)
    assert told is not None
    assert [step.kind for step in told.steps] == [Kind.END]
    assert told.opening == Opening(clock.ms, 0, 0)
    await journey.close()


async def test_a_journey_that_is_off_keeps_nothing(clock, log):
    journey = Journey(clock, enabled=False)
    timeline = journey.open(log, high_watermark=0, after_crash=True)
    assert isinstance(timeline, NoTimeline)
    journey.start()
    assert await journey.told(timeline, 0) is None
    journey.forget(timeline)
    await journey.close()
    assert not list(Path(log.folder).glob("*.timeline"))


async def test_a_deleted_partition_is_forgotten(clock, log):
    journey = Journey(clock)
    timeline = opened(journey, log)
    await journey.told(timeline, 0)
    timeline.appended(0, 9, clock.ms, "a", -1)
    journey.forget(timeline)
    await journey.close()
    assert not list(Path(log.folder).glob("*.timeline"))
    assert await journey.told(timeline, 0) is None


async def test_after_a_crash_that_cut_the_log_it_is_told_at_once(clock, log):
    before = Journey(clock)
    opened(before, log).appended(0, 9, clock.ms, "a", -1)
    await before.close()
    after = Journey(clock)
    timeline = after.open(log, high_watermark=0, after_crash=True)
    told = await after.told(timeline, 3)
    assert told is not None
    assert [(step.kind, step.last) for step in told.steps] == [(Kind.END, 10), (Kind.OPENED, 0)]
    await after.close()


async def test_a_disk_that_refuses_is_said_once(clock, log, caplog):
    (Path(log.folder) / FIRST).mkdir()
    journey = Journey(clock)
    timeline = opened(journey, log)
    with caplog.at_level(logging.ERROR, "ottla.journey"):
        for at in range(3):
            timeline.appended(at, at, clock.ms, "a", -1)
            await journey.flush(all_of_them=True)
    assert len(caplog.records) == 1
    assert "cannot write timelines" in caplog.text
    await journey.close()


async def test_many_partitions_are_taken_in_slices(clock, tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "MAX_TAKEN_AT_ONCE", 3)
    journey = Journey(clock)
    folders = []
    for number in range(10):
        folder = tmp_path / f"t-{number}"
        log = open_log(str(folder), LogConfig(), OpenFiles(8), now_ms=1000)
        log.make_files()
        opened(journey, log).appended(0, 0, clock.ms, "a", -1)
        folders.append(folder)
    await journey.flush(all_of_them=True)
    assert all((folder / FIRST).is_file() for folder in folders)
    await journey.close()
