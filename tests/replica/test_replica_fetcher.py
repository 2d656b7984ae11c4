"""Copying from a fake leader into real logs: batches, truncations, faults and reports."""

import asyncio
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from tests.disk_writes import sizes_written
from tests.replica.fetch_config import fetch_config

from ottla.log.config import LogConfig
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.log.staged_append import STEP_BYTES
from ottla.log.truncation import truncate_fully, truncate_to
from ottla.network.peer import PeerError
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import messages_of
from ottla.records.build import build_batch
from ottla.records.header import iterate_headers
from ottla.records.record import Record
from ottla.replica.replica_fetcher import ReplicaFetcher, Truncations
from ottla.replica.throttle import Quota, Throttle
from ottla.runtime.clock import SystemClock
from ottla.runtime.waiting import Watcher, wake

FETCH, LIST_OFFSETS = 1, 2
TOPIC = UUID(int=5)


def batch(base_offset: int, epoch: int, count: int = 1) -> bytes:
    records = [Record(base_offset + each, 0, None, b"e%d" % epoch) for each in range(count)]
    return build_batch(records, base_offset=base_offset, leader_epoch=epoch)


class Copy:
    """A partition, as a follower needs it, over a real log."""

    def __init__(self, folder: Path, index: int) -> None:
        self.topic, self.index, self.topic_id = "t", index, TOPIC
        self.log = open_log(str(folder / f"t-{index}"), LogConfig(), OpenFiles(10), now_ms=0)
        self.leader_epoch = 1
        self.high_watermark = 0
        self.refuses = False
        self.has_bug = False
        self.loads = False
        """A truncation makes its producers unknown."""
        self.waiters: dict[Watcher, None] | None = None
        self.state = SimpleNamespace(isr=())

    def append_fetched(
        self,
        records: Any,
        headers: Any,
        *,
        leader_high_watermark: int,
        leader_log_start: int,
        now_ms: int,
    ) -> None:
        assert not self.has_bug
        if self.refuses:
            raise ApiError(ErrorCode.kafka_storage_error, "no space left")
        if headers:
            self.log.append_as_follower(records, headers, now_ms=now_ms)
        self.high_watermark = min(leader_high_watermark, self.log.end_offset)

    def truncate_to(self, offset: int, now_ms: int) -> None:
        truncate_to(self.log, offset, now_ms=now_ms)
        if self.loads:
            self.log.loading = self

    def truncate_fully(self, offset: int, now_ms: int) -> None:
        truncate_fully(self.log, offset, now_ms=now_ms)

    @property
    def stored(self) -> bytes:
        return self.log.read(self.log.start_offset, max_bytes=1 << 20).read()


class Leader:
    """Answers fetches from batches in memory; an empty response is delayed."""

    def __init__(self) -> None:
        self.batches: dict[int, list[bytes]] = {}
        self.codes: dict[int, ErrorCode] = {}
        self.start = 0
        self.cut_off = False
        self.refusals = 0
        self.requests: list[Any] = []
        self._asked: dict[int, Any] = {}

    def end(self, index: int) -> int:
        return max((each.next_offset for each in self._headers(index)), default=0)

    def _headers(self, index: int) -> list[Any]:
        return list(iterate_headers(b"".join(self.batches.get(index, []))))

    async def ask(self, request: Any, timeout_ms: int) -> Any:
        await asyncio.sleep(0.001)
        if self.cut_off:
            self.refusals += 1
            raise PeerError("broker 2 closed the connection")
        if request.__api_key__ == LIST_OFFSETS:
            return self._list_offsets(request)
        self.requests.append(request)
        if request.session_epoch == 0:
            self._asked.clear()
        for topic in request.topics:
            self._asked.update({each.partition: each for each in topic.partitions})
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                self._asked.pop(index, None)
        build = messages_of(FETCH, 17)
        partitions = tuple(map(self._answer, list(self._asked.values())))
        responses = (build.FetchableTopicResponse(topic_id=TOPIC, partitions=partitions),)
        return build.FetchResponse(session_id=9, responses=responses)

    def _answer(self, asked: Any) -> Any:
        build, index = messages_of(FETCH, 17), asked.partition
        code = self.codes.get(index, ErrorCode.none)
        if code is ErrorCode.none and not self.start <= asked.fetch_offset <= self.end(index):
            code = ErrorCode.offset_out_of_range
        extra = {}
        known = [each.leader_epoch for each in self._headers(index)]
        last = asked.last_fetched_epoch
        if last >= 0 and last not in known:
            epoch = max(each for each in known if each < last)
            end = max(
                each.next_offset for each in self._headers(index) if each.leader_epoch <= epoch
            )
            extra["diverging_epoch"] = build.EpochEndOffset(epoch=epoch, end_offset=end)
            code = ErrorCode.none
        found = [
            data
            for header, data in zip(self._headers(index), self.batches.get(index, []), strict=True)
            if header.last_offset >= asked.fetch_offset
        ]
        return build.PartitionData(
            partition_index=index,
            error_code=code,
            high_watermark=self.end(index),
            log_start_offset=self.start,
            records=b"" if extra or code is not ErrorCode.none else b"".join(found),
            **extra,
        )

    def _list_offsets(self, request: Any) -> Any:
        build = messages_of(LIST_OFFSETS, 9)
        (topic,) = request.topics
        partitions = tuple(
            build.ListOffsetsPartitionResponse(
                partition_index=each.partition_index,
                offset=self.start if each.timestamp == -2 else self.end(each.partition_index),
            )
            for each in topic.partitions
        )
        answered = build.ListOffsetsTopicResponse(name=topic.name, partitions=partitions)
        return build.ListOffsetsResponse(topics=(answered,))


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.leader = Leader()
        self.truncations = Truncations()
        self.config = config = fetch_config()
        self.cuts: list[tuple[str, int, int]] = []
        clock = SystemClock()
        self.rate = 0
        self.throttle = Throttle(1, lambda: self.rate, Quota(2, 60_000), clock.monotonic_ms)
        peer: Any = self.leader
        self.fetcher = ReplicaFetcher(
            config,
            clock,
            2,
            peer,
            self.throttle,
            self.truncations,
            broker_epoch=lambda: 77,
            truncated=lambda *cut: self.cuts.append(cut),
        )
        self.task: asyncio.Task[None] | None = None

    def copy(self, index: int = 0) -> Copy:
        return Copy(self.folder, index)

    def follow(self, *copies: Any) -> None:
        for each in copies:
            self.fetcher.follow(each)
        if self.task is None:
            self.task = asyncio.create_task(self.fetcher.run())

    async def until(self, what: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not what():
                if self.task is not None and self.task.done():
                    self.task.result()
                await asyncio.sleep(0.001)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    if bench.task is not None:
        bench.task.cancel()


async def test_records_are_copied_byte_for_byte(bench: Bench) -> None:
    bench.leader.batches = {0: [batch(0, 0, 3), batch(3, 1)], 1: [batch(0, 1)]}
    bench.follow(*(copies := [bench.copy(0), bench.copy(1)]))
    await bench.until(lambda: copies[0].high_watermark == 4 and copies[1].high_watermark == 1)
    assert copies[0].stored == b"".join(bench.leader.batches[0])
    assert copies[1].stored == b"".join(bench.leader.batches[1])
    assert [entry.epoch for entry in copies[0].log.epochs.entries] == [0, 1]
    bench.leader.batches[1].append(batch(1, 1))
    await bench.until(lambda: copies[1].high_watermark == 2)
    first = bench.leader.requests[0]
    assert (first.replica_state.replica_id, first.replica_state.replica_epoch) == (1, 77)
    assert first.session_epoch == 0
    assert bench.leader.requests[1].session_epoch == 1
    # An idle partition is not named again.
    await bench.until(lambda: bench.leader.requests[-1].topics == ())


async def test_a_large_batch_is_written_in_steps(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = sizes_written(monkeypatch)
    large = build_batch([Record(0, 0, None, b"v" * (1 << 20))] * 9, leader_epoch=1)
    bench.leader.batches = {0: [large]}
    bench.follow(copy := bench.copy())
    await bench.until(lambda: copy.high_watermark == 9)
    assert max(sizes) <= STEP_BYTES
    assert copy.log.read(0, max_bytes=20 << 20).read() == large
    bench.leader.batches[0].append(batch(9, 1))
    await bench.until(lambda: copy.high_watermark == 10)


async def test_a_large_batch_that_is_not_followed_any_more_leaves_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, key = os.pwritev, (TOPIC, 0)

    def pwritev(fd: int, buffers: list[bytes], position: int) -> int:
        bench.fetcher.unfollow(key)
        return write(fd, buffers, position)

    monkeypatch.setattr(os, "pwritev", pwritev)
    large = build_batch([Record(0, 0, None, b"v" * (1 << 20))] * 9, leader_epoch=1)
    bench.leader.batches = {0: [large], 1: [batch(0, 1)]}
    bench.follow(copy := bench.copy(), other := bench.copy(1))
    await bench.until(lambda: other.log.end_offset == 1)
    assert copy.log.end_offset == 0
    assert os.path.getsize(copy.log.active.path) == 0


async def test_records_that_only_the_follower_has_are_truncated_and_counted(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    mine = bench.copy()
    records = batch(0, 0, 2) + batch(2, 1, 3)
    mine.log.append_as_follower(records, list(iterate_headers(records)), now_ms=0)
    mine.high_watermark, mine.leader_epoch = 4, 3
    bench.leader.batches = {0: [batch(0, 0, 2), batch(2, 3, 2)]}
    with caplog.at_level(logging.INFO, "ottla.replication"):
        bench.follow(mine)
        await bench.until(lambda: mine.log.end_offset == 4 and mine.high_watermark == 4)
    assert mine.stored == b"".join(bench.leader.batches[0])
    assert (bench.truncations.records, bench.truncations.committed_records) == (3, 2)
    assert bench.cuts == [("t", 0, 2)]
    assert "t-0: truncated offsets 2 to 4, which leader 2 does not have" in caplog.text


async def test_a_truncated_partition_waits_until_its_producers_are_known(bench: Bench) -> None:
    mine, other = bench.copy(0), bench.copy(1)
    records = batch(0, 0, 2) + batch(2, 1, 3)
    mine.log.append_as_follower(records, list(iterate_headers(records)), now_ms=0)
    mine.leader_epoch = 3
    mine.loads = True
    bench.leader.batches = {0: [batch(0, 0, 2), batch(2, 3, 2)], 1: [batch(0, 0)]}
    bench.follow(mine, other)
    await bench.until(lambda: mine.log.end_offset == 2 and other.log.end_offset == 1)
    for end in (2, 3):
        bench.leader.batches[1].append(batch(end - 1, 0))
        await bench.until(lambda end=end: other.log.end_offset == end)  # type: ignore[misc]
        wake(mine)
    assert mine.log.end_offset == 2
    mine.log.loading = None
    wake(mine)
    await bench.until(lambda: mine.log.end_offset == 4)
    assert mine.waiters is None
    assert mine.stored == b"".join(bench.leader.batches[0])


async def test_a_leader_that_starts_past_our_end_is_copied_from_its_start(bench: Bench) -> None:
    mine = bench.copy()
    bench.leader.batches = {0: [batch(10, 1, 2)]}
    bench.leader.start = 10
    bench.follow(mine)
    await bench.until(lambda: mine.log.end_offset == 12)
    assert mine.log.start_offset == 10
    assert bench.truncations.records == 0
    assert bench.cuts == [("t", 0, 10)]


async def test_one_partitions_disk_does_not_stop_the_others(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.leader.batches = {0: [batch(0, 1)], 1: [batch(0, 1)]}
    full, other = bench.copy(0), bench.copy(1)
    full.refuses = True
    bench.follow(full, other)
    await bench.until(lambda: other.high_watermark == 1 and len(bench.leader.requests) > 8)
    assert full.log.end_offset == 0
    assert caplog.text.count("cannot copy t-0 from broker 2: no space left") == 1
    full.refuses = False
    await bench.until(lambda: full.high_watermark == 1)


async def test_after_a_bug_all_other_partitions_are_still_copied(
    bench: Bench,
) -> None:
    bench.leader.batches = {0: [batch(0, 1)], 1: [batch(0, 1)]}
    struck, other = bench.copy(0), bench.copy(1)
    struck.has_bug = True
    bench.follow(struck, other)
    with pytest.raises(AssertionError):
        await bench.until(lambda: False)
    assert bench.fetcher.working_on is not None
    at_work: Any = bench.fetcher.working_on.partition
    assert at_work is struck
    peer: Any = bench.leader
    bench.fetcher.restart(peer)
    assert bench.fetcher.working_on is None
    bench.leader.requests.clear()
    bench.task = asyncio.create_task(bench.fetcher.run())
    await bench.until(lambda: other.high_watermark == 1)
    assert bench.leader.requests[0].session_epoch == 0
    named = {each.partition for each in bench.leader.requests[0].topics[0].partitions}
    assert named == {1}
    # Its next role makes it retry.
    struck.has_bug = False
    bench.follow(struck)
    await bench.until(lambda: struck.high_watermark == 1)


async def test_damaged_records_are_never_appended(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    good = batch(0, 1)
    bench.leader.batches = {0: [good[:-1] + b"?"]}
    bench.follow(mine := bench.copy())
    await bench.until(lambda: len(bench.leader.requests) > 4)
    assert mine.log.end_offset == 0
    assert "is corrupt" in caplog.text
    bench.leader.batches = {0: [good]}
    await bench.until(lambda: mine.stored == good)


async def test_an_unreachable_leader_is_logged_once(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.leader.batches = {0: [batch(0, 1)]}
    bench.leader.cut_off = True
    bench.follow(mine := bench.copy())
    await bench.until(lambda: bench.leader.refusals > 2)
    bench.leader.cut_off = False
    await bench.until(lambda: mine.high_watermark == 1)
    assert caplog.text.count("cannot copy from broker 2") == 1
    assert bench.leader.requests[0].session_epoch == 0


async def test_a_leader_without_the_delta_is_retried_soon(bench: Bench) -> None:
    bench.config.replica_fetch_backoff_ms = 600_000
    bench.leader.batches = {0: [batch(0, 1)]}
    bench.leader.codes = {0: ErrorCode.unknown_leader_epoch}
    bench.follow(copy := bench.copy())
    await bench.until(lambda: len(bench.leader.requests) > 2)
    bench.leader.codes = {}
    await bench.until(lambda: copy.high_watermark == 1)


async def test_a_fenced_partition_is_not_fetched_until_the_next_epoch(bench: Bench) -> None:
    bench.leader.batches = {0: [batch(0, 1)], 1: [batch(0, 1)]}
    bench.leader.codes = {0: ErrorCode.fenced_leader_epoch}
    fenced, other = bench.copy(0), bench.copy(1)
    bench.follow(fenced, other)
    await bench.until(lambda: other.high_watermark == 1 and len(bench.leader.requests) > 3)
    assert fenced.log.end_offset == 0
    assert any(each.forgotten_topics_data for each in bench.leader.requests)
    bench.leader.codes, fenced.leader_epoch = {}, 2
    bench.follow(fenced)
    await bench.until(lambda: fenced.high_watermark == 1)


async def test_a_partition_no_longer_followed_is_forgotten(bench: Bench) -> None:
    bench.leader.batches = {0: [batch(0, 1)], 1: [batch(0, 1)]}
    bench.follow(*(copies := [bench.copy(0), bench.copy(1)]))
    await bench.until(lambda: all(each.high_watermark == 1 for each in copies))
    bench.fetcher.unfollow((TOPIC, 0))
    await bench.until(lambda: any(each.forgotten_topics_data for each in bench.leader.requests))
    bench.leader.batches[0].append(batch(1, 1))
    bench.leader.batches[1].append(batch(1, 1))
    await bench.until(lambda: copies[1].high_watermark == 2)
    assert copies[0].log.end_offset == 1
    assert len(bench.fetcher) == 1


async def test_a_throttled_replica_waits_out_the_quota(bench: Bench) -> None:
    bench.throttle.configure("t", ("0:1",))
    bench.throttle.record("t", 0, 1 << 20)
    bench.leader.batches = {0: [batch(0, 1)], 1: [batch(0, 1)]}
    slow, free = bench.copy(0), bench.copy(1)
    bench.follow(slow, free)
    await bench.until(lambda: free.high_watermark == 1)
    assert slow.log.end_offset == 0
    bench.rate = 1 << 30
    await bench.until(lambda: slow.high_watermark == 1)


async def test_an_in_sync_replica_is_not_delayed_but_counted(bench: Bench) -> None:
    bench.throttle.configure("t", ("*",))
    bench.throttle.record("t", 0, 1 << 20)
    bench.leader.batches = {0: [batch(0, 1)], 1: [batch(0, 1)]}
    in_sync, slow = bench.copy(0), bench.copy(1)
    in_sync.state = SimpleNamespace(isr=(1, 2))
    bench.follow(in_sync, slow)
    await bench.until(lambda: in_sync.high_watermark == 1)
    assert slow.log.end_offset == 0
    bench.rate = 1 << 30
    await bench.until(lambda: slow.high_watermark == 1)
    copied = sum(len(batch) for batches in bench.leader.batches.values() for batch in batches)
    now_ms = SystemClock().monotonic_ms()
    counted = bench.throttle._quota.bytes_a_second(now_ms) * 60
    assert counted == pytest.approx((1 << 20) + copied)


async def test_a_replica_that_falls_out_of_sync_is_throttled_from_then_on(bench: Bench) -> None:
    bench.throttle.configure("t", ("0:1",))
    bench.throttle.record("t", 0, 1 << 20)
    bench.leader.batches = {0: [batch(0, 1)], 1: [batch(0, 1)]}
    falls, free = bench.copy(0), bench.copy(1)
    falls.state = SimpleNamespace(isr=(1, 2))
    bench.follow(falls, free)
    await bench.until(lambda: falls.high_watermark == 1 and free.high_watermark == 1)
    falls.state = SimpleNamespace(isr=(2,))
    await bench.until(lambda: any(each.forgotten_topics_data for each in bench.leader.requests))
    bench.leader.batches = {index: [batch(0, 1), batch(1, 1)] for index in (0, 1)}
    await bench.until(lambda: free.high_watermark == 2)
    assert falls.log.end_offset == 1
