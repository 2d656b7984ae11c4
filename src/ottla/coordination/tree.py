"""The coordination port: a tree of small versioned nodes that holds the cluster's state.

It has ZooKeeper's interface, so that the controller's code is the same on the embedded store of one
broker (`embedded.py`) and on a ZooKeeper ensemble. Each node has data and a version that grows by
one with each `set`. An ephemeral node lives as long as the session that created it. A watch fires
once, after the change that it waits for is visible. `multi` does all of its operations or none.

    CoordinationError
        NoNodeError             the path, or the parent of a node to create, does not exist
        NodeExistsError         the node to create exists
        BadVersionError         the node's version is not the expected one: someone else wrote
        NotEmptyError           a node with children cannot be deleted
        EphemeralParentError    an ephemeral node cannot have children
        SessionExpiredError     the session has ended; its ephemeral nodes are gone
        ConnectionLostError     no response arrived: a write may have happened or not
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

ANY_VERSION: Final = -1

MAX_OPERATIONS: Final = 1_000
"""The most operations in a `multi` on ZooKeeper."""
MAX_REQUEST_BYTES: Final = 1_000_000
"""The largest `multi` on ZooKeeper, by `size_bytes`: its `jute.maxbuffer` is 1,048,575."""


class CoordinationError(Exception):
    """An error of the tree; the text is the path."""


class NoNodeError(CoordinationError):
    """The path, or the parent of the node to create, does not exist."""


class NodeExistsError(CoordinationError):
    """The node to create exists."""


class BadVersionError(CoordinationError):
    """The node's version is not the expected one."""


class NotEmptyError(CoordinationError):
    """A node with children cannot be deleted."""


class EphemeralParentError(CoordinationError):
    """An ephemeral node cannot have children."""


class SessionExpiredError(CoordinationError):
    """The session has ended."""


class ConnectionLostError(CoordinationError):
    """No response arrived. A write may have happened or not; the session may still live."""


class TreeNode(NamedTuple):
    """One node's content."""

    data: bytes
    version: int
    owner: int = 0
    """The session that owns an ephemeral node; 0 for a persistent node."""
    created: int = 0
    """The transaction that created this node (czxid); a recreated node has another one."""


@dataclass(frozen=True, slots=True)
class Create:
    """Create a node with version 0; its parent must exist."""

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
    """Delete a node without children if it has this version."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Check:
    """Fail unless the node has this version."""

    path: str
    version: int


Operation = Create | SetData | Delete | Check


def size_bytes(operation: Operation) -> int:
    """Upper bound of an operation's size in a request, for splitting many into several `multi`."""
    data = operation.data if isinstance(operation, Create | SetData) else b""
    # 64 covers ZooKeeper's header (9), lengths (8), version or flags (4), access list (27).
    return len(operation.path.encode()) + len(data) + 64


class Change(enum.Enum):
    """What happened to a watched node."""

    CREATED = "created"
    DELETED = "deleted"
    DATA = "data"
    CHILDREN = "children"
    EXPIRED = "expired"
    """The session has ended: its watches do not fire again."""


class Event(NamedTuple):
    """A change, as watches get it."""

    change: Change
    path: str


Watch = Callable[[Event], None]


class Limits(NamedTuple):
    """The largest `multi` that a side of the port accepts."""

    operations: int = MAX_OPERATIONS
    size_bytes: int = MAX_REQUEST_BYTES
    """The sum of the operations' `size_bytes`."""


class Coordination(Protocol):
    """A session with the tree.

    Every call raises SessionExpiredError after the session has ended, and ConnectionLostError if no
    response arrives. Calls take effect in the order in which they were made.
    """

    @property
    def number(self) -> int:
        """The session's number, as in `TreeNode.owner`."""

    @property
    def is_connected(self) -> bool:
        """Whether the tree can be reached now, as far as this session knows."""

    @property
    def limits(self) -> Limits | None:
        """The largest `multi`; None if there is no limit."""

    async def get(self, path: str, watch: Watch | None = None) -> TreeNode:
        """The node; `watch` waits for a change of its data or its deletion. NoNodeError."""

    async def exists(self, path: str, watch: Watch | None = None) -> TreeNode | None:
        """The node or None; `watch` waits for its creation, change or deletion."""

    async def children(self, path: str, watch: Watch | None = None) -> tuple[str, ...]:
        """Names of the children, sorted; `watch` waits for a change of that set. NoNodeError."""

    async def read_tree(self, path: str) -> dict[str, TreeNode]:
        """The node and all nodes below it, by path; empty if the node does not exist. The children
        of a node are in the order of their names.
        """

    async def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False) -> TreeNode:
        """Create a node and return it. NodeExistsError, NoNodeError, EphemeralParentError."""

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        """Replace the data; returns the new version. NoNodeError, BadVersionError."""

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Delete a node. NoNodeError, BadVersionError, NotEmptyError."""

    async def multi(self, operations: Sequence[Operation]) -> None:
        """Do all operations in order. If one fails, do none and raise its error.

        A session with `limits` asserts them.
        """

    async def close(self) -> None:
        """End the session; its ephemeral nodes are deleted."""

    def abandon(self) -> None:
        """For any thread: feed the session no longer, so that it ends after its timeout whatever
        the event loop does. Its calls then raise SessionExpiredError.
        """


def check_path(path: str) -> str:
    """Returns the path; asserts that ZooKeeper would accept it."""
    assert path == "/" or (path.startswith("/") and not path.endswith("/") and "//" not in path)
    assert "\0" not in path, path
    return path


def parent_of(path: str) -> str:
    """The path of a node's parent."""
    return path.rpartition("/")[0] or "/"
