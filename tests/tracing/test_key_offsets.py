"""Where a key's records are: in both directions, in parts, in any compression."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.log.config import LogConfig
from ottla.log.log import Log
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.log.verification import NOT_REQUIRED
from ottla.protocol.errors import ApiError
from ottla.records.build import build_batch
from ottla.records.compression import Compression
from ottla.records.control import ControlType, write_end_marker
from ottla.records.header import iterate_headers
from ottla.records.record import Record
from ottla.replica.partition_role import Role
from ottla.tracing import key_offsets, segment_search
from ottla.tracing.key_offsets import find_offsets

COUNT = 240


class Led:
    """A partition that this broker leads."""

    index = 0
    role = Role.LEADER

    def __init__(self, log: Log, high_watermark: int | None = None) -> None:
        self.log = log
        self.high_watermark = log.end_offset if high_watermark is None else high_watermark


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_search, "WINDOW_BYTES", 900)
    monkeypatch.setattr(key_offsets, "CHUNK_BYTES", 300)


@pytest.fixture(params=list(Compression))
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Log:
    """Batches of two records over several segments, keys key0 to key9 in turn. Every third batch is
    not compressed.
    """
    config = LogConfig(segment_bytes=4000, index_interval_bytes=0)
    opened = open_log(str(tmp_path / "t-0"), config, OpenFiles(8), now_ms=1000)
    for number in range(0, COUNT, 2):
        records = [
            Record(0, 1000 + at, b"key%d" % (at % 10), bytes(range(50)) + b"\x08key7")
            for at in (number, number + 1)
        ]
        batch = build_batch(records, compression=0 if number % 3 == 0 else request.param)
        opened.append(batch, list(iterate_headers(batch)), leader_epoch=0, now_ms=1000)
    assert len(opened.segments) > 2
    return opened


async def everything(log: Log, key: bytes, *, from_end: bool, **limits: Any) -> list[int]:
    """Of all parts, each of which begins where the one before ended."""
    found: list[int] = []
    begin, end = 0, COUNT
    for _ in range(1000):
        limits.setdefault("most", 1000)
        partition: Any = Led(log)
        part = await find_offsets(partition, key, begin, end, from_end=from_end, **limits)
        assert begin <= part.begin < part.end <= end
        assert part.offsets == sorted(part.offsets)
        assert all(part.begin <= each < part.end for each in part.offsets)
        if from_end:
            assert part.end == end
            end, found = part.begin, part.offsets + found
        else:
            assert part.begin == begin
            begin, found = part.end, found + part.offsets
        if begin == end:
            return found
    raise AssertionError("no end")


@pytest.mark.parametrize("from_end", [True, False])
async def test_each_record_is_found_once(log: Log, from_end: bool) -> None:
    expected = list(range(7, COUNT, 10))
    for limits in ({}, {"most": 1}, {"most": 5}, {"max_bytes": 0}, {"max_s": 0.0}):
        assert await everything(log, b"key7", from_end=from_end, **limits) == expected
    assert await everything(log, b"key", from_end=from_end, max_bytes=2000) == []


async def test_only_between_the_offsets_and_below_the_high_watermark(log: Log) -> None:
    for from_end in (True, False):
        partition: Any = Led(log, high_watermark=37)
        found = await find_offsets(partition, b"key7", 10, 10**9, from_end=from_end, most=10)
        assert (found.offsets, found.begin, found.end) == ([17, 27], 10, 10**9)
        found = await find_offsets(partition, b"key7", 37, 200, from_end=from_end, most=10)
        assert found == ([], 37, 200, 0)
    assert found.records == 0


async def test_a_batch_larger_than_a_chunk(tmp_path: Path) -> None:
    log = open_log(str(tmp_path / "t-0"), LogConfig(), OpenFiles(8), now_ms=1000)
    batch = build_batch([Record(0, 1000, b"k%d" % at, b"v" * 100) for at in range(50)])
    for _ in range(3):
        log.append(batch, list(iterate_headers(batch)), leader_epoch=0, now_ms=1000)
    partition: Any = Led(log)
    found = await find_offsets(partition, b"k49", 0, 150, from_end=False, most=10)
    assert found == ([49, 99, 149], 0, 150, 150)


async def test_aborted_records_are_found_and_markers_are_not(tmp_path: Path) -> None:
    log = open_log(str(tmp_path / "t-0"), LogConfig(), OpenFiles(8), now_ms=1000)
    batch = build_batch(
        [Record(0, 1000, b"k", b"v")], producer_id=5, producer_epoch=0, base_sequence=0,
        is_transactional=True,
    )  # fmt: skip
    for each in (batch, write_end_marker(ControlType.abort, 5, 0, 0, 1000)):
        headers = list(iterate_headers(each))
        log.append(each, headers, leader_epoch=0, now_ms=1000, is_own=True, guard=NOT_REQUIRED)
    partition: Any = Led(log)
    assert (await find_offsets(partition, b"k", 0, 9, from_end=True, most=9)).offsets == [0]
    # The key of an abort marker: version 0, type 0.
    marks = await find_offsets(partition, bytes(4), 0, 9, from_end=True, most=9)
    assert marks.offsets == []


async def test_a_log_without_records_is_searched(tmp_path: Path) -> None:
    """Compaction has removed them all: who asks must not ask without end."""
    log = open_log(str(tmp_path / "t-0"), LogConfig(), OpenFiles(8), now_ms=1000)
    partition: Any = Led(log, high_watermark=9)
    for from_end in (True, False):
        log_end = await find_offsets(partition, b"k", 0, 9, from_end=from_end, most=9)
        assert log_end == ([], 0, 9, 0)


async def test_a_follower_does_not_answer(log: Log) -> None:
    partition: Any = Led(log)
    partition.role = Role.FOLLOWER
    with pytest.raises(ApiError, match="not_leader"):
        await find_offsets(partition, b"k", 0, 9, from_end=True, most=9)
