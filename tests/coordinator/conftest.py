"""Coordinators over logs in memory: they can be restarted, and their logs can fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from random import Random

import pytest

from ottla.coordinator.coordinator_log import KeyAndValue, LogMarker, LogRecord, Verification
from ottla.coordinator.coordinator_runtime import CoordinatorRuntime
from ottla.coordinator.group_coordinator import GroupCoordinator, Verify, group_kind
from ottla.coordinator.marker_sender import Written
from ottla.coordinator.transaction_coordinator import TransactionCoordinator, transaction_kind
from ottla.groups.classic.requests import JoinRequest, SyncRequest
from ottla.groups.history.events import Event, Loaded
from ottla.groups.offsets.commit import CommitRequest, OffsetsCommitted, OffsetToCommit
from ottla.groups.settings import GroupSettings
from ottla.groups.shard import GroupShard
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.shards.step import ProducerEpoch, TransactionMarker
from ottla.transactions.requests import AddRequest
from ottla.transactions.settings import TransactionSettings
from ottla.transactions.shard import TransactionShard
from ottla.transactions.step import MarkersDue
from ottla.transactions.stored import TopicPartition


class MemoryLog:
    """A partition in memory; `hold` keeps the high watermark where it is."""

    def __init__(self) -> None:
        self.records: list[LogRecord | LogMarker] = []
        self.held_at: int | None = None
        self.refuse: ErrorCode | None = None
        self.moved = asyncio.Event()
        self.lost = False
        self.leader_epoch = 7
        self.verified: list[tuple[ProducerEpoch, bool]] = []
        self.guards: list[object | None] = []
        """Of each append in a transaction."""
        self.ongoing: set[ProducerEpoch] = set()

    @property
    def high_watermark(self) -> int:
        return len(self.records) if self.held_at is None else self.held_at

    max_batch_bytes = 1 << 20

    def check(self) -> None:
        if self.refuse is not None:
            raise ApiError(self.refuse)

    def begin_verification(self, producer: ProducerEpoch, *, version_2: bool) -> Verification:
        if self.refuse is not None:
            raise ApiError(self.refuse)
        self.verified.append((producer, version_2))
        return Verification("guard", producer not in self.ongoing)

    def append(
        self,
        records: Sequence[KeyAndValue],
        now_ms: int,
        producer: ProducerEpoch | None,
        guard: object | None = None,
    ) -> int:
        if self.refuse is not None:
            raise ApiError(self.refuse)
        if producer is not None:
            self.guards.append(guard)
            self.ongoing.add(producer)
        for key, value in records:
            self.records.append(LogRecord(len(self.records), key, value, now_ms, producer))
        return len(self.records) - 1

    def append_marker(self, marker: TransactionMarker, now_ms: int) -> int:
        if self.refuse is not None:
            raise ApiError(self.refuse)
        self.ongoing.discard(marker.producer)
        self.records.append(LogMarker(len(self.records), marker))
        return len(self.records) - 1

    def read_all(self) -> Iterator[LogRecord | LogMarker]:
        yield from list(self.records)

    async def committed(self, offset: int) -> bool:
        while offset >= self.high_watermark and not self.lost:
            await self.moved.wait()
        return not self.lost

    def hold(self) -> None:
        self.held_at = self.high_watermark
        self.moved.clear()

    def release(self) -> None:
        self.held_at = None
        self.moved.set()


class StillClock:
    def __init__(self) -> None:
        self.time_ms = 1_000_000

    def now_ms(self) -> int:
        return self.time_ms

    def monotonic_ms(self) -> int:
        return self.time_ms


class MemoryLogs:
    """Every partition's log, all of them led."""

    def __init__(self, partitions: int) -> None:
        self._logs = [MemoryLog() for _ in range(partitions)]

    def open(self, index: int) -> MemoryLog:
        return self._logs[index]

    def indexes(self) -> Iterable[int]:
        return range(len(self._logs))


class GroupBench:
    """A coordinator over logs that outlive it."""

    def __init__(self, partitions: int = 4) -> None:
        self.partitions = partitions
        self.clock = StillClock()
        self.logs = MemoryLogs(partitions)
        self.commits: list[OffsetsCommitted] = []
        self.events: list[Event | Loaded] = []
        """What histories are made of."""
        self.settings = GroupSettings(min_session_timeout_ms=1, offset_commit_timeout_ms=60_000)
        self.runtime: CoordinatorRuntime[GroupShard]
        self.verify: Verify | None = None
        self.is_verifying = True
        self.coordinator = self.start()

    def start(self) -> GroupCoordinator:
        kind = group_kind(
            self.settings, on_committed=self.commits.append, on_event=self.events.append
        )
        self.runtime = CoordinatorRuntime(kind, self.logs, self.clock)
        return GroupCoordinator(
            self.runtime,
            lambda: self.partitions,
            random=Random(1),
            verify=self.verify,
            verifies_older=lambda: self.is_verifying,
            note=self.events.append,
        )

    def log_of(self, group: str) -> MemoryLog:
        return self.logs.open(self.coordinator.partition_for(group))

    def close(self) -> None:
        self.coordinator.close()
        self.runtime.close()

    def restart(self) -> GroupCoordinator:
        self.close()
        self.coordinator = self.start()
        return self.coordinator

    def joining(self, member_id: str = "", group: str = "g", **changes: object) -> JoinRequest:
        request = JoinRequest(
            token=None,
            group=group,
            member_id=member_id,
            group_instance_id=None,
            new_member_id="",
            client_id="client",
            client_host="/127.0.0.1",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=(("range", b"\0\0\0\0\0\1\0\1t"),),
        )
        return request._replace(**changes)  # type: ignore[arg-type]

    def syncing(self, generation: int, member_id: str, **assignments: bytes) -> SyncRequest:
        return SyncRequest(None, "g", generation, member_id, None, "consumer", "range", assignments)

    def committing(self, *offsets: int, **changes: object) -> CommitRequest:
        request = CommitRequest(
            group="g",
            generation=-1,
            member_id="",
            group_instance_id=None,
            retention_ms=-1,
            offsets=tuple(
                OffsetToCommit("t", None, partition, offset, 3, "m")
                for partition, offset in enumerate(offsets)
            ),
            version=9,
        )
        return request._replace(**changes)  # type: ignore[arg-type]

    async def join_alone(self) -> str:
        """One member, stable, in generation 1."""
        asked = await self.coordinator.join(self.joining())
        assert asked.error is ErrorCode.member_id_required
        joined = await self.coordinator.join(self.joining(asked.member_id))
        assert (joined.error, joined.generation) == (ErrorCode.none, 1)
        request = self.syncing(1, asked.member_id)._replace(assignments={asked.member_id: b"mine"})
        assert (await self.coordinator.sync(request)).assignment == b"mine"
        return asked.member_id


class TransactionBench:
    """A coordinator of transactions over logs that outlive it, with the markers it asks for."""

    def __init__(self, partitions: int = 4) -> None:
        self.partitions = partitions
        self.clock = StillClock()
        self.logs = MemoryLogs(partitions)
        self.settings = TransactionSettings(append_timeout_ms=60_000)
        self.cluster_version = 2
        self.due: list[MarkersDue] = []
        self.next_producer_id = 1_000
        self.runtime: CoordinatorRuntime[TransactionShard]
        self.coordinator = self.start()

    def start(self) -> TransactionCoordinator:
        kind = transaction_kind(self.settings, lambda: self.cluster_version, self.due.append)
        self.runtime = CoordinatorRuntime(kind, self.logs, self.clock)
        return TransactionCoordinator(
            self.runtime,
            lambda: self.partitions,
            self.new_producer_id,
            lambda: self.cluster_version,
        )

    async def new_producer_id(self) -> int:
        if self.next_producer_id < 0:
            raise ApiError(ErrorCode.coordinator_load_in_progress)
        self.next_producer_id += 1
        return self.next_producer_id - 1

    def log_of(self, transactional_id: str) -> MemoryLog:
        return self.logs.open(self.coordinator.partition_for(transactional_id))

    def close(self) -> None:
        self.coordinator.close()
        self.runtime.close()

    def restart(self) -> TransactionCoordinator:
        self.close()
        self.coordinator = self.start()
        return self.coordinator

    async def initialize(self, transactional_id: str = "t") -> ProducerEpoch:
        result = await self.coordinator.initialize(transactional_id, 60_000, None)
        assert result.error is ErrorCode.none
        return result.producer

    async def add(self, producer: ProducerEpoch, *partitions: tuple[str, int]) -> None:
        named = frozenset(TopicPartition(*each) for each in partitions)
        request = AddRequest("t", producer, named, 2)
        assert await self.coordinator.add(request) is ErrorCode.none

    async def complete(self, due: MarkersDue) -> None:
        index = self.coordinator.partition_for(due.transactional_id)
        done = Written(due.transactional_id, due.producer, due.partitions)
        await self.coordinator.written(index, [done])


@pytest.fixture
async def transactions() -> AsyncIterator[TransactionBench]:
    made = TransactionBench()
    yield made
    made.close()


@pytest.fixture
async def bench() -> AsyncIterator[GroupBench]:
    made = GroupBench()
    yield made
    made.close()


@pytest.fixture
def memory_logs() -> type[MemoryLogs]:
    return MemoryLogs


@pytest.fixture
def clock() -> StillClock:
    return StillClock()
