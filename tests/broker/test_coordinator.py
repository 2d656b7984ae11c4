"""The group coordinator on a log in memory: requests in, answers out, restarts between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence

import pytest

from ottla.broker.coordinator import GroupCoordinators
from ottla.broker.group_shard import KeyAndValue, LogRecord
from ottla.groups.classic.requests import HeartbeatRequest, JoinRequest, LeavingMember, SyncRequest
from ottla.groups.offsets.commit import CommitRequest, OffsetToCommit
from ottla.groups.settings import GroupSettings
from ottla.protocol.errors import ApiError, ErrorCode

OK = ErrorCode.none


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


class Bench:
    """A coordinator over logs that outlive it."""

    def __init__(self, partitions: int = 4) -> None:
        self.partitions = partitions
        self.clock = StillClock()
        self.logs: dict[int, MemoryLog] = {}
        self.commits: list[tuple[str, str, int, int, str, int]] = []
        self.settings = GroupSettings(min_session_timeout_ms=1, offset_commit_timeout_ms=200)
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


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    made.coordinators.close()


def joining(member_id: str = "", group: str = "g", **changes: object) -> JoinRequest:
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


def syncing(generation: int, member_id: str, **assignments: bytes) -> SyncRequest:
    return SyncRequest(None, "g", generation, member_id, None, "consumer", "range", assignments)


def committing(*offsets: int, **changes: object) -> CommitRequest:
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


async def join_alone(coordinators: GroupCoordinators) -> str:
    """One member, stable, in generation 1."""
    asked = await coordinators.join(joining())
    assert asked.error is ErrorCode.member_id_required
    joined = await coordinators.join(joining(asked.member_id))
    assert (joined.error, joined.generation) == (OK, 1)
    request = syncing(1, asked.member_id)._replace(assignments={asked.member_id: b"mine"})
    assert (await coordinators.sync(request)).assignment == b"mine"
    return asked.member_id


async def test_a_member_joins_syncs_beats_commits_and_leaves(bench: Bench) -> None:
    groups = bench.coordinators
    member = await join_alone(groups)
    assert await groups.heartbeat(HeartbeatRequest("g", 1, member, None)) is OK
    request = committing(7, generation=1, member_id=member)
    assert await groups.commit(request) == [OK]
    fetched = await groups.fetch("g", (("t", None, (0, 1)),))
    assert [(each.offset, each.metadata) for each in fetched[0]] == [(7, "m"), (-1, "")]
    assert bench.commits == [("g", "t", 0, 7, "m", 1_000_000)]
    left = await groups.leave("g", (LeavingMember(member, None),))
    assert left[0].error is OK
    assert (await groups.describe("g")).state == "Empty"
    with pytest.raises(ApiError) as refused:
        await groups.commit(request)
    assert refused.value.code is ErrorCode.unknown_member_id


async def test_all_of_it_is_there_after_a_restart(bench: Bench) -> None:
    member = await join_alone(bench.coordinators)
    await bench.coordinators.commit(committing(7, generation=1, member_id=member))
    before = await bench.coordinators.describe("g")
    groups = bench.restart()
    assert await groups.describe("g") == before
    assert await groups.heartbeat(HeartbeatRequest("g", 1, member, None)) is OK
    assert (await groups.fetch_all("g"))["t"][0].offset == 7
