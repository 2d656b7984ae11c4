"""The coordination tree in one SQLite file, for a single broker.

File: `coordination.sqlite` in the data folder, with SQLite's own -wal and -shm beside it. Table
`node`: path, parent, data, version, owner (session of an ephemeral node, else 0), created (number
of the transaction that created it), checksum. Table `meta`: the last numbers of sessions and of
transactions that created nodes. Table `state`: one row, the number of changes and the digest of all
(`store_check`). The nodes are in the order of their paths, and there is no other index: the check
at the start covers all that later reads depend on.

Crash: each `multi` is one transaction in write-ahead mode with synchronous=FULL, so after any stop
the file holds all of it or none, and everything acknowledged is on the disk. The next start deletes
ephemeral nodes left by a killed broker: the data folder's lock admits only one process, so their
owner is gone.

Damage: the start reads the whole file anyway, and checks it; `store_copy` says what it does then.

All calls block and must come from one thread (see `embedded.py`).
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from ottla.coordination.store_check import (
    DamagedStoreError,
    Scan,
    StoreState,
    is_damage,
    meta_checksum,
    node_checksum,
    scan,
)
from ottla.coordination.store_copy import FILE_NAME, copied_state, use_copy
from ottla.coordination.store_error import StoreError, StoreSyncError, store_error
from ottla.coordination.tree import (
    ANY_VERSION,
    BadVersionError,
    Change,
    Check,
    Create,
    Delete,
    EphemeralParentError,
    Event,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    SetData,
    TreeNode,
    check_path,
    parent_of,
)

__all__ = ["FILE_NAME", "EmbeddedStore", "StoreError", "StoreSyncError", "store_error"]

_MAX_UPDATED: Final = 100
"""After a larger write than the few of a start, the nodes in memory are dropped."""
_ROOT: Final = TreeNode(b"", 0)
_META: Final = (
    "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID"
)
_SCHEMA: Final = f"""
CREATE TABLE node (
    path TEXT PRIMARY KEY,
    parent TEXT NOT NULL,
    data BLOB NOT NULL,
    version INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    created INTEGER NOT NULL DEFAULT 0,
    checksum INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
{_META};
INSERT INTO node VALUES ('/', '', x'', 0, 0, 0, {node_checksum("/", _ROOT)});
"""
_STATE: Final = """
CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    changes INTEGER NOT NULL,
    digest INTEGER NOT NULL,
    checksum INTEGER NOT NULL
)
"""


class EmbeddedStore:
    """The tree. `folder` None keeps it in memory, for tests."""

    def __init__(self, folder: Path | None) -> None:
        """Raises StoreError."""
        self.path = ":memory:" if folder is None else str(folder / FILE_NAME)
        """For messages."""
        self.may_lack_changes = False
        """The file was damaged, and its copy is older than it was, or may be."""
        try:
            if folder is None:
                self._database, found = self._opened()
            else:
                self._database, found = self._opened_or_copy(folder)
        except sqlite3.Error as error:
            raise store_error(self.path, error) from None
        except DamagedStoreError as error:
            raise StoreError(f"{self.path} is damaged ({error})") from None
        self.state = found.state
        self._added = 0
        """What the open transaction adds to the digest."""
        self._scanned: _Scanned | None = _Scanned(found.nodes)
        """All nodes, as the check read them, until the controller has loaded its image: it reads
        the same nodes."""
        self._was_read = False
        if found.ephemeral:
            marks = ((path,) for path in found.ephemeral)
            with _Transaction(self):
                self._database.executemany("DELETE FROM node WHERE path = ?", marks)

    def _opened_or_copy(self, folder: Path) -> tuple[sqlite3.Connection, Scan]:
        """The file, or its copy if the file is damaged, missing, or older than its copy."""
        copied = copied_state(folder)
        database = None
        try:
            if copied is not None and not (folder / FILE_NAME).exists():
                raise DamagedStoreError("it is missing")
            database, found = self._opened()
            if copied is not None and copied.changes > found.state.changes:
                lost = copied.changes - found.state.changes
                raise DamagedStoreError(f"its last {lost} changes are missing")
        except DamagedStoreError as error:
            if database is not None:
                database.close()
            self.may_lack_changes = use_copy(folder, str(error))
            database, found = self._opened()
        return database, found

    def _opened(self) -> tuple[sqlite3.Connection, Scan]:
        """Opens and checks the file. Raises DamagedStoreError and sqlite3.Error."""
        database = sqlite3.connect(
            self.path, isolation_level=None, check_same_thread=False, timeout=1
        )
        try:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=FULL")
            _make_tables(database)
            return database, scan(database)
        except sqlite3.Error as error:
            database.close()
            if is_damage(error):
                raise DamagedStoreError(str(error)) from None
            raise
        except DamagedStoreError:
            database.close()
            raise

    def close(self) -> None:
        """Close the file; SQLite merges the write-ahead log into it."""
        self._database.close()

    def new_session(self) -> int:
        """Return a number that no session had before."""
        with _Transaction(self):
            return self._next("session")

    def _next(self, name: str) -> int:
        """The next number of that name, in the open transaction."""
        self._database.execute(
            "INSERT INTO meta VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = value + 1",
            (name,),
        )
        row = self._database.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        value = int(row[0])
        self._added += meta_checksum(name, value)
        if value > 1:
            self._added -= meta_checksum(name, value - 1)
        return value

    def get(self, path: str) -> TreeNode | None:
        """The node at the path, or None. Raises StoreError if it is damaged."""
        row = self._database.execute(
            "SELECT data, version, owner, created, checksum FROM node WHERE path = ?",
            (check_path(path),),
        ).fetchone()
        return None if row is None else self._checked(path, row)

    def _checked(self, path: str, row: tuple[bytes, int, int, int, int]) -> TreeNode:
        node = TreeNode(*row[:4])
        if node_checksum(path, node) != row[4]:
            raise StoreError(f"{self.path} is damaged ({path}): start the broker again")
        return node

    def children(self, path: str) -> tuple[str, ...]:
        """Names of the children, sorted; raises NoNodeError."""
        if self.get(path) is None:
            raise NoNodeError(path)
        below, end = _range_below(path)
        rows = self._database.execute(
            "SELECT path FROM node WHERE path > ? AND path < ?", (below, end)
        )
        names = (row[0][len(below) :] for row in rows)
        return tuple(sorted(name for name in names if "/" not in name))

    def read_tree(self, path: str) -> dict[str, TreeNode]:
        """The node and all below it. Raises StoreError if one is damaged."""
        below, end = _range_below(check_path(path))
        if self._scanned is not None:
            self._was_read = True
            return self._scanned.read(path, below, end)
        rows = self._database.execute(
            "SELECT path, data, version, owner, created, checksum FROM node WHERE path = ? "
            "OR (path > ? AND path < ?) ORDER BY path",
            (path, below, end),
        )
        return {row[0]: self._checked(row[0], row[1:]) for row in rows}

    def multi(self, operations: Sequence[Operation], session: int) -> list[Event]:
        """Do all operations or none. Returns the events for watches, in order."""
        events: list[Event] = []
        try:
            with _Transaction(self):
                makes = any(isinstance(operation, Create) for operation in operations)
                number = self._next("created") if makes else 0
                for operation in operations:
                    self._apply(operation, session, number, events)
        except sqlite3.Error as error:
            raise store_error(self.path, error) from None
        self._update_scanned(operations)
        return events

    def _update_scanned(self, operations: Sequence[Operation]) -> None:
        if self._was_read or len(operations) > _MAX_UPDATED:
            self._scanned = None
        if self._scanned is None:
            return
        for operation in operations:
            self._scanned.put(operation.path, self.get(operation.path))

    def end_session(self, session: int) -> list[Event]:
        """Delete the session's ephemeral nodes."""
        with closing(
            self._database.execute("SELECT path FROM node WHERE owner = ?", (session,))
        ) as rows:
            paths = [row[0] for row in rows]
        return self.multi([Delete(path) for path in paths], session)

    def _apply(self, operation: Operation, session: int, number: int, events: list[Event]) -> None:
        path = check_path(operation.path)
        if isinstance(operation, Create):
            self._create(operation, session, number)
            events.append(Event(Change.CREATED, path))
            events.append(Event(Change.CHILDREN, parent_of(path)))
            return
        node = self.get(path)
        if node is None:
            raise NoNodeError(path)
        if operation.version not in (ANY_VERSION, node.version):
            raise BadVersionError(path)
        if isinstance(operation, SetData):
            after = node._replace(data=operation.data, version=node.version + 1)
            self._database.execute(
                "UPDATE node SET data = ?, version = ?, checksum = ? WHERE path = ?",
                (after.data, after.version, self._replaced(path, node, after), path),
            )
            events.append(Event(Change.DATA, path))
        elif isinstance(operation, Delete):
            self._delete(path, node)
            events.append(Event(Change.DELETED, path))
            events.append(Event(Change.CHILDREN, parent_of(path)))
        else:
            assert isinstance(operation, Check)

    def _create(self, operation: Create, session: int, number: int) -> None:
        path = operation.path
        parent = parent_of(path)
        row = self._database.execute("SELECT owner FROM node WHERE path = ?", (parent,)).fetchone()
        if row is None:
            raise NoNodeError(parent)
        if row[0]:
            raise EphemeralParentError(parent)
        node = TreeNode(operation.data, 0, session if operation.ephemeral else 0, number)
        try:
            self._database.execute(
                "INSERT INTO node VALUES (?, ?, ?, 0, ?, ?, ?)",
                (path, parent, node.data, node.owner, number, node_checksum(path, node)),
            )
        except sqlite3.IntegrityError:
            raise NodeExistsError(path) from None
        self._replaced(path, None, node)

    def _replaced(self, path: str, before: TreeNode | None, after: TreeNode | None) -> int:
        """Updates the digest; returns the checksum of `after`. Ephemeral nodes are not in it,
        because no start finds them.
        """
        checksum = 0
        if before is not None and not before.owner:
            self._added -= node_checksum(path, before)
        if after is not None:
            checksum = node_checksum(path, after)
            if not after.owner:
                self._added += checksum
        return checksum

    def _delete(self, path: str, node: TreeNode) -> None:
        assert path != "/"
        row = self._database.execute(
            "SELECT 1 FROM node WHERE path > ? AND path < ? LIMIT 1", _range_below(path)
        ).fetchone()
        if row is not None:
            raise NotEmptyError(path)
        self._database.execute("DELETE FROM node WHERE path = ?", (path,))
        self._replaced(path, node, None)


class _Scanned:
    """All nodes in memory, in the order of their paths."""

    def __init__(self, nodes: dict[str, TreeNode]) -> None:
        self._nodes = nodes
        self._paths = list(nodes)

    def read(self, path: str, below: str, end: str) -> dict[str, TreeNode]:
        """The node, and those between the two paths."""
        nodes, paths = self._nodes, self._paths
        found = {path: nodes[path]} if path in nodes else {}
        for each in paths[bisect_right(paths, below) : bisect_left(paths, end)]:
            found[each] = nodes[each]
        return found

    def put(self, path: str, node: TreeNode | None) -> None:
        """The node is this now; None if there is none."""
        if node is None:
            if self._nodes.pop(path, None) is not None:
                del self._paths[bisect_left(self._paths, path)]
            return
        if path not in self._nodes:
            insort(self._paths, path)
        self._nodes[path] = node


def _range_below(path: str) -> tuple[str, str]:
    """The paths between the two, both excluded, are those below `path`: "0" follows "/"."""
    below = path if path == "/" else path + "/"
    return below, below[:-1] + "0"


def _make_tables(database: sqlite3.Connection) -> None:
    """Makes the tables of a new file. One of an earlier version, which had no checksums, gets them:
    there is nothing yet to compare its nodes with.
    """
    tables = {row[0] for row in database.execute("SELECT name FROM sqlite_schema")}
    if "state" in tables:
        return
    columns: set[str] = set()
    if tables and "node" not in tables:
        raise DamagedStoreError("it has no nodes")
    if "node" in tables:
        columns = {row[1] for row in database.execute("PRAGMA table_info(node)")}
        if "checksum" in columns:
            raise DamagedStoreError("its digest is missing")
        # So that damage that SQLite itself can find does not get a checksum.
        (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise DamagedStoreError(str(verdict).replace("\n", "; "))
    database.execute("BEGIN IMMEDIATE")
    try:
        if "node" in tables:
            _add_checksums(database, columns)
        else:
            for statement in _SCHEMA.split(";\n"):
                database.execute(statement)
        database.execute(_STATE)
        digest = sum(
            row[0] for row in database.execute("SELECT checksum FROM node WHERE owner = 0")
        )
        digest += sum(
            meta_checksum(*row) for row in database.execute("SELECT name, value FROM meta")
        )
        state = StoreState().after(digest)
        database.execute("INSERT INTO state VALUES (1, ?, ?, ?)", (*state, state.checksum))
        database.execute("COMMIT")
    except sqlite3.Error:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


def _add_checksums(database: sqlite3.Connection, columns: set[str]) -> None:
    database.execute(_META)
    if "created" not in columns:  # a file of version 0.1
        database.execute("ALTER TABLE node ADD COLUMN created INTEGER NOT NULL DEFAULT 0")
    database.execute("ALTER TABLE node ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0")
    database.execute("DROP INDEX IF EXISTS node_parent")
    database.execute("DROP INDEX IF EXISTS node_owner")
    rows = database.execute("SELECT path, data, version, owner, created FROM node").fetchall()
    database.executemany(
        "UPDATE node SET checksum = ? WHERE path = ?",
        ((node_checksum(path, TreeNode(*node)), path) for path, *node in rows),
    )


class _Transaction:
    """BEGIN, then COMMIT with the new digest, or ROLLBACK after an exception."""

    def __init__(self, store: EmbeddedStore) -> None:
        self._store = store
        self._database = store._database

    def __enter__(self) -> None:
        self._store._added = 0
        self._database.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            after = self._store.state.after(self._store._added)
            try:
                self._database.execute(
                    "UPDATE state SET changes = ?, digest = ?, checksum = ?",
                    (*after, after.checksum),
                )
                self._database.execute("COMMIT")
            except sqlite3.Error:
                # For example a full disk. The transaction must not stay open, or the next BEGIN
                # fails, too. SQLite has usually rolled back by itself; report the first error.
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise
            self._store.state = after
        elif self._database.in_transaction:
            self._database.execute("ROLLBACK")
