"""Sessions with the simulated coordination tree: late, lost, expired.

The tree itself (`simulation.tree`) never fails. The connection to it does: responses may be lost,
and a session expires after its timeout.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from ottla.coordination.tree import (
    ANY_VERSION,
    Change,
    ConnectionLostError,
    Create,
    Delete,
    Event,
    Limits,
    Operation,
    SessionExpiredError,
    SetData,
    TreeNode,
    Watch,
)
from simulation.loop import VirtualLoop
from simulation.process import CURRENT, Process
from simulation.tree import Tree

T = TypeVar("T")

TREE: Final = "10.0.3.1"
"""The tree's address, to cut brokers off from it."""


class TreeHost:
    """The host of the tree: opens sessions and expires silent ones."""

    def __init__(
        self,
        loop: VirtualLoop,
        tree: Tree,
        session_timeout_s: float,
        limits: Limits,
    ) -> None:
        self.loop = loop
        self.tree = tree
        self.session_timeout_s = session_timeout_s
        self.stall_s: Callable[[Process, Sequence[Operation]], float] = lambda process, writes: 0.0
        """The extra delay of these writes of a process."""
        self.limits = limits
        self.sessions: dict[int, TreeSession] = {}

    async def connect(self) -> TreeSession:
        """Open a session for the current process. Raises ConnectionLostError during a cut."""
        process = CURRENT.get()
        await asyncio.sleep(self.loop.network.delay_s())
        if self.loop.network.is_cut(process.host, TREE):
            raise ConnectionLostError("/")
        session = TreeSession(self, process, self.tree.connect())
        self.sessions[session.number] = session
        return session

    def watch_sessions(self) -> None:
        """Expire sessions whose process is dead, stopped or cut off, in the driver's process."""
        now_s = self.loop.time()
        for session in list(self.sessions.values()):
            process = session.process
            cut = self.loop.network.is_cut(process.host, TREE)
            if process.is_alive and not process.is_paused and not cut:
                session.heard_s = now_s
            elif now_s - session.heard_s > self.session_timeout_s:
                self.expire(session.number)
        self.loop.call_later(self.session_timeout_s / 6, self.watch_sessions)

    def expire(self, number: int) -> None:
        """End a session; its owner learns of it."""
        session = self.sessions.pop(number, None)
        if session is not None:
            self.tree.expire(number)
            session.expired()


class TreeSession:
    """`ottla.coordination.tree.Coordination` for one process."""

    def __init__(self, host: TreeHost, process: Process, number: int) -> None:
        self.number = number
        self.process = process
        self.heard_s = host.loop.time()
        self._host = host
        self._watches: list[Watch] = []
        self._turn: asyncio.Lock = asyncio.Lock()

    @property
    def is_connected(self) -> bool:
        """As far as the client knows; it notices a cut only when a response is missing."""
        return True

    @property
    def limits(self) -> Limits:
        return self._host.limits

    async def get(self, path: str, watch: Watch | None = None) -> TreeNode:
        return await self._ask(lambda tree: tree.get(self.number, path, self._in_process(watch)))

    async def exists(self, path: str, watch: Watch | None = None) -> TreeNode | None:
        return await self._ask(lambda tree: tree.exists(self.number, path, self._in_process(watch)))

    async def children(self, path: str, watch: Watch | None = None) -> tuple[str, ...]:
        return await self._ask(
            lambda tree: tree.children(self.number, path, self._in_process(watch))
        )

    async def read_tree(self, path: str) -> dict[str, TreeNode]:
        return await self._ask(lambda tree: below(tree, path))

    async def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False) -> TreeNode:
        def create(tree: Tree) -> TreeNode:
            tree.multi(self.number, [Create(path, data, ephemeral)])
            return tree.nodes[path]

        return await self._ask(create)

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        def write(tree: Tree) -> int:
            tree.multi(self.number, [SetData(path, data, version)])
            return tree.nodes[path].version

        return await self._ask(write)

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self._ask(lambda tree: tree.multi(self.number, [Delete(path, version)]))

    async def multi(self, operations: Sequence[Operation]) -> None:
        stall_s = self._host.stall_s(self.process, operations)
        await self._ask(lambda tree: tree.multi(self.number, operations), stall_s)

    async def close(self) -> None:
        self._host.sessions.pop(self.number, None)
        self._host.tree.expire(self.number)

    def abandon(self) -> None:
        raise AssertionError("a process of the simulation has no watchdog")

    def expired(self) -> None:
        """Notify the owner's watches, as ZooKeeper's client does."""
        watches, self._watches = self._watches, []
        for watch in watches:
            self._later(watch, Event(Change.EXPIRED, "/"))

    async def _ask(self, call: Callable[[Tree], T], stall_s: float = 0.0) -> T:
        """Calls take effect in the order in which they were made, each after a delay."""
        network = self._host.loop.network
        async with self._turn:
            await asyncio.sleep(network.delay_s() + stall_s)
            self._check_reach()
            result = call(self._host.tree)
        await asyncio.sleep(network.delay_s())
        self._check_reach()
        return result

    def _check_reach(self) -> None:
        if self.number not in self._host.sessions:
            raise SessionExpiredError(str(self.number))
        if self._host.loop.network.is_cut(self.process.host, TREE):
            raise ConnectionLostError("/")

    def _in_process(self, watch: Watch | None) -> Watch | None:
        """Watches fire in the owner's process, after a delay."""
        if watch is None:
            return None
        self._watches.append(watch)
        return partial(self._fire, watch)

    def _fire(self, watch: Watch, event: Event) -> None:
        if watch in self._watches:
            self._watches.remove(watch)
        self._later(watch, event)

    def _later(self, watch: Watch, event: Event) -> None:
        loop = self._host.loop
        self.process.context.run(loop.call_later, loop.network.delay_s(), watch, event)


def below(tree: Tree, path: str) -> dict[str, TreeNode]:
    """The node and all its descendants."""
    prefix = path.rstrip("/") + "/"
    return {each: node for each, node in tree.nodes.items() if f"{each}/".startswith(prefix)}
