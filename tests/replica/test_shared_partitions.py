"""What follows when share sessions end, and what is kept afterwards."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from ottla.config.offset_reset import OffsetReset
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replica import shared_partition
from ottla.replica.share_history import ShareHistory
from ottla.replica.share_session import Member, TopicPartition
from ottla.replica.shared_partition import GroupTerms, SharedPartition, Surroundings
from ottla.replica.shared_partitions import PART, PARTITION_WEIGHT, SharedPartitions
from ottla.runtime.background import Background
from ottla.share.acquisition import AcquireMode, LogBatch, Wish
from ottla.share.shard import Summary
from ottla.share.share_partition import ShareSettings, StoredState, Write
from ottla.share.stored import ShareKey

A = Member("g", "a")
TOPIC = UUID(int=7)


class Bench:
    """Partitions that this broker leads, and a share coordinator that may refuse writes."""

    def __init__(self) -> None:
        self.writes = 0
        self.refusals = 0
        self.terms = GroupTerms(ShareSettings(lock_ms=20), False, OffsetReset("earliest"))
        self.background = Background(logging.getLogger("tests"), "sharing")
        around: Any = Surroundings(
            self,
            SimpleNamespace(monotonic_ms=lambda: 0, now_ms=lambda: 0),
            SimpleNamespace(),  # type: ignore[arg-type]
            self.background,
            lambda group: self.terms,
            self.first_offset,
            SimpleNamespace(),
            ShareHistory(),
        )
        self.shares = SharedPartitions(self, around, 10)  # type: ignore[arg-type]

    def find(self, topic_id: UUID, index: int) -> Any:
        return SimpleNamespace(
            topic="t", index=index, leadership=1, leader_epoch=3, check_leads=lambda: None,
            waiters=None,
        )  # fmt: skip

    async def read(self, key: ShareKey, leader_epoch: int) -> StoredState:
        return StoredState(1, 0, [])

    async def write(self, key: ShareKey, state_epoch: int, leader_epoch: int, write: Write) -> None:
        self.writes += 1
        if self.refusals:
            self.refusals -= 1
            raise ApiError(ErrorCode.network_exception)

    async def summary(self, key: ShareKey) -> Summary:
        raise AssertionError("nothing waits so long here")

    async def first_offset(self, partition: Any, reset: OffsetReset) -> int:
        return 0

    async def share(self, index: int) -> SharedPartition:
        """A partition of which member "a" has ten records."""
        shared = self.shares.find("g", TopicPartition(TOPIC, index))
        while shared.is_loading:
            await asyncio.sleep(0)
        shares = shared._shares
        assert shares is not None
        wish = Wish("a", AcquireMode.BATCH_OPTIMIZED, 500, 500)
        shares.acquire(wish, 0, [LogBatch(0, 9)], self.terms.records, 0)
        return shared


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    made.shares.close()


async def test_what_a_session_had_is_forgotten_once_it_is_written(
    bench: Bench, eventually: Callable[..., Any]
) -> None:
    session = bench.shares.sessions.begin(A, 1, [TopicPartition(TOPIC, 0)])
    await bench.share(0)
    bench.shares.sessions.end(session)
    assert len(bench.shares) == 1
    await eventually(lambda: not len(bench.shares))
    assert bench.writes == 1


async def test_what_could_not_be_written_is_tried_again(
    bench: Bench, eventually: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_partition, "RETRY_S", 0.01)
    bench.refusals = 2
    session = bench.shares.sessions.begin(A, 1, [TopicPartition(TOPIC, 0)])
    await bench.share(0)
    bench.shares.sessions.end(session)
    await eventually(lambda: not len(bench.shares))
    assert bench.writes == 3


async def test_a_partition_that_left_the_session_is_forgotten_with_its_lock(
    bench: Bench, eventually: Callable[..., Any]
) -> None:
    session = bench.shares.sessions.begin(A, 1, [TopicPartition(TOPIC, 0)])
    shared = await bench.share(0)
    session.partitions.clear()
    bench.shares.sessions.end(session)
    assert len(bench.shares) == 1
    clock: Any = SimpleNamespace(monotonic_ms=lambda: 20, now_ms=lambda: 20)
    shared._around = shared._around._replace(clock=clock)
    shared._arm(0)
    await eventually(lambda: not len(bench.shares))


async def test_a_large_session_ends_in_parts(bench: Bench, eventually: Callable[..., Any]) -> None:
    count = 2 * PART // PARTITION_WEIGHT
    wanted = [TopicPartition(TOPIC, index) for index in range(count)]
    session = bench.shares.sessions.begin(A, 1, wanted)
    for where in wanted:
        await bench.share(where.partition)
    bench.shares.sessions.end(session)
    released = [
        not any(run.is_acquired for run in shared._shares.runs)
        for shared in bench.shares._shared.values()
        if shared._shares is not None
    ]
    assert 0 < sum(released) < count
    # Another connection's session of the member keeps the rest.
    bench.shares.sessions.begin(A, 2, wanted)
    await asyncio.sleep(0.01)
    kept = [
        any(run.is_acquired for run in shared._shares.runs)
        for shared in bench.shares._shared.values()
        if shared._shares is not None
    ]
    assert sum(kept) == count - sum(released)
    bench.shares.sessions.connection_ended(2)
    await eventually(lambda: not len(bench.shares))
