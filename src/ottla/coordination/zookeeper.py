"""Coordination on a ZooKeeper ensemble (3.6 or newer), through kazoo.

A session is a `ZooKeeperCoordination`; `zookeeper_session.py` describes how it loses its connection
and how it ends. Requests are pipelined and take effect in order. `read_tree` reads many nodes in
one request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final

from kazoo import exceptions as kazoo_errors
from kazoo.hosts import collect_hosts
from kazoo.protocol import serialization as wire
from kazoo.protocol.states import ZnodeStat
from kazoo.security import OPEN_ACL_UNSAFE

from ottla.coordination.tree import (
    ANY_VERSION,
    MAX_OPERATIONS,
    MAX_REQUEST_BYTES,
    Check,
    ConnectionLostError,
    CoordinationError,
    Create,
    Delete,
    Event,
    Limits,
    NodeExistsError,
    NoNodeError,
    Operation,
    SetData,
    TreeNode,
    Watch,
    check_path,
    size_bytes,
)
from ottla.coordination.zookeeper_session import State, ZooKeeperSession, port_error
from ottla.coordination.zookeeper_wire import MultiRead
from ottla.runtime.slices import Slices

__all__ = ["EnsembleError", "State", "ZooKeeperCoordination", "ZooKeeperTree"]

log = logging.getLogger("ottla.zookeeper")

READS_A_REQUEST: Final = 500
REQUESTS_AT_ONCE: Final = 4
NODES_A_SLICE: Final = 2_000
"""At 3 to 5 us each."""
_EPHEMERAL: Final = 1
_NOT_THE_CAUSE: Final = (kazoo_errors.RolledBackError, kazoo_errors.RuntimeInconsistency)
"""The errors of the operations before and after the failed one of a `multi`."""
_SERVERS_OWN: Final = "zookeeper"
"""The ensemble's own child of the root: not part of our tree."""


class EnsembleError(CoordinationError):
    """The ensemble cannot be reached or refuses us; the one-line text names it."""


class ZooKeeperTree:
    """The ensemble; each `connect` opens a new session."""

    def __init__(
        self, connect: str, *, session_timeout_ms: int, connection_timeout_ms: int
    ) -> None:
        """`connect`: HOST:PORT[,HOST:PORT...][/chroot], as in `zookeeper.connect`."""
        hosts, _, chroot = connect.partition("/")
        self._connect_string = connect
        self._hosts = hosts
        self._chroot = "/" + chroot.strip("/") if chroot.strip("/") else ""
        self._session_timeout_ms = session_timeout_ms
        self._connection_timeout_ms = connection_timeout_ms

    async def connect(self) -> ZooKeeperCoordination:
        """Open a session, and create the chroot if it does not exist.

        Raises EnsembleError if no server answers within `connection_timeout_ms`, or one refuses us.
        """
        try:
            collect_hosts(self._hosts)
            check_path(self._chroot or "/")
        except (ValueError, AssertionError):
            raise EnsembleError(
                f"zookeeper.connect={self._connect_string}: use HOST:PORT[,...][/chroot]"
            ) from None
        log.info(
            "ZooKeeper at %s: connecting, timeout %d ms",
            self._connect_string,
            self._connection_timeout_ms,
        )
        session = ZooKeeperCoordination(self._hosts, self._chroot, self._session_timeout_ms)
        try:
            async with asyncio.timeout(self._connection_timeout_ms / 1000):
                await session.open()
        except (TimeoutError, ConnectionLostError):
            await session.close()
            raise EnsembleError(
                f"ZooKeeper at {self._connect_string} does not answer"
                f" (waited {self._connection_timeout_ms} ms): is it running at this address?"
            ) from None
        except CoordinationError as error:
            await session.close()
            raise EnsembleError(f"ZooKeeper at {self._connect_string}: {error}") from None
        except BaseException:
            await session.close()
            raise
        return session


class ZooKeeperCoordination:
    """One session; see `ottla.coordination.tree.Coordination`."""

    def __init__(self, hosts: str, chroot: str, session_timeout_ms: int) -> None:
        self._chroot = chroot
        self._session = ZooKeeperSession(hosts, chroot, session_timeout_ms)

    @property
    def number(self) -> int:
        """The session's number; 0 before the first connection."""
        return self._session.number

    @property
    def state(self) -> State:
        """The session's state; see `on_state`."""
        return self._session.state

    @property
    def is_connected(self) -> bool:
        return self._session.state is State.CONNECTED

    @property
    def limits(self) -> Limits:
        return Limits()

    def on_state(self, callback: Callable[[State], None]) -> None:
        """Call `callback` with each new state, on the loop, before the watches fire."""
        self._session.state_callbacks.append(callback)

    async def open(self) -> None:
        """Open the session and create the chroot, without a time limit."""
        await self._session.open()
        path = ""
        for name in self._chroot.split("/")[1:]:
            path += f"/{name}"
            try:
                await self._session.ask(wire.Create(path, b"", OPEN_ACL_UNSAFE, 0), path)
            except NodeExistsError:
                continue

    async def get(self, path: str, watch: Watch | None = None) -> TreeNode:
        full = self._full(path)
        response = await self._session.watched(
            lambda watcher: wire.GetData(full, watcher), path, self._session.data_watches, watch
        )
        return _node(response)

    async def exists(self, path: str, watch: Watch | None = None) -> TreeNode | None:
        # ZooKeeper's `exists` returns no data, and its `getData` sets no watch if the node does
        # not exist. So `getData` first, then `exists`.
        full = self._full(path)
        while True:
            try:
                return await self.get(path, watch)
            except NoNodeError:
                if watch is None:
                    return None
            made = asyncio.Event()

            def tell(event: Event, made: asyncio.Event = made) -> None:
                if not made.is_set():
                    watch(event)

            stat = await self._session.watched(
                lambda watcher: wire.Exists(full, watcher), path, self._session.data_watches, tell
            )
            if stat is None:
                return None
            made.set()  # created in between: drop this watch and read the node

    async def children(self, path: str, watch: Watch | None = None) -> tuple[str, ...]:
        full = self._full(path)
        names = await self._session.watched(
            lambda watcher: wire.GetChildren(full, watcher),
            path,
            self._session.child_watches,
            watch,
        )
        return tuple(sorted(name for name in names if not self._servers_own(path, name)))

    async def read_tree(self, path: str) -> dict[str, TreeNode]:
        """Read the node and all nodes below it, level by level, many nodes a request. The children
        of a node are in the order of their names.

        Not a snapshot: a concurrent change may be included or not.
        """
        nodes: dict[str, TreeNode] = {}
        level = [check_path(path)]
        slices = Slices(NODES_A_SLICE)
        while level:
            parents = []
            async for part in self._read_many(level, children=False):
                await slices.count(len(part))
                for each, (data, stat) in part:
                    nodes[each] = _node((data, stat))
                    if stat.numChildren:
                        parents.append(each)
            level = []
            async for part in self._read_many(parents, children=True):
                for parent, names in part:
                    await slices.count(1 + len(names) // 10)
                    base = parent.rstrip("/")
                    level += [
                        f"{base}/{name}"
                        for name in sorted(names)
                        if not self._servers_own(parent, name)
                    ]
        return nodes

    async def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False) -> TreeNode:
        operation = Create(path, data, ephemeral)
        assert size_bytes(operation) <= MAX_REQUEST_BYTES, path
        _, stat = await self._session.ask(
            wire.Create2(self._full(path), data, OPEN_ACL_UNSAFE, _EPHEMERAL if ephemeral else 0),
            path,
            made=True,
        )
        return _node((data, stat))

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        operation = SetData(path, data, version)
        assert size_bytes(operation) <= MAX_REQUEST_BYTES, path
        stat = await self._session.ask(self._request(operation), path)
        return int(stat.version)

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self._session.ask(self._request(Delete(path, version)), path)

    async def multi(self, operations: Sequence[Operation]) -> None:
        assert len(operations) <= MAX_OPERATIONS, len(operations)
        assert sum(map(size_bytes, operations)) <= MAX_REQUEST_BYTES
        if not operations:
            self._session.check_alive()
            return
        requests = [self._request(operation) for operation in operations]
        for operation, result in zip(
            operations,
            await self._session.ask_when_connected(wire.Transaction(requests), "multi"),
            strict=True,
        ):
            if isinstance(result, Exception) and not isinstance(result, _NOT_THE_CAUSE):
                raise port_error(result, operation.path, made=isinstance(operation, Create))

    async def close(self) -> None:
        """End the session; its ephemeral nodes are deleted."""
        await self._session.close()

    def abandon(self) -> None:
        """For any thread: feed the session no longer."""
        self._session.abandon()

    async def _read_many(
        self, paths: Sequence[str], *, children: bool
    ) -> AsyncIterator[list[tuple[str, Any]]]:
        """The nodes that exist among these paths, in order, those of a request at a time."""
        limit = asyncio.Semaphore(REQUESTS_AT_ONCE)

        async def some(part: Sequence[str]) -> list[Any]:
            async with limit:
                request = MultiRead([(self._full(path), children) for path in part])
                return list(await self._session.ask_again(request, part[0]))

        self._session.check_alive()
        parts = [
            paths[first : first + READS_A_REQUEST]
            for first in range(0, len(paths), READS_A_REQUEST)
        ]
        for part, answers in zip(parts, await asyncio.gather(*map(some, parts)), strict=True):
            found: list[tuple[str, Any]] = []
            for path, answer in zip(part, answers, strict=True):
                if isinstance(answer, kazoo_errors.NoNodeError):
                    continue
                if isinstance(answer, Exception):
                    raise port_error(answer, path)
                found.append((path, answer))
            yield found

    def _request(self, operation: Operation) -> Any:
        path = self._full(operation.path)
        if isinstance(operation, Create):
            flags = _EPHEMERAL if operation.ephemeral else 0
            return wire.Create(path, operation.data, OPEN_ACL_UNSAFE, flags)
        if isinstance(operation, SetData):
            return wire.SetData(path, operation.data, operation.version)
        if isinstance(operation, Delete):
            return wire.Delete(path, operation.version)
        assert isinstance(operation, Check)
        return wire.CheckVersion(path, operation.version)

    def _full(self, path: str) -> str:
        check_path(path)
        return (self._chroot + path).rstrip("/") or "/"

    def _servers_own(self, parent: str, name: str) -> bool:
        return name == _SERVERS_OWN and parent == "/" and not self._chroot


def _node(response: tuple[bytes | None, ZnodeStat]) -> TreeNode:
    data, stat = response
    return TreeNode(data or b"", stat.version, stat.ephemeralOwner, stat.czxid)
