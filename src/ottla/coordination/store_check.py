"""Checks the file of the embedded tree: a checksum of each node, and a digest of all together.

A node's checksum is the CRC-32C of its path, data, version, owner and number. The digest is the sum
of the checksums of all persistent nodes and all rows of `meta`, modulo 2^62; it changes with each
transaction, together with the number of changes. So one pass over the rows finds a node that
differs, one that is missing and one too many; paths that are out of order, with which look-ups
would miss nodes; and, compared with the copy, a file that has lost its last transactions, such as
one whose write-ahead log is damaged: SQLite ends it at the first damaged frame, in silence.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Final, NamedTuple

import crc32c

from ottla.coordination.tree import TreeNode

_DIGEST_MASK: Final = (1 << 62) - 1
_MAX_NAMED: Final = 3
_ROWS_A_SLICE: Final = 500
_DAMAGE: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR})
"""The last one is that of a damaged schema: no such table, no such column."""


class DamagedStoreError(Exception):
    """The file does not have what was written; the text says what is wrong, in a few words."""


class StoreState(NamedTuple):
    """The number of transactions that changed the file, and the digest after the last one."""

    changes: int = 0
    digest: int = 0

    def after(self, added: int) -> StoreState:
        """The state after one more transaction, which added so much to the digest."""
        return StoreState(self.changes + 1, (self.digest + added) & _DIGEST_MASK)

    @property
    def checksum(self) -> int:
        """The state's own."""
        return crc32c.crc32c(b"%d %d" % self)


class Scan(NamedTuple):
    """What one pass over the file found."""

    state: StoreState
    nodes: dict[str, TreeNode]
    """All persistent nodes."""
    ephemeral: list[str]
    """The paths of nodes whose sessions are over: the process that had the file open is gone."""


def node_checksum(path: str, node: TreeNode) -> int:
    """The checksum of a node, as its row has it."""
    data, version, owner, created = node
    return crc32c.crc32c(data, crc32c.crc32c(f"{version} {owner} {created} {path}".encode()))


def meta_checksum(name: str, value: int) -> int:
    """What a row of `meta` adds to the digest."""
    return crc32c.crc32c(f"{name} {value}".encode())


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the error is about the file's content, not about reading it."""
    if isinstance(error, sqlite3.OperationalError | sqlite3.DatabaseError):
        # Without a code: text that is not UTF-8.
        return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF in _DAMAGE
    return False


def read_state(database: sqlite3.Connection) -> StoreState:
    """The state of a file. Raises DamagedStoreError and sqlite3.Error."""
    row = database.execute("SELECT changes, digest, checksum FROM state").fetchone()
    if row is None:
        raise DamagedStoreError("its digest is missing")
    state = StoreState(row[0], row[1])
    if not all(isinstance(each, int) for each in row) or state.checksum != row[2]:
        raise DamagedStoreError("its digest is damaged")
    return state


def scan(database: sqlite3.Connection, pause: Callable[[], None] = lambda: None) -> Scan:
    """Reads and checks every row; calls `pause` between some, in which other threads may run.

    Raises DamagedStoreError, and sqlite3.Error if the file cannot be read.
    """
    try:
        return _scan(database, pause)
    except sqlite3.Error as error:
        if is_damage(error):
            raise DamagedStoreError(str(error)) from None
        raise


def _scan(database: sqlite3.Connection, pause: Callable[[], None]) -> Scan:
    state = read_state(database)
    digest, nodes, ephemeral, wrong = 0, {}, [], []
    before = ""
    rows = database.execute("SELECT path, checksum, data, version, owner, created FROM node")
    while some := rows.fetchmany(_ROWS_A_SLICE):
        for path, checksum, data, version, owner, created in some:
            node = TreeNode(data, version, owner, created)
            try:
                is_right = node_checksum(path, node) == checksum
            except (TypeError, ValueError):  # a column of another type
                is_right = False
            if not is_right:
                wrong.append(str(path).encode("unicode_escape").decode())
                continue
            if path <= before:
                raise DamagedStoreError(f"{path} is out of order")
            before = path
            if owner:
                ephemeral.append(path)
                continue
            digest += checksum
            nodes[path] = node
        pause()
    if wrong:
        more = f" and {len(wrong) - _MAX_NAMED} more" if len(wrong) > _MAX_NAMED else ""
        named = ", ".join(wrong[:_MAX_NAMED])
        raise DamagedStoreError(f"these nodes are not as they were written: {named}{more}")
    for name, value in database.execute("SELECT name, value FROM meta"):
        digest += meta_checksum(name, value)
    if digest & _DIGEST_MASK != state.digest:
        raise DamagedStoreError("nodes are missing, or too many")
    return Scan(state, nodes, ephemeral)
