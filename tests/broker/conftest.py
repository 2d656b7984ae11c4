"""A group coordinator over logs in memory, that can be restarted and whose logs can fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence

import pytest

from ottla.broker.coordinator import GroupCoordinators
from ottla.broker.group_shard import KeyAndValue, LogRecord
from ottla.groups.classic.requests import JoinRequest, SyncRequest
from ottla.groups.offsets.commit import CommitRequest, OffsetToCommit
from ottla.groups.settings import GroupSettings
from ottla.protocol.errors import ApiError, ErrorCode


class MemoryLog:
    """A partition in memory; `hold` keeps the high watermark where it is."""

    def __init__(self) -> None:
        self.records: list[LogRecord] = []
        self.held_at: int | None = None
        self.refuse: ErrorCode | None = None
        self.moved = asyncio.Event()
        self.lost = False

    @property
    def high_watermark(self) -> int:
        return len(self.records) if self.held_at is None else self.held_at

    def append(self, records: Sequence[KeyAndValue], now_ms: int) -> int:
        if self.refuse is not None:
            raise ApiError(self.refuse)
        for key, value in records:
            self.records.append(LogRecord(len(self.records), key, value))
        return len(self.records) - 1

    def read_all(self) -> Iterator[LogRecord]:
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


class GroupBench:
    """A coordinator over logs that outlive it."""

    def __init__(self, partitions: int = 4) -> None:
        self.partitions = partitions
        self.clock = StillClock()
        self.logs: dict[int, MemoryLog] = {}
        self.commits: list[tuple[str, str, int, int, str, int]] = []
        self.settings = GroupSettings(min_session_timeout_ms=1, offset_commit_timeout_ms=60_000)
        self.coordinators = self.start()

    def start(self) -> GroupCoordinators:
        return GroupCoordinators(
            self.settings,
            self.clock,
            self.log,
            lambda: range(self.partitions),
            lambda: self.partitions,
            on_commit=lambda *commit: self.commits.append(commit),
        )

    def log(self, partition: int) -> MemoryLog:
        return self.logs.setdefault(partition, MemoryLog())

    def log_of(self, group: str) -> MemoryLog:
        return self.log(self.coordinators.partition_for(group))

    def restart(self) -> GroupCoordinators:
        self.coordinators.close()
        self.coordinators = self.start()
        return self.coordinators

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
            knows_group_id_not_found=True,
        )
        return request._replace(**changes)  # type: ignore[arg-type]

    async def join_alone(self) -> str:
        """One member, stable, in generation 1."""
        asked = await self.coordinators.join(self.joining())
        assert asked.error is ErrorCode.member_id_required
        joined = await self.coordinators.join(self.joining(asked.member_id))
        assert (joined.error, joined.generation) == (ErrorCode.none, 1)
        request = self.syncing(1, asked.member_id)._replace(assignments={asked.member_id: b"mine"})
        assert (await self.coordinators.sync(request)).assignment == b"mine"
        return asked.member_id


@pytest.fixture
async def bench() -> AsyncIterator[GroupBench]:
    made = GroupBench()
    yield made
    made.coordinators.close()
