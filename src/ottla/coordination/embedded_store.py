"""The coordination tree in one SQLite file, for a single broker.

File: `coordination.sqlite` in the data folder, with SQLite's own -wal and -shm beside it. Table
`node`: path, parent, data, version, owner (session of an ephemeral node, else 0), created (number
of the transaction that created it). Table `meta`: the last numbers of sessions and of transactions
that created nodes.

Crash: each `multi` is one transaction in write-ahead mode with synchronous=FULL, so after any stop
the file holds all of it or none, and everything acknowledged is on the disk. The next start deletes
ephemeral nodes left by a killed broker: the data folder's lock admits only one process, so their
owner is gone.

All calls block and must come from one thread (see `embedded.py`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from ottla.coordination.sqlite_reason import sqlite_reason
from ottla.coordination.tree import (
    ANY_VERSION,
    BadVersionError,
    Change,
    Check,
    CoordinationError,
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

FILE_NAME: Final = "coordination.sqlite"

_SYNC_CODES: Final = (sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC)

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS node (
    path TEXT PRIMARY KEY,
    parent TEXT NOT NULL,
    data BLOB NOT NULL,
    version INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    created INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS node_parent ON node (parent);
CREATE INDEX IF NOT EXISTS node_owner ON node (owner) WHERE owner != 0;
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT OR IGNORE INTO node (path, parent, data, version, owner) VALUES ('/', '', x'', 0, 0);
"""


class StoreError(CoordinationError):
    """The file cannot be opened, read or written; the text has its path and the reason."""


class StoreSyncError(StoreError):
    """An fsync failed: whether the file holds the transaction is known after the next start."""


def store_error(place: str, error: sqlite3.Error) -> StoreError:
    """What SQLite's error means for the file."""
    kind = StoreSyncError if getattr(error, "sqlite_errorcode", None) in _SYNC_CODES else StoreError
    return kind(sqlite_reason(place, error))


class EmbeddedStore:
    """The tree. `folder` None keeps it in memory, for tests."""

    def __init__(self, folder: Path | None) -> None:
        self.place = ":memory:" if folder is None else str(folder / FILE_NAME)
        """For messages."""
        try:
            self._database = sqlite3.connect(
                self.place, isolation_level=None, check_same_thread=False, timeout=1
            )
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=FULL")
            self._database.executescript(_SCHEMA)
            columns = {row[1] for row in self._database.execute("PRAGMA table_info(node)")}
            if "created" not in columns:  # a file of version 0.1
                self._database.execute(
                    "ALTER TABLE node ADD COLUMN created INTEGER NOT NULL DEFAULT 0"
                )
            self._database.execute("DELETE FROM node WHERE owner != 0")
        except sqlite3.Error as error:
            raise store_error(self.place, error) from None

    def close(self) -> None:
        """Close the file; SQLite merges the write-ahead log into it."""
        self._database.close()

    def new_session(self) -> int:
        """Return a number that no session had before."""
        with _Transaction(self._database):
            return self._next("session")

    def _next(self, name: str) -> int:
        """The next number of that name, in the open transaction."""
        self._database.execute(
            "INSERT INTO meta VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = value + 1",
            (name,),
        )
        row = self._database.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return int(row[0])

    def get(self, path: str) -> TreeNode | None:
        """The node at the path, or None."""
        row = self._database.execute(
            "SELECT data, version, owner, created FROM node WHERE path = ?", (check_path(path),)
        ).fetchone()
        return None if row is None else TreeNode(*row)

    def children(self, path: str) -> tuple[str, ...]:
        """Names of the children, sorted; raises NoNodeError."""
        if self.get(path) is None:
            raise NoNodeError(path)
        prefix = len(path) + (path != "/")
        rows = self._database.execute("SELECT path FROM node WHERE parent = ?", (path,))
        return tuple(sorted(row[0][prefix:] for row in rows))

    def read_tree(self, path: str) -> dict[str, TreeNode]:
        """The node and all below it."""
        below = path if path.endswith("/") else path + "/"
        rows = self._database.execute(
            # "0" is the character after "/": the range has exactly the paths that start with
            # `below`.
            "SELECT path, data, version, owner, created FROM node WHERE path = ? "
            "OR (path > ? AND path < ?) ORDER BY path",
            (check_path(path), below, below[:-1] + "0"),
        )
        return {row[0]: TreeNode(*row[1:]) for row in rows}

    def multi(self, operations: Sequence[Operation], session: int) -> list[Event]:
        """Do all operations or none. Returns the events for watches, in order."""
        events: list[Event] = []
        try:
            with _Transaction(self._database):
                makes = any(isinstance(operation, Create) for operation in operations)
                number = self._next("created") if makes else 0
                for operation in operations:
                    self._apply(operation, session, number, events)
        except sqlite3.Error as error:
            raise store_error(self.place, error) from None
        return events

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
            self._database.execute(
                "UPDATE node SET data = ?, version = version + 1 WHERE path = ?",
                (operation.data, path),
            )
            events.append(Event(Change.DATA, path))
        elif isinstance(operation, Delete):
            self._delete(path)
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
        owner = session if operation.ephemeral else 0
        try:
            self._database.execute(
                "INSERT INTO node VALUES (?, ?, ?, 0, ?, ?)",
                (path, parent, operation.data, owner, number),
            )
        except sqlite3.IntegrityError:
            raise NodeExistsError(path) from None

    def _delete(self, path: str) -> None:
        assert path != "/"
        row = self._database.execute(
            "SELECT 1 FROM node WHERE parent = ? LIMIT 1", (path,)
        ).fetchone()
        if row is not None:
            raise NotEmptyError(path)
        self._database.execute("DELETE FROM node WHERE path = ?", (path,))


class _Transaction:
    """BEGIN, then COMMIT, or ROLLBACK after an exception."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            try:
                self._database.execute("COMMIT")
            except sqlite3.Error:
                # For example a full disk. The transaction must not stay open, or the next BEGIN
                # fails, too. SQLite has usually rolled back by itself; report the first error.
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise
        elif self._database.in_transaction:
            self._database.execute("ROLLBACK")
