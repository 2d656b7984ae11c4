"""Facts about offsets of a real log."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.journey.facts import Facts, KnownGroups, Position
from ottla.journey.key_elsewhere import Hit, KeyElsewhere
from ottla.log.config import FOREVER_MS, LogConfig
from ottla.log.log import Log
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.log.rolling import must_roll
from ottla.records.build import build_batch
from ottla.records.header import iterate_headers
from ottla.records.record import Record
from ottla.replication.leader import Progress
from ottla.timelines.recorder import TimelineRecorder
from ottla.timelines.step import Kind, Step
from ottla.tracing import gather_facts
from ottla.tracing.gather_facts import Around, find_location, gather, segment_facts
from ottla.tracing.group_coordinators import FoundGroups

DAY_MS = 86_400_000


class Groups:
    """One group has committed, and another broker, which recorded some of it, does not answer for
    others.
    """

    def __init__(self, metadata: str = "m") -> None:
        self.metadata = metadata
        self.asked_again: Any = None
        self.time = SystemTime()

    async def find(self, offset: int) -> FoundGroups:
        self.time.ms += 7  # it takes time
        told = Step(Kind.GROUP, f"told-{offset}", 1000, 1000, 0, 60, 60)
        positions = {"readers": Position(12, self.metadata)}
        return FoundGroups(positions, (told,), KnownGroups((3,)))

    async def steps(self, offset: int, asked: Any) -> tuple[Step, ...]:
        self.asked_again = asked
        return (Step(Kind.GROUP, f"told-{offset}", 1000, 1000, 0, 60, 60),)


class SystemTime:
    def __init__(self) -> None:
        self.ms = 5 * DAY_MS

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


def log_of(folder: Path, config: LogConfig) -> Log:
    log = open_log(str(folder), config, OpenFiles(8), now_ms=1000)
    for number in range(0, 60, 2):
        records = [
            Record(0, 1000 + at, b"key%d" % (at % 5), b"v" * 30) for at in (number, number + 1)
        ]
        batch = build_batch(records)
        log.append(batch, list(iterate_headers(batch)), leader_epoch=3, now_ms=1000)
    return log


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return log_of(tmp_path / "t-0", LogConfig(segment_bytes=2000, index_interval_bytes=300))


async def test_every_offset_has_its_location(log: Log) -> None:
    assert len(log.segments) > 2
    for offset in range(60):
        location = await find_location(log, offset)
        assert location is not None
        assert location.record is not None
        assert location.segment is not None
        assert location.record.record.offset == offset
        assert location.record.number == offset % 2
        assert location.segment.base_offset <= offset < location.segment.next_offset
        assert location.folder == "t-0"
        if location.index_entry is not None:
            entry, position = location.index_entry
            assert entry <= offset
            assert position <= location.batch_position
    locations = [await find_location(log, offset) for offset in range(60)]
    entries = [location and location.index_entry for location in locations]
    assert any(entries)
    assert entries[0] is None


async def test_damage_is_reported_without_an_exception(log: Log) -> None:
    file = Path(log.segments[0].path)
    data = bytearray(file.read_bytes())
    data[70] ^= 0xFF
    file.write_bytes(data)
    location = await find_location(log, 0)
    assert location is not None
    assert location.record is None
    assert location.damage is not None
    assert "crc" in location.damage


def test_segments_have_their_retention_facts(log: Log) -> None:
    facts = segment_facts(log, 59)
    assert [one.base_offset for one in facts] == [one.base_offset for one in log.segments]
    assert facts[0].next_offset == facts[1].base_offset
    assert facts[0].largest_timestamp_ms == 1000 + facts[0].next_offset - 1
    assert [one.is_active for one in facts] == [False] * (len(facts) - 1) + [True]
    assert facts[-1].rolls_ms == 1000 + facts[-1].base_offset + 1 + log.config.segment_ms
    assert facts[0].rolls_ms is None
    assert segment_facts(log, 0)[-1].largest_timestamp_ms == -1


async def elsewhere(key: bytes) -> KeyElsewhere:
    """Every key is in partition 2, too."""
    return KeyElsewhere((Hit(2, 7, 1000),), (3,))


async def facts_of(
    log: Log, offset: int, groups: Any = None, committed: tuple[Any, ...] = ()
) -> Facts:
    groups = groups or Groups()
    journey = TimelineRecorder(groups.time)
    partition: Any = SimpleNamespace(
        topic="t",
        index=0,
        log=log,
        timeline=journey.open(log, high_watermark=log.end_offset, now_ms=groups.time.now_ms()),
        high_watermark=log.end_offset,
        leader=SimpleNamespace(followers={2: Progress(60), 3: Progress()}),
    )
    for group, at, metadata in committed:
        partition.timeline.committed(group, at, metadata, 1000)
    nobody: Any = None
    around = Around(1, 4, 2, journey, groups.find, nobody, groups.steps, elsewhere)
    found = await gather(partition, offset, around, groups.time.now_ms)
    await journey.close()
    return found


async def test_all_is_gathered(log: Log) -> None:
    facts = await facts_of(log, 17)
    assert (facts.partition_count, facts.replica_count, facts.broker_id) == (4, 2, 1)
    assert (facts.start_offset, facts.end_offset) == (0, 60)
    assert facts.positions == {"readers": Position(12, "m")}
    assert facts.groups == KnownGroups((3,))
    assert facts.steps is not None
    assert [step.name for step in facts.steps] == ["told-17"]
    assert facts.opening is not None
    assert facts.opening.end_offset == 60
    assert facts.superseded_by is None
    assert facts.fetched == {2: 60}


async def test_what_is_recorded_meanwhile_is_not_of_a_clock_that_was_set_back(log: Log) -> None:
    """It would be if the facts had the time at which they began to be gathered."""
    assert (await facts_of(log, 17)).now_ms == 5 * DAY_MS + 7


async def test_the_steps_of_the_messages_of_a_key_are_read_from_all_their_files(
    tmp_path: Path,
) -> None:
    log = log_of(tmp_path / "t-0", LogConfig(segment_bytes=500))
    sink = {"kind": "delta", "place": "/t", "rows": "upsert", "key": "message"}
    told = {"ottla.pipeline": 1, "query": "q", "batch": 0, "sink": sink}
    told["rejects"] = {"kept": "t_rejected", "reasons": ["why"], "ranges": [[0, 3, 0]]}
    groups = Groups(json.dumps(told))
    # A file for each of these commits.
    others = (("a", 30, None), ("b", 40, None), ("c", 50, None))
    facts = await facts_of(log, 59, groups, (("readers", 12, groups.metadata), *others))
    assert facts.key_history is not None
    assert facts.steps is not None
    assert facts.key_steps is not None
    assert Kind.REJECTED not in {step.kind for step in facts.steps}
    assert Kind.REJECTED in {step.kind for step in facts.key_steps}
    assert {"told-59", "told-4"} <= {step.name for step in facts.key_steps}
    assert groups.asked_again == set(), "only who may have recorded deliveries is asked again"
    assert (await facts_of(log, 3, groups)).key_steps is None


@pytest.mark.parametrize(("order", "is_asked"), [("timestamp", True), ("offset", False)])
async def test_other_partitions_are_searched_for_the_key_where_a_row_may_be_theirs(
    log: Log, order: str, is_asked: bool
) -> None:
    sink = {"kind": "delta", "place": "/t", "rows": "upsert", "key": "message", "order": order}
    told = {"ottla.pipeline": 1, "query": "q", "batch": 0, "sink": sink}
    facts = await facts_of(log, 17, Groups(json.dumps(told)))
    assert (facts.key_elsewhere is not None) is is_asked
    assert (await facts_of(log, 17)).key_elsewhere is None


async def test_an_offset_past_the_log_end_has_no_location(log: Log) -> None:
    assert (await facts_of(log, 60)).location is None
    log.advance_start(30)
    assert (await facts_of(log, 29)).location is None
    assert (await facts_of(log, 30)).location is not None


async def test_in_a_compacted_log_a_later_record_of_the_key_is_looked_for(tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", LogConfig(cleanup_delete=False, cleanup_compact=True))
    facts = await facts_of(log, 17)
    assert facts.superseded_by is not None
    assert facts.superseded_by > 17
    assert facts.superseded_by % 5 == 17 % 5
    assert facts.segments[log.segment_number(facts.superseded_by)].largest_timestamp_ms > 0
    last = await facts_of(log, 59)
    assert (last.superseded_by, last.searched_to) == (None, FOREVER_MS)


async def test_the_segment_is_the_chosen_one(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Retention removes segments while the batch is read in a thread."""
    read = gather_facts.read_batch

    def removing(*arguments: Any) -> bytes:
        del log.segments[:1]
        return read(*arguments)

    monkeypatch.setattr(gather_facts, "read_batch", removing)
    location = await find_location(log, 59)
    assert location is not None
    assert location.segment is not None
    assert location.segment.base_offset <= 59 < location.segment.next_offset


def test_the_active_segment_has_its_roll_time(tmp_path: Path) -> None:
    """max.compaction.lag.ms closes a compacted topic's segments earlier than segment.ms."""
    config = LogConfig(cleanup_compact=True, max_compaction_lag_ms=60_000)
    log = log_of(tmp_path / "t-0", config)
    told_ms = segment_facts(log, 59)[-1].rolls_ms
    assert told_ms == log.active.first_timestamp() + 60_000
    batch = build_batch([Record(0, told_ms, b"k", b"v")])
    (header,) = iterate_headers(batch)
    header.base_offset = 60
    assert not must_roll(log.active, header.size_bytes, header, 0, config)
    header.max_timestamp = told_ms + 1
    assert must_roll(log.active, header.size_bytes, header, 0, config)
