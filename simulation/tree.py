"""The coordination tree in memory: ZooKeeper's semantics, without its ensemble.

The tree itself never fails and is always consistent: ZooKeeper guarantees that. Only the connection
to it fails (see `tree_session.py`), and sessions expire.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

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
    SessionExpiredError,
    SetData,
    TreeNode,
    Watch,
    parent_of,
)

Written = Callable[[str, TreeNode | None, TreeNode | None], None]
"""Called for each change of a node: its path, the old node, the new one."""


@dataclass(slots=True)
class _Watches:
    data: dict[str, list[tuple[int, Watch]]] = field(default_factory=dict)
    children: dict[str, list[tuple[int, Watch]]] = field(default_factory=dict)


class Tree:
    """Nodes by path. Each call names its session; raises SessionExpiredError if it has ended."""

    def __init__(self, written: Written) -> None:
        self.nodes: dict[str, TreeNode] = {"/": TreeNode(b"", 0)}
        self._children: dict[str, set[str]] = {"/": set()}
        self._written = written
        self._sessions: set[int] = set()
        self._last_session = 0
        self._last_change = 0
        self._watches = _Watches()

    def connect(self) -> int:
        """Open a session; return its number."""
        self._last_session += 1
        self._sessions.add(self._last_session)
        return self._last_session

    @property
    def last_change(self) -> int:
        """The number of the newest creation, as in `TreeNode.created`."""
        return self._last_change

    def lives(self, session: int) -> bool:
        """True until the session ends."""
        return session in self._sessions

    def expire(self, session: int) -> None:
        """End a session: delete its ephemeral nodes and notify its watches."""
        if session not in self._sessions:
            return
        self._sessions.discard(session)
        gone = [path for path, node in self.nodes.items() if node.owner == session]
        for path in gone:
            self._fire(self._apply(Delete(path), session, {}))
        for watches in (self._watches.data, self._watches.children):
            for path, each in watches.items():
                watches[path] = [pair for pair in each if pair[0] != session]

    def get(self, session: int, path: str, watch: Watch | None = None) -> TreeNode:
        """The node; raises NoNodeError."""
        self._check(session)
        if path not in self.nodes:
            raise NoNodeError(path)
        if watch is not None:
            self._watches.data.setdefault(path, []).append((session, watch))
        return self.nodes[path]

    def exists(self, session: int, path: str, watch: Watch | None = None) -> TreeNode | None:
        """The node or None."""
        self._check(session)
        if watch is not None:
            self._watches.data.setdefault(path, []).append((session, watch))
        return self.nodes.get(path)

    def children(self, session: int, path: str, watch: Watch | None = None) -> tuple[str, ...]:
        """The names of the children; raises NoNodeError."""
        self._check(session)
        if path not in self.nodes:
            raise NoNodeError(path)
        if watch is not None:
            self._watches.children.setdefault(path, []).append((session, watch))
        return tuple(sorted(self._children[path]))

    def read(self, session: int, roots: Sequence[str]) -> dict[str, TreeNode]:
        """All nodes at and below the roots."""
        self._check(session)
        return {
            path: node
            for path, node in self.nodes.items()
            if any(path == root or path.startswith(root + "/") for root in roots)
        }

    def multi(self, session: int, operations: Sequence[Operation]) -> None:
        """Apply all operations or none; raises the error of the first one that fails."""
        self._check(session)
        undo: dict[str, TreeNode | None] = {}
        events: list[Event] = []
        try:
            for operation in operations:
                events += self._apply(operation, session, undo)
        except Exception:
            self._restore(undo)
            raise
        for path, before in undo.items():
            self._written(path, before, self.nodes.get(path))
        self._fire(events)

    def _check(self, session: int) -> None:
        if session not in self._sessions:
            raise SessionExpiredError(str(session))

    def _put(self, path: str, node: TreeNode | None) -> None:
        parent, _, name = path.rpartition("/")
        if node is None:
            del self.nodes[path], self._children[path]
            self._children[parent or "/"].discard(name)
        else:
            self.nodes[path] = node
            self._children.setdefault(path, set())
            self._children[parent or "/"].add(name)

    def _restore(self, undo: dict[str, TreeNode | None]) -> None:
        made = [path for path, node in undo.items() if node is None and path in self.nodes]
        for path in sorted(made, reverse=True):
            self._put(path, None)
        for path in sorted(path for path, node in undo.items() if node is not None):
            self._put(path, undo[path])

    def _apply(
        self, operation: Operation, session: int, undo: dict[str, TreeNode | None]
    ) -> list[Event]:
        path = operation.path
        node = self.nodes.get(path)
        undo.setdefault(path, node)
        if isinstance(operation, Create):
            return self._create(operation, session)
        if node is None:
            raise NoNodeError(path)
        if operation.version not in (ANY_VERSION, node.version):
            raise BadVersionError(path)
        if isinstance(operation, Check):
            return []
        if isinstance(operation, SetData):
            self._put(path, node._replace(data=operation.data, version=node.version + 1))
            return [Event(Change.DATA, path)]
        if self._children[path]:
            raise NotEmptyError(path)
        self._put(path, None)
        return [Event(Change.DELETED, path), Event(Change.CHILDREN, parent_of(path))]

    def _create(self, operation: Create, session: int) -> list[Event]:
        path, parent = operation.path, parent_of(operation.path)
        if path in self.nodes:
            raise NodeExistsError(path)
        if parent not in self.nodes:
            raise NoNodeError(parent)
        if self.nodes[parent].owner:
            raise EphemeralParentError(parent)
        self._last_change += 1
        owner = session if operation.ephemeral else 0
        self._put(path, TreeNode(operation.data, 0, owner, self._last_change))
        return [Event(Change.CREATED, path), Event(Change.CHILDREN, parent)]

    def _fire(self, events: Sequence[Event]) -> None:
        for event in events:
            of_children = event.change is Change.CHILDREN
            watches = self._watches.children if of_children else self._watches.data
            for session, watch in watches.pop(event.path, []):
                if session in self._sessions:
                    watch(event)
