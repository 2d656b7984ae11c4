"""Coordination without another process: sessions and watches on top of `EmbeddedStore`.

SQLite runs in a thread of its own, because a commit waits for the disk and the event loop must not.
Calls reach that thread in the order in which they were made, so they see each other's writes.
Watches stay on the loop and fire there, after the write that they wait for is committed. Another
thread copies the file after changes (`copy_keeper`).

After a failed fsync every call fails: SQLite may have left a transaction in the file that was
refused here, and nobody may build on either until the next start has read it from the disk.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from ottla.coordination.copy_keeper import CopyKeeper
from ottla.coordination.embedded_store import EmbeddedStore, StoreSyncError, store_error
from ottla.coordination.tree import (
    ANY_VERSION,
    Change,
    Create,
    Delete,
    Event,
    NoNodeError,
    Operation,
    SessionExpiredError,
    SetData,
    TreeNode,
    Watch,
)

T = TypeVar("T")


class EmbeddedTree:
    """The tree, for any number of sessions (a broker needs one)."""

    def __init__(
        self, folder: Path | None, on_lost_sync: Callable[[str], None] = lambda why: None
    ) -> None:
        """`folder` None keeps the tree in memory. The first call opens it. `on_lost_sync` is called
        with the reason if an fsync has failed.
        """
        self._folder = folder
        self._on_lost_sync = on_lost_sync
        self._lost_sync: StoreSyncError | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="coordination")
        self._store: EmbeddedStore | None = None
        self._keeper = None if folder is None else CopyKeeper(folder)
        self._sessions: dict[int, EmbeddedCoordination] = {}

    async def connect(self) -> EmbeddedCoordination:
        """Open a session. Raises StoreError if the file cannot be opened."""
        number = await self.run(lambda store: store.new_session())
        session = EmbeddedCoordination(self, number)
        self._sessions[number] = session
        return session

    @property
    def may_lack_changes(self) -> bool:
        """Whether the file was damaged, and its copy is older than it was, or may be."""
        return self._store is not None and self._store.may_lack_changes

    async def expire(self, session: EmbeddedCoordination) -> None:
        """End a session as if it had timed out (for tests)."""
        if self._sessions.pop(session.number, None) is not None:
            session.expired()
            number = session.number
            self.notify(await self.run(lambda store: store.end_session(number)))

    async def close(self) -> None:
        """End all sessions and close the file; its copy then has every change."""
        for session in list(self._sessions.values()):
            await self.expire(session)
        if self._keeper is not None:
            await self._keeper.stop()
        if self._store is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._store.close)
            if self._keeper is not None and self._lost_sync is None:
                await self._keeper.copy()
        self._thread.shutdown(wait=True)

    async def run(self, work: Callable[[EmbeddedStore], T]) -> T:
        """Do the work on the store's thread. Raises StoreError."""
        try:
            done = await asyncio.get_running_loop().run_in_executor(self._thread, self._call, work)
        except StoreSyncError as error:
            self._on_lost_sync(str(error))
            raise
        if self._keeper is not None and self._store is not None:
            self._keeper.changed(self._store.state.changes)
        return done

    def _call(self, work: Callable[[EmbeddedStore], T]) -> T:
        if self._lost_sync is not None:
            raise StoreSyncError(str(self._lost_sync))
        try:
            if self._store is None:
                self._store = EmbeddedStore(self._folder)
            try:
                return work(self._store)
            except sqlite3.Error as error:
                raise store_error(self._store.path, error) from None
        except StoreSyncError as error:
            self._lost_sync = error
            raise

    def notify(self, events: Sequence[Event]) -> None:
        """Fire the watches of all sessions that wait for these events."""
        for session in list(self._sessions.values()):
            session.fire(events)


class EmbeddedCoordination:
    """One session; see `ottla.coordination.tree.Coordination`."""

    def __init__(self, tree: EmbeddedTree, number: int) -> None:
        self.number = number
        self._tree = tree
        self._expired = False
        self._data_watches: dict[str, list[Watch]] = {}
        self._child_watches: dict[str, list[Watch]] = {}

    @property
    def is_connected(self) -> bool:
        return not self._expired

    @property
    def limits(self) -> None:
        """None: one transaction of SQLite may have any size."""
        return None

    async def get(self, path: str, watch: Watch | None = None) -> TreeNode:
        node = await self._read(path, self._data_watches, watch, lambda store: store.get(path))
        if node is None:
            self._forget(self._data_watches, path, watch)
            raise NoNodeError(path)
        return node

    async def exists(self, path: str, watch: Watch | None = None) -> TreeNode | None:
        return await self._read(path, self._data_watches, watch, lambda store: store.get(path))

    async def children(self, path: str, watch: Watch | None = None) -> tuple[str, ...]:
        try:
            return await self._read(
                path, self._child_watches, watch, lambda store: store.children(path)
            )
        except NoNodeError:
            self._forget(self._child_watches, path, watch)
            raise

    async def read_tree(self, path: str) -> dict[str, TreeNode]:
        self._check_alive()
        return await self._tree.run(lambda store: store.read_tree(path))

    async def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False) -> TreeNode:
        return await self._write(Create(path, data, ephemeral))

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        return (await self._write(SetData(path, data, version))).version

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self.multi([Delete(path, version)])

    async def multi(self, operations: Sequence[Operation]) -> None:
        self._check_alive()
        number = self.number
        self._tree.notify(await self._tree.run(lambda store: store.multi(operations, number)))

    async def _write(self, operation: Create | SetData) -> TreeNode:
        """Write, and return the resulting node, in one step of the store's thread."""
        self._check_alive()

        def work(store: EmbeddedStore) -> tuple[list[Event], TreeNode]:
            events = store.multi([operation], self.number)
            node = store.get(operation.path)
            assert node is not None
            return events, node

        events, node = await self._tree.run(work)
        self._tree.notify(events)
        return node

    async def close(self) -> None:
        """End the session; its ephemeral nodes are deleted."""
        await self._tree.expire(self)

    def abandon(self) -> None:
        """Nothing to do: no other broker could lead."""

    def expired(self) -> None:
        """Called by the tree: calls fail from now on, and every watch fires."""
        self._expired = True
        watches = [
            watch
            for table in (self._data_watches, self._child_watches)
            for waiting in table.values()
            for watch in waiting
        ]
        self._data_watches.clear()
        self._child_watches.clear()
        for watch in watches:
            watch(Event(Change.EXPIRED, ""))

    def fire(self, events: Sequence[Event]) -> None:
        """Fire each watch that waits for one of the events, once."""
        # A large change has tens of thousands of events, and a session watches a few nodes.
        watched = self._data_watches.keys() | self._child_watches.keys()
        for event in events:
            if event.path not in watched:
                continue
            tables = [self._data_watches]
            if event.change is Change.CHILDREN:
                tables = [self._child_watches]
            elif event.change is Change.DELETED:
                tables.append(self._child_watches)
            for table in tables:
                for watch in table.pop(event.path, ()):
                    watch(event)

    async def _read(
        self,
        path: str,
        table: dict[str, list[Watch]],
        watch: Watch | None,
        work: Callable[[EmbeddedStore], T],
    ) -> T:
        self._check_alive()
        if watch is not None:
            # Before the read: a write between the two then fires the watch, at worst once too
            # often. The other order would miss the change.
            table.setdefault(path, []).append(watch)
        return await self._tree.run(work)

    @staticmethod
    def _forget(table: dict[str, list[Watch]], path: str, watch: Watch | None) -> None:
        waiting = table.get(path, [])
        if watch in waiting:
            waiting.remove(watch)
        if not waiting:
            table.pop(path, None)

    def _check_alive(self) -> None:
        if self._expired:
            raise SessionExpiredError(str(self.number))
