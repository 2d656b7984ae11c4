import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ottla.coordination.embedded_store import FILE_NAME, EmbeddedStore, StoreError
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
    parent_of,
)


@pytest.fixture
def store() -> Iterator[EmbeddedStore]:
    store = EmbeddedStore(None)
    yield store
    store.close()


def test_versions_grow_by_one_and_are_checked(store: EmbeddedStore) -> None:
    store.multi([Create("/a", b"x")], 1)
    assert store.get("/a") == TreeNode(b"x", 0, 0, 1)
    store.multi([SetData("/a", b"y", 0), SetData("/a", b"z")], 1)
    assert store.get("/a") == TreeNode(b"z", 2, 0, 1)
    with pytest.raises(BadVersionError):
        store.multi([SetData("/a", b"lost", 1)], 1)
    with pytest.raises(BadVersionError):
        store.multi([Delete("/a", 1)], 1)
    store.multi([Check("/a", 2), Delete("/a", 2)], 1)
    assert store.get("/a") is None


def test_each_creation_has_its_own_number(store: EmbeddedStore) -> None:
    numbers = set()
    for _ in range(3):
        store.multi([Create("/a")], 1)
        node = store.get("/a")
        assert node is not None
        numbers.add(node.created)
        store.multi([Delete("/a")], 1)
    assert len(numbers) == 3


def test_a_file_without_creation_numbers_is_upgraded(tmp_path: Path) -> None:
    old = sqlite3.connect(tmp_path / FILE_NAME)
    old.executescript(
        "CREATE TABLE node (path TEXT PRIMARY KEY, parent TEXT NOT NULL, data BLOB NOT NULL,"
        " version INTEGER NOT NULL, owner INTEGER NOT NULL) WITHOUT ROWID;"
        "INSERT INTO node VALUES ('/', '', x'', 0, 0), ('/a', '/', x'31', 4, 0);"
    )
    old.close()
    store = EmbeddedStore(tmp_path)
    assert store.get("/a") == TreeNode(b"1", 4, 0, 0)
    store.multi([Create("/a/b")], 1)
    assert store.get("/a/b") == TreeNode(b"", 0, 0, 1)
    store.close()


def test_multi_does_all_or_nothing(store: EmbeddedStore) -> None:
    with pytest.raises(NodeExistsError):
        store.multi([Create("/a"), Create("/a/b"), Create("/a")], 1)
    assert store.get("/a") is None
    store.multi([Create("/a")], 1)
    assert store.get("/a") is not None


def test_each_error_is_raised(store: EmbeddedStore) -> None:
    store.multi([Create("/a"), Create("/a/b"), Create("/e", ephemeral=True)], 1)
    with pytest.raises(NoNodeError):
        store.multi([Create("/no/child")], 1)
    with pytest.raises(NotEmptyError):
        store.multi([Delete("/a")], 1)
    with pytest.raises(EphemeralParentError):
        store.multi([Create("/e/child")], 1)
    with pytest.raises(NoNodeError):
        store.multi([Check("/none", 0)], 1)
    with pytest.raises(NoNodeError):
        store.children("/none")


def test_read_tree_returns_only_the_subtree(store: EmbeddedStore) -> None:
    paths = ["/a", "/a/b", "/a/b/c", "/a-side", "/ab", "/a0"]
    store.multi([Create(path) for path in paths], 1)
    assert list(store.read_tree("/a")) == ["/a", "/a/b", "/a/b/c"]
    assert set(store.read_tree("/")) == {"/", *paths}
    assert store.read_tree("/none") == {}
    assert store.children("/") == ("a", "a-side", "a0", "ab")
    assert store.children("/a") == ("b",)


def test_multi_returns_the_events(store: EmbeddedStore) -> None:
    events = store.multi([Create("/a"), SetData("/a", b""), Delete("/a")], 1)
    assert events == [
        Event(Change.CREATED, "/a"),
        Event(Change.CHILDREN, "/"),
        Event(Change.DATA, "/a"),
        Event(Change.DELETED, "/a"),
        Event(Change.CHILDREN, "/"),
    ]


def test_ephemeral_nodes_end_with_their_session_or_process(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    first, second = store.new_session(), store.new_session()
    store.multi([Create("/first", ephemeral=True), Create("/lasting")], first)
    store.multi([Create("/second", ephemeral=True)], second)
    assert store.end_session(first) == [
        Event(Change.DELETED, "/first"),
        Event(Change.CHILDREN, "/"),
    ]
    assert store.children("/") == ("lasting", "second")
    store.close()
    store = EmbeddedStore(tmp_path)
    assert store.children("/") == ("lasting",)
    assert store.new_session() > second
    store.close()


def test_a_file_that_is_not_a_database_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"this is not a database, " * 100)
    with pytest.raises(StoreError, match="file is not a database"):
        EmbeddedStore(tmp_path)
    with pytest.raises(StoreError, match="unable to open database file"):
        EmbeddedStore(tmp_path / "no such folder")


def test_a_failed_commit_leaves_the_store_usable(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    other = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="locked"):
        store.multi([Create("/a")], 1)
    other.execute("ROLLBACK")
    other.close()
    store.multi([Create("/a")], 1)
    assert store.get("/a") is not None
    store.close()


WRITER = """
import sys
from pathlib import Path
from ottla.coordination.tree import Create
from ottla.coordination.embedded_store import EmbeddedStore
store = EmbeddedStore(Path(sys.argv[1]))
session = store.new_session()
for number in range(100_000):
    store.multi([Create(f"/{number}"), Create(f"/{number}/half"), Create(f"/{number}/whole")],
                session)
    print(number, flush=True)
"""


def test_after_sigkill_every_acknowledged_multi_is_complete(tmp_path: Path) -> None:
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        last = -1
        for _ in range(25):
            last = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
        rest = process.stdout.read().splitlines()
        last = int(rest[-1]) if rest else last
        process.stdout.close()
        process.wait()
        store = EmbeddedStore(tmp_path)
        numbers = sorted(map(int, store.children("/")))
        # At most one more was written without an acknowledgement.
        assert numbers[: last + 1] == list(range(last + 1))
        assert len(numbers) <= last + 2
        for number in numbers:
            assert store.children(f"/{number}") == ("half", "whole")
        for number in numbers:
            below = [Delete(f"/{number}/half"), Delete(f"/{number}/whole"), Delete(f"/{number}")]
            store.multi(below, 1)
        store.close()


@dataclass
class Model:
    """A model of the tree: a plain dictionary."""

    nodes: dict[str, TreeNode] = field(default_factory=lambda: {"/": TreeNode(b"", 0, 0)})
    number: int = 0
    """The number of the last transaction that created nodes."""

    def multi(self, operations: list[Operation], session: int) -> None:
        nodes = dict(self.nodes)
        makes = any(isinstance(operation, Create) for operation in operations)
        number = self.number + makes
        for operation in operations:
            self.apply(nodes, operation, session, number)
        self.nodes = nodes
        self.number = number

    @staticmethod
    def apply(nodes: dict[str, TreeNode], operation: Operation, session: int, number: int) -> None:
        path = operation.path
        if isinstance(operation, Create):
            if parent_of(path) not in nodes:
                raise NoNodeError(path)
            if nodes[parent_of(path)].owner:
                raise EphemeralParentError(path)
            if path in nodes:
                raise NodeExistsError(path)
            nodes[path] = TreeNode(operation.data, 0, session if operation.ephemeral else 0, number)
            return
        if path not in nodes:
            raise NoNodeError(path)
        node = nodes[path]
        if operation.version not in (ANY_VERSION, node.version):
            raise BadVersionError(path)
        if isinstance(operation, SetData):
            nodes[path] = TreeNode(operation.data, node.version + 1, node.owner, node.created)
        elif isinstance(operation, Delete):
            if any(each != "/" and parent_of(each) == path for each in nodes):
                raise NotEmptyError(path)
            del nodes[path]


paths = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(
    lambda names: "/" + "/".join(names)
)
versions = st.integers(-1, 3)
operations: st.SearchStrategy[Operation] = st.one_of(
    st.builds(Create, paths, st.binary(max_size=3), st.booleans()),
    st.builds(SetData, paths, st.binary(max_size=3), versions),
    st.builds(Delete, paths, versions),
    st.builds(Check, paths, versions),
)


class StoreMachine(RuleBasedStateMachine):
    """The store and the model must agree on every result and every node."""

    def __init__(self) -> None:
        super().__init__()
        self.store = EmbeddedStore(None)
        self.model = Model()
        self.sessions = [self.store.new_session(), self.store.new_session()]

    @rule(wanted=st.lists(operations, min_size=1, max_size=4), which=st.integers(0, 1))
    def multi(self, wanted: list[Operation], which: int) -> None:
        session = self.sessions[which]
        expected = outcome(lambda: self.model.multi(wanted, session))
        assert outcome(lambda: self.store.multi(wanted, session)) is expected

    @rule(which=st.integers(0, 1))
    def end_session(self, which: int) -> None:
        session = self.sessions[which]
        self.store.end_session(session)
        for path in [path for path, node in self.model.nodes.items() if node.owner == session]:
            del self.model.nodes[path]
        self.sessions[which] = self.store.new_session()

    @invariant()
    def same_nodes(self) -> None:
        assert self.store.read_tree("/") == self.model.nodes

    def teardown(self) -> None:
        self.store.close()


def outcome(work: object) -> type[CoordinationError] | None:
    """The type of the error that `work` raises, or None."""
    assert callable(work)
    try:
        work()
    except CoordinationError as error:
        return type(error)
    return None


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
