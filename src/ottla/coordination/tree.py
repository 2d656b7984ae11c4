"""The coordination port: a tree of small versioned nodes that holds the cluster's state.

It has the shape of ZooKeeper, so that the controller's code is the same on the embedded store of
one broker (`embedded.py`) and on a ZooKeeper ensemble. Each node has data and a version that grows
by one with each `set`. An ephemeral node lives as long as the session that made it. A watch fires
once, after the change that it waits for is visible. `multi` does all of its operations or none.

    CoordinationError
        NoNodeError             the path, or the parent of a node to be made, does not exist
        NodeExistsError         the node to be made exists
        BadVersionError         the node's version is not the expected one: someone else wrote
        NotEmptyError           a node with children cannot be deleted
        EphemeralParentError    an ephemeral node cannot have children
        SessionExpiredError     the session is over; its ephemeral nodes are gone
        ConnectionLostError     the answer did not come: whether a write happened is unknown
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

ANY_VERSION: Final = -1

MAX_OPERATIONS: Final = 1_000
"""So many operations a `multi` may have."""
MAX_REQUEST_BYTES: Final = 1_000_000
"""So large a `multi` may be, by `size_bytes`: ZooKeeper's `jute.maxbuffer` is 1,048,575."""


class CoordinationError(Exception):
    """What goes wrong with the tree; the text is the path."""


class NoNodeError(CoordinationError):
    """The path, or the parent of the node to be made, does not exist."""


class NodeExistsError(CoordinationError):
    """The node to be made exists."""


class BadVersionError(CoordinationError):
    """The node's version is not the expected one."""


class NotEmptyError(CoordinationError):
    """A node with children cannot be deleted."""


class EphemeralParentError(CoordinationError):
    """An ephemeral node cannot have children."""


class SessionExpiredError(CoordinationError):
    """The session is over."""


class ConnectionLostError(CoordinationError):
    """The answer did not come. A write may have happened or not; the session may still live."""


class Node(NamedTuple):
    """One node's content."""

    data: bytes
    version: int
    owner: int = 0
    """The session that an ephemeral node lives with; 0 for a lasting one."""
    created: int = 0
    """Which creation this node is of: another number each time a node is made (czxid)."""


@dataclass(frozen=True, slots=True)
class Create:
    """Make a node; its parent must exist. Version 0."""

    path: str
    data: bytes = b""
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class SetData:
    """Replace a node's data if it has this version."""

    path: str
    data: bytes
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a node without children if it has this version."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Check:
    """Do nothing but fail unless the node has this version."""

    path: str
    version: int


Operation = Create | SetData | Delete | Check


def size_bytes(operation: Operation) -> int:
    """At least the size of an operation in a request, for cutting many into several `multi`."""
    data = operation.data if isinstance(operation, Create | SetData) else b""
    # 64: ZooKeeper's header of each (9), lengths (8), version or flags (4), access list (27).
    return len(operation.path.encode()) + len(data) + 64


class Change(enum.Enum):
    """What happened to a watched node."""

    CREATED = "created"
    DELETED = "deleted"
    DATA = "data"
    CHILDREN = "children"
    EXPIRED = "expired"
    """The session is over: no watch of it will fire again."""


class Event(NamedTuple):
    """What a watch is told."""

    change: Change
    path: str


Watch = Callable[[Event], None]


class Coordination(Protocol):
    """A session with the tree.

    Every call raises SessionExpiredError once the session is over, and ConnectionLostError when
    its answer does not come. Calls take effect in the order in which they were made.
    """

    @property
    def number(self) -> int:
        """The session, as `Node.owner` has it."""

    @property
    def is_connected(self) -> bool:
        """Whether the tree can be reached now, as far as is known."""

    async def get(self, path: str, watch: Watch | None = None) -> Node:
        """The node; `watch` waits for its data to change or for its end. NoNodeError."""

    async def exists(self, path: str, watch: Watch | None = None) -> Node | None:
        """The node or None; `watch` waits for its making, change or end."""

    async def children(self, path: str, watch: Watch | None = None) -> tuple[str, ...]:
        """Names of the children, sorted; `watch` waits for another set of them. NoNodeError."""

    async def read_tree(self, path: str) -> dict[str, Node]:
        """The node and all below it, by path; empty where there is none."""

    async def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False) -> Node:
        """Make a node and return it. NodeExistsError, NoNodeError, EphemeralParentError."""

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        """Replace the data; returns the new version. NoNodeError, BadVersionError."""

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove a node. NoNodeError, BadVersionError, NotEmptyError."""

    async def multi(self, operations: Sequence[Operation]) -> None:
        """Do all operations in order, or none and raise what the first bad one raises.

        A ZooKeeper session asserts no more than MAX_OPERATIONS and MAX_REQUEST_BYTES.
        """

    async def close(self) -> None:
        """End the session; its ephemeral nodes go."""


def check_path(path: str) -> str:
    """The path itself; an assertion for one that ZooKeeper would not take."""
    assert path == "/" or (path.startswith("/") and not path.endswith("/") and "//" not in path)
    assert "\0" not in path, path
    return path


def parent_of(path: str) -> str:
    """The path of a node's parent."""
    return path.rpartition("/")[0] or "/"
