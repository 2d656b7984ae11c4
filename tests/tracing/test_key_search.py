"""Searches over several segments and partitions, and where they stop."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.log.compaction import plan_compaction
from ottla.log.config import LogConfig
from ottla.log.log import Log
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.log.retention import remove_expired
from ottla.log.verification import NOT_REQUIRED
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.build import build_batch
from ottla.records.control import ControlType, write_end_marker
from ottla.records.header import iterate_headers
from ottla.records.record import Record
from ottla.tracing import key_search, segment_search
from ottla.tracing.key_search import (
    EVERYTHING,
    find_elsewhere,
    find_history,
    find_later,
    find_newest,
)


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_search, "WINDOW_BYTES", 500)


def log_of(folder: Path, keys: list[bytes]) -> Log:
    """A log of one record a batch, some twenty a segment."""
    config = LogConfig(segment_bytes=2000, index_interval_bytes=0)
    log = open_log(str(folder), config, OpenFiles(8), now_ms=1000)
    for key in keys:
        batch = build_batch([Record(0, 1000, key, b"v" * 20)])
        log.append(batch, list(iterate_headers(batch)), leader_epoch=0, now_ms=1000)
    assert len(log.segments) > len(keys) // 25
    return log


def partition(log: Log, index: int = 0) -> Any:
    return SimpleNamespace(index=index, log=log)


async def test_the_newest_is_found_across_segments(tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", [b"key%d" % (at % 50) for at in range(120)])
    hits, _ = await find_newest([partition(log)], b"key7")
    assert hits == [(0, 107, 1000)]
    hits, _ = await find_newest([partition(log)], b"key30")
    assert hits == [(0, 80, 1000)]


async def test_each_partition_is_searched_in_the_order_given(tmp_path: Path) -> None:
    first = partition(log_of(tmp_path / "t-0", [b"a"] * 30), 0)
    second = partition(log_of(tmp_path / "t-1", [b"a", b"b"] * 15), 1)
    hits, searched = await find_newest([first, second], b"b")
    assert hits == [(1, 29, 1000)]
    assert searched == [(0, 0, 0, False)]
    assert searched[0].whole
    assert (await find_newest([second, first], b"a"))[0] == [(1, 28, 1000), (0, 29, 1000)]


async def test_when_the_key_is_found_the_other_partitions_have_a_part_of_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = partition(log_of(tmp_path / "t-0", [b"a"] * 30), 0)
    second = partition(log_of(tmp_path / "t-1", [b"a", *[b"b"] * 100]), 1)
    monkeypatch.setattr(key_search, "ELSEWHERE_BUDGET_BYTES", 3000)
    assert await find_elsewhere([first], b"a", [5]) == (((0, 29, 1000),), (5,), ())
    hits, searched = await find_newest([first, second], b"a")
    assert hits == [(0, 29, 1000)]
    assert not searched[0].whole
    assert await find_elsewhere([second], b"a", [5, 0]) == ((), (0, 1, 5), ())


async def test_a_search_stops_at_its_budget_and_says_where(tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", [b"old", *[b"new"] * 100])
    hits, searched = await find_newest([partition(log)], b"old", budget_bytes=3000)
    assert hits == []
    assert 0 < searched[0].down_to < 101
    assert not searched[0].whole
    hits, _ = await find_newest([partition(log)], b"old")
    assert hits == [(0, 0, 1000)]


async def test_records_before_the_log_start_are_not_found(tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", [b"old", *[b"new"] * 100])
    log.advance_start(1)
    hits, searched = await find_newest([partition(log)], b"old")
    assert hits == []
    assert searched == [(0, 1, 1, True)]


async def test_a_later_record_of_the_key(tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", [b"key%d" % (at % 50) for at in range(120)])
    for offset, later in ((7, 57), (57, 107)):
        found = await find_later(log, b"key7", offset)
        assert (found.offset, found.searched_to) == (later, later)
        assert found.header is not None
        assert found.header.base_offset == later
    last = await find_later(log, b"key7", 107)
    assert (last.header, last.searched_to) == (None, EVERYTHING)
    cut = await find_later(log, b"key7", 7, budget_bytes=500)
    assert cut.header is None
    assert 7 < cut.searched_to < 57


async def test_a_damaged_log_is_refused(tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", [b"a"] * 60)
    Path(log.segments[0].path).write_bytes(b"\xff" * log.segments[0].size_bytes)
    with pytest.raises(ApiError) as refusal:
        await find_newest([partition(log)], b"absent")
    assert refusal.value.code in (ErrorCode.corrupt_message, ErrorCode.kafka_storage_error)


async def test_segments_that_retention_removes_during_a_search_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(tmp_path / "t-0", [b"old", *[b"new"] * 100])
    in_thread = key_search.in_thread

    async def removing(*arguments: Any) -> Any:
        found = await in_thread(*arguments)
        if len(log.segments) > 2:
            config, log.config = log.config, replace(log.config, retention_bytes=3000)
            removal = remove_expired(log, now_ms=1000, high_watermark=log.end_offset)
            log.config = config
            assert removal is not None
            removal.run()
        return found

    monkeypatch.setattr(key_search, "in_thread", removing)
    hits, searched = await find_newest([partition(log)], b"old")
    assert hits == []
    assert searched[0].whole
    assert log.start_offset > 0


async def test_a_segment_that_compaction_replaces_during_a_search_is_read_anyway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(tmp_path / "t-0", [b"old", *[b"new"] * 100])
    in_thread = key_search.in_thread
    done: list[Any] = []

    async def compacting(*arguments: Any) -> Any:
        found = await in_thread(*arguments)
        if not done:
            log.config = replace(log.config, cleanup_compact=True)
            plan = plan_compaction(
                log, clean_offset=None, now_ms=1000, high_watermark=log.end_offset
            )
            assert plan is not None
            plan.run()
            done.extend(plan.apply())
            for removal in done:
                removal.run()
        return found

    monkeypatch.setattr(key_search, "in_thread", compacting)
    assert (await find_newest([partition(log)], b"old"))[0] == [(0, 0, 1000)]
    assert done


async def test_the_records_of_a_key_around_an_offset(tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", [b"key%d" % (at % 10) for at in range(120)])
    found = await find_history(log, b"key3", 53)
    assert [record.offset for record in found.records] == list(range(3, 120, 10))
    assert found.is_whole
    assert found.has_all
    assert not found.records[0].is_tombstone

    many = log_of(tmp_path / "t-1", [b"key"] * 120)
    found = await find_history(many, b"key", 60)
    assert [record.offset for record in found.records] == list(range(60 - 16, 60 + 17))
    assert not found.is_whole
    assert not found.has_all

    # A budget that is spent on the first window of each direction.
    found = await find_history(log, b"key3", 53, budget_bytes=2)
    assert 53 in [record.offset for record in found.records]
    assert not found.is_whole
    assert not found.has_all


async def test_the_outcomes_of_transactions_are_told_across_windows(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=2000, index_interval_bytes=0)
    log = open_log(str(tmp_path / "t-0"), config, OpenFiles(8), now_ms=1000)

    def write(batch: bytes) -> None:
        headers = list(iterate_headers(batch))
        log.append(batch, headers, leader_epoch=0, now_ms=1000, is_own=True, guard=NOT_REQUIRED)

    for outcome in (ControlType.abort, ControlType.commit, None):
        write(
            build_batch(
                [Record(0, 1000, b"key", b"v")],
                producer_id=7,
                producer_epoch=0,
                is_transactional=True,
            )
        )
        for _ in range(30):
            write(build_batch([Record(0, 1000, b"other", b"v" * 20)]))
        if outcome is not None:
            write(write_end_marker(outcome, 7, 0, 0, 1000))
    for offset in (0, 32, 64):
        found = await find_history(log, b"key", offset)
        outcomes = [(one.offset, one.is_committed) for one in found.records]
        assert outcomes == [(0, False), (32, True), (64, None)]
