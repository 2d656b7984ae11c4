"""A follower's log on disk, without a broker; the leader's bytes are prepared."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ottla.controller.image import PartitionState
from ottla.log.log import Log
from ottla.log.removal import Removal
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.build import build_batch
from ottla.records.header import BatchHeader, iterate_headers
from ottla.records.record import Record
from ottla.replica.partition_follower import PartitionFollower
from ottla.replica.partition_role import PartitionRole


class Steps:
    """A timeline that keeps its events."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int]] = []

    def appended(self, first: int, last: int, *_: object) -> None:
        self.told.append(("appended", last))

    def high_watermark(self, offset: int, now_ms: int) -> None:
        self.told.append(("high watermark", offset))

    def started_at(self, offset: int, now_ms: int, reason: str) -> None:
        self.told.append((reason, offset))

    def truncated(self, offset: int, now_ms: int) -> None:
        self.told.append(("truncated", offset))


class Bench:
    def __init__(self, log: Log, role: PartitionRole) -> None:
        self.log, self.role = log, role
        self.steps = Steps()
        self.removed: list[Removal] = []
        history = SimpleNamespace(timeline_at=lambda now_ms: self.steps)
        self.follower = PartitionFollower(log, role, history, self.removed.append)

    def append(self, count: int, high_watermark: int, start: int = 0) -> bool:
        """Append a batch of `count` records at the log's end, as the leader's bytes; 0: none."""
        records, headers = b"", list[BatchHeader]()
        if count:
            values = [Record(0, 1, None, b"v")] * count
            batch = bytearray(build_batch(values))
            batch[:8] = self.log.end_offset.to_bytes(8, "big")
            batch[12:16] = bytes(4)
            records, headers = bytes(batch), list(iterate_headers(bytes(batch)))
        return self.follower.append(
            records, headers, leader_high_watermark=high_watermark, leader_log_start=start, now_ms=5
        )


@pytest.fixture
def bench(log: Log, role: PartitionRole) -> Bench:
    assert role.update(PartitionState(2, 1, (1, 2), (1, 2), 1))
    return Bench(log, role)


def test_only_committed_records_are_new_to_consumers(bench: Bench) -> None:
    assert not bench.append(3, high_watermark=0)
    assert bench.append(2, high_watermark=3)
    assert bench.append(0, high_watermark=9)
    assert not bench.append(0, high_watermark=9)
    assert (bench.log.end_offset, bench.role.high_watermark) == (5, 5)
    assert bench.steps.told == [
        ("appended", 2), ("appended", 4), ("high watermark", 3), ("high watermark", 5),
    ]  # fmt: skip


def test_the_log_start_follows_once_it_is_committed_here(bench: Bench) -> None:
    assert not bench.append(4, high_watermark=0, start=2)
    assert bench.log.start_offset == 0
    assert bench.append(0, high_watermark=4, start=2)
    assert bench.log.start_offset == 2
    assert bench.steps.told[-1] == ("", 2)


def test_a_batch_before_the_end_is_refused(bench: Bench) -> None:
    bench.append(3, high_watermark=0)
    batch = build_batch([Record(0, 1, None, b"v")])
    with pytest.raises(ApiError) as refused:
        bench.follower.append(
            batch,
            list(iterate_headers(batch)),
            leader_high_watermark=3,
            leader_log_start=0,
            now_ms=5,
        )
    assert refused.value.code is ErrorCode.offset_out_of_range
    assert bench.role.high_watermark == 0


def test_truncation_lowers_the_high_watermark(bench: Bench) -> None:
    for _ in range(3):
        bench.append(2, high_watermark=99)
    bench.follower.truncate_to(2, 5)
    assert (bench.log.end_offset, bench.role.high_watermark) == (2, 2)
    assert bench.steps.told[-1] == ("truncated", 2)
    told = list(bench.steps.told)
    bench.follower.truncate_to(7, 5)
    assert bench.steps.told == told, "nothing lies past the end"
    assert bench.removed == []


def test_an_emptied_log_starts_where_the_leaders_does(bench: Bench) -> None:
    bench.append(2, high_watermark=2)
    bench.follower.truncate_fully(40, 5)
    log = bench.log
    assert (log.start_offset, log.end_offset, bench.role.high_watermark) == (40, 40, 40)
    assert len(bench.removed) == 1
    assert ("truncated", 40) not in bench.steps.told
