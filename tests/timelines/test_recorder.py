"""The driver: steps become files, in time, at the stop, and when somebody asks."""

import asyncio
import logging
import shutil
from pathlib import Path
from uuid import UUID

import pytest

from ottla.log.config import LogConfig
from ottla.log.log import Log
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.timelines import recorder as driver
from ottla.timelines.group_timeline import GroupsTimeline
from ottla.timelines.no_timeline import NoTimeline
from ottla.timelines.partition_timeline import PartitionTimeline
from ottla.timelines.recorder import TimelineRecorder
from ottla.timelines.step import Before, By, Kind, Opening

FIRST = "00000000000000000000.timeline"


NOW_MS = 1_000_000


class StillClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.ms = NOW_MS

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


def opened(recorder: TimelineRecorder, log: Log) -> PartitionTimeline:
    timeline = recorder.open(log, high_watermark=0, now_ms=NOW_MS)
    assert isinstance(timeline, PartitionTimeline)
    return timeline


async def test_a_flush_writes_the_steps_that_are_over(clock: StillClock, log: Log) -> None:
    recorder = TimelineRecorder(clock)
    timeline = opened(recorder, log)
    timeline.appended(0, 9, clock.ms, "a", -1)
    await recorder.flush()
    assert not (Path(log.folder) / FIRST).exists()
    clock.ms += 100
    await recorder.flush()
    assert (Path(log.folder) / FIRST).stat().st_size > 0
    await recorder.close()


async def test_steps_before_the_first_record_are_written_with_it(
    clock: StillClock, tmp_path: Path
) -> None:
    log = open_log(str(tmp_path / "t-0"), LogConfig(), OpenFiles(8), now_ms=1000)
    recorder = TimelineRecorder(clock)
    timeline = opened(recorder, log)
    timeline.in_sync(1, 0, (1, 2), 0, clock.ms)
    clock.ms += 1000
    await recorder.flush()
    history = await recorder.history(timeline, 0)
    assert history is not None
    assert history.steps == ()
    assert not Path(log.folder).exists()
    log.make_files()
    timeline.appended(0, 1, clock.ms, "a", -1)
    history = await recorder.history(timeline, 0)
    assert history is not None
    assert [step.kind for step in history.steps] == [Kind.IN_SYNC, Kind.END]
    await recorder.close()


async def test_the_stop_writes_all(clock: StillClock, log: Log) -> None:
    recorder = TimelineRecorder(clock)
    recorder.start()
    opened(recorder, log).appended(0, 9, clock.ms, "a", -1)
    await recorder.close()
    assert (Path(log.folder) / FIRST).stat().st_size > 0


async def test_the_task_flushes_by_itself(
    clock: StillClock, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "FLUSH_MS", 1)
    recorder = TimelineRecorder(clock)
    recorder.start()
    opened(recorder, log).appended(0, 9, clock.ms, "a", -1)
    clock.ms += 1000
    async with asyncio.timeout(60):
        while not (Path(log.folder) / FIRST).exists():
            await asyncio.sleep(0.01)
    await recorder.close()


async def test_history_includes_unwritten_steps(clock: StillClock, log: Log) -> None:
    recorder = TimelineRecorder(clock)
    timeline = opened(recorder, log)
    timeline.appended(0, 9, clock.ms, "a", -1)
    history = await recorder.history(timeline, 3)
    assert history is not None
    assert [step.kind for step in history.steps] == [Kind.END]
    assert history.opening == Opening(clock.ms, 0, 0)
    await recorder.close()


async def test_a_journey_that_is_off_keeps_nothing(clock: StillClock, log: Log) -> None:
    recorder = TimelineRecorder(clock, enabled=False)
    timeline = recorder.open(log, high_watermark=0, now_ms=clock.ms, after_crash=True)
    assert isinstance(timeline, NoTimeline)
    recorder.start()
    assert await recorder.history(timeline, 0) is None
    recorder.forget(timeline)
    await recorder.close()
    assert not list(Path(log.folder).glob("*.timeline"))


async def test_a_deleted_partition_is_forgotten(clock: StillClock, log: Log) -> None:
    recorder = TimelineRecorder(clock)
    timeline = opened(recorder, log)
    await recorder.history(timeline, 0)
    timeline.appended(0, 9, clock.ms, "a", -1)
    recorder.forget(timeline)
    await recorder.close()
    assert not list(Path(log.folder).glob("*.timeline"))
    assert await recorder.history(timeline, 0) is None


async def test_a_crash_that_truncated_the_log_is_recorded_at_once(
    clock: StillClock, log: Log
) -> None:
    before = TimelineRecorder(clock)
    opened(before, log).appended(0, 9, clock.ms, "a", -1)
    await before.close()
    after = TimelineRecorder(clock)
    timeline = after.open(log, high_watermark=0, now_ms=clock.ms, after_crash=True)
    history = await after.history(timeline, 3)
    assert history is not None
    assert [(step.kind, step.last) for step in history.steps] == [(Kind.END, 10), (Kind.OPENED, 0)]
    await after.close()


async def test_a_failing_disk_is_logged_once(
    clock: StillClock, log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    (Path(log.folder) / FIRST).mkdir()
    recorder = TimelineRecorder(clock)
    timeline = opened(recorder, log)
    with caplog.at_level(logging.ERROR, "ottla.journey"):
        for at in range(3):
            timeline.appended(at, at, clock.ms, "a", -1)
            await recorder.flush(all_of_them=True)
    assert len(caplog.records) == 1
    assert "cannot write timelines" in caplog.text
    await recorder.close()


async def test_many_partitions_are_taken_in_slices(
    clock: StillClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "MAX_TAKEN_AT_ONCE", 3)
    recorder = TimelineRecorder(clock)
    folders = []
    for number in range(10):
        folder = tmp_path / f"t-{number}"
        log = open_log(str(folder), LogConfig(), OpenFiles(8), now_ms=1000)
        log.make_files()
        opened(recorder, log).appended(0, 0, clock.ms, "a", -1)
        folders.append(folder)
    await recorder.flush(all_of_them=True)
    assert all((folder / FIRST).is_file() for folder in folders)
    await recorder.close()


async def test_a_topic_may_go_while_a_flush_writes_others(
    clock: StillClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "MAX_TAKEN_AT_ONCE", 1)
    recorder, opening = TimelineRecorder(clock), []
    for number in range(4):
        one = open_log(str(tmp_path / f"t-{number}"), LogConfig(), OpenFiles(8), now_ms=1000)
        one.make_files()
        opening.append(opened(recorder, one))
        opening[-1].appended(0, 9, clock.ms, "a", -1)
    clock.ms += 100
    write = recorder._write

    def goes(work: object) -> None:
        if len(opening) == 4:
            recorder.forget(opening.pop())
        write(work)  # type: ignore[arg-type]

    monkeypatch.setattr(recorder, "_write", goes)
    await recorder.flush()
    written = sorted(each.parent.name for each in tmp_path.glob(f"*/{FIRST}"))
    assert written == ["t-0", "t-1", "t-2"]
    await recorder.close()


TOPIC_ID = UUID(int=7)


def commit(timeline: GroupsTimeline, offset: int, before: int, at_ms: int) -> None:
    timeline.committed("g", offset, None, at_ms, Before(before, ""), By.MEMBER)


async def test_groups_of_a_partition_without_a_replica_are_kept_beside_their_own_log(
    clock: StillClock, log: Log
) -> None:
    recorder = TimelineRecorder(clock)
    commit(recorder.of_groups(log, TOPIC_ID, 3), 5, -1, clock.ms)
    clock.ms += 1000
    await recorder.flush()
    commit(recorder.of_groups(log, TOPIC_ID, 3), 8, 5, clock.ms)
    commit(recorder.of_groups(log, TOPIC_ID, 4), 9, 5, clock.ms)
    steps = await recorder.history_of_groups([log], TOPIC_ID, 3)
    assert [(step.before, step.last, step.is_first) for step in steps] == [
        (5, 5, True),
        (5, 8, False),
    ]
    assert await recorder.history_of_groups([log], UUID(int=8), 3) == []
    await recorder.close()
    later = TimelineRecorder(clock)
    assert await later.history_of_groups([log], TOPIC_ID, 3) == steps
    await later.close()


async def test_a_groups_log_that_is_gone_is_not_made_again(clock: StillClock, log: Log) -> None:
    recorder = TimelineRecorder(clock)
    commit(recorder.of_groups(log, TOPIC_ID, 3), 5, -1, clock.ms)
    shutil.rmtree(log.folder)
    await recorder.close()
    assert not Path(log.folder).exists()


async def test_partitions_above_the_limit_are_not_recorded(
    clock: StillClock, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "MAX_GROUP_TIMELINES", 2)
    recorder = TimelineRecorder(clock)
    for partition in range(3):
        commit(recorder.of_groups(log, TOPIC_ID, partition), 5, -1, clock.ms)
    clock.ms += 1000
    await recorder.flush()
    found = [await recorder.history_of_groups([log], TOPIC_ID, each) for each in range(3)]
    assert [len(steps) for steps in found] == [1, 1, 0]
    # What is written makes room.
    commit(recorder.of_groups(log, TOPIC_ID, 2), 8, 5, clock.ms)
    assert len(await recorder.history_of_groups([log], TOPIC_ID, 2)) == 1
    await recorder.close()


async def test_without_a_journey_no_group_is_recorded(clock: StillClock, log: Log) -> None:
    recorder = TimelineRecorder(clock, enabled=False)
    commit(recorder.of_groups(log, TOPIC_ID, 3), 5, -1, clock.ms)
    assert await recorder.history_of_groups([log], TOPIC_ID, 3) == []


async def test_what_was_recorded_of_a_deleted_topic_is_deleted(clock: StillClock, log: Log) -> None:
    recorder = TimelineRecorder(clock)
    kept, gone = UUID(int=8), TOPIC_ID
    for topic_id in (kept, gone):
        commit(recorder.of_groups(log, topic_id, 3), 5, -1, clock.ms)
    await recorder.flush(all_of_them=True)
    commit(recorder.of_groups(log, gone, 3), 8, 5, clock.ms)
    (Path(log.folder) / "timelines" / "not ours").mkdir()
    assert await recorder.topics_of_groups([log]) == {kept, gone}
    await recorder.remove_groups([log], lambda topic_id: topic_id == gone)
    assert await recorder.history_of_groups([log], gone, 3) == []
    assert len(await recorder.history_of_groups([log], kept, 3)) == 1
    await recorder.close()
    names = {path.name for path in (Path(log.folder) / "timelines").iterdir()}
    assert names == {f"{kept.hex}-3", "not ours"}
