"""Benches for the broker's rooms.

A group coordinator over logs in memory, that can be restarted and whose logs can fail; and several
brokers' parts in one cluster, on one tree and without connections.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.api.table import HANDLERS
from ottla.broker.coordinator import GroupCoordinators
from ottla.broker.group_shard import KeyAndValue, LogRecord
from ottla.config import BrokerConfig
from ottla.coordination.embedded import EmbeddedTree
from ottla.groups.classic.requests import JoinRequest, SyncRequest
from ottla.groups.offsets.commit import CommitRequest, OffsetToCommit
from ottla.groups.settings import GroupSettings
from ottla.network.client_session import ClientSession
from ottla.network.peer import PeerError
from ottla.network.request_context import RequestContext
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import messages_of


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
            random=Random(1),
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


class Neighbours:
    """Brokers on one tree; each reaches the others by a call instead of a connection."""

    def __init__(self, lone_node: Any) -> None:
        self.tree = EmbeddedTree(None)
        self.nodes: dict[int, Any] = {}
        """Whom the others reach."""
        self.addresses: dict[int, tuple[str, int]] = {}
        """Where a broker is that must be probed."""
        self._lone_node = lone_node
        self._all: list[Any] = []

    def new(self, broker_id: int, *, directory_id: str | None = None, **settings: str) -> Any:
        """A broker that has not started yet."""
        given = {name.replace("_", "."): text for name, text in settings.items()}
        node = self._lone_node(BrokerConfig({"node.id": str(broker_id), **given}), self.tree)
        node.store.metadata.directory_id = directory_id or f"folder {broker_id}"
        node.peers = SimpleNamespace(
            peer=lambda asked, purpose: SimpleNamespace(
                ask=lambda request, timeout_ms: self._ask(asked, request),
                ask_json=lambda key, document, timeout_ms: self._ask_json(asked, key, document),
            ),
            address=self.addresses.get,
            drop=lambda asked, purpose: None,
        )
        self._all.append(node)
        return node

    async def start(self, broker_id: int, *, live: bool = True, **settings: str) -> Any:
        """A registered broker; `live`: it follows what happens from now on."""
        node = self.new(broker_id, **settings)
        await node.start()
        self.nodes[broker_id] = node
        if live:
            node.membership.start()
        return node

    async def close(self) -> None:
        for node in self._all:
            await node.membership.close()
        await self.tree.close()

    async def _ask(self, broker_id: int, request: Any) -> Any:
        key, version = request.__api_key__, request.__version__
        context = self._context(broker_id, key, version)
        return await HANDLERS.find(key).answer(request, context)  # type: ignore[union-attr]

    async def _ask_json(self, broker_id: int, key: int, document: Any) -> Any:
        context = self._context(broker_id, key, 0)
        body = json.dumps(document).encode()
        return json.loads(await HANDLERS.find(key).answer(body, context))  # type: ignore[union-attr]

    def _context(self, broker_id: int, key: int, version: int) -> RequestContext[Any]:
        if broker_id not in self.nodes:
            raise PeerError(f"nobody listens as broker {broker_id}")
        in_json = HANDLERS.find(key).takes_json  # type: ignore[union-attr]
        return RequestContext(
            broker=self.nodes[broker_id],
            session=ClientSession(1, "", "", "", 0),
            version=version,
            client_id="tests",
            messages=None if in_json else messages_of(key, version),  # type: ignore[arg-type]
        )


@pytest.fixture
async def neighbours(lone_node: Any) -> AsyncIterator[Neighbours]:
    made = Neighbours(lone_node)
    yield made
    await made.close()


@pytest.fixture
def refusing_address() -> Iterator[tuple[str, int]]:
    """Where nobody listens, and nobody else can begin to."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()


@pytest.fixture
def eventually() -> Callable[[Callable[[], Any]], Any]:
    """Waits, with a limit, until a condition holds."""

    async def wait(condition: Callable[[], Any]) -> None:
        async with asyncio.timeout(60):
            while not condition():
                await asyncio.sleep(0.005)

    return wait
