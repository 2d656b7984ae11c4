"""The coordination port, on the embedded tree and on a real ZooKeeper."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from uuid import uuid4

import pytest

from ottla.coordination.embedded import EmbeddedTree
from ottla.coordination.tree import (
    BadVersionError,
    Change,
    Check,
    Coordination,
    Create,
    Delete,
    EphemeralParentError,
    Event,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    SessionExpiredError,
    SetData,
    check_path,
    parent_of,
    size_bytes,
)
from ottla.coordination.zookeeper import ZooKeeperTree
from ottla.testing.zookeeper_server import ZooKeeperServer

Connect = Callable[[], Awaitable[Coordination]]


@pytest.mark.parametrize(
    ("path", "parent"), [("/a", "/"), ("/a/b", "/a"), ("/a/b/c", "/a/b"), ("/", "/")]
)
def test_parents(path: str, parent: str) -> None:
    assert parent_of(path) == parent


@pytest.mark.parametrize("path", ["", "a", "/a/", "//", "/a//b", "/a\0"])
def test_invalid_paths_are_rejected(path: str) -> None:
    with pytest.raises(AssertionError):
        check_path(path)


def test_the_size_of_an_operation_covers_path_and_data() -> None:
    assert size_bytes(Create("/é", b"123")) >= 6
    assert size_bytes(SetData("/a", b"1" * 1000)) >= 1002
    assert size_bytes(Delete("/a")) == size_bytes(Check("/a", 0)) >= 2


@pytest.fixture(params=["embedded", "zookeeper"])
async def connect(request: pytest.FixtureRequest) -> AsyncIterator[Connect]:
    """Sessions of one tree."""
    if request.param == "embedded":
        tree = EmbeddedTree(None)
        yield tree.connect
        await tree.close()
        return
    server: ZooKeeperServer = request.getfixturevalue("zookeeper")
    ensemble = ZooKeeperTree(
        f"{server.address}/{uuid4()}", session_timeout_ms=10_000, connection_timeout_ms=10_000
    )
    sessions: list[Coordination] = []

    async def connect_one() -> Coordination:
        session = await ensemble.connect()
        sessions.append(session)
        return session

    yield connect_one
    for session in sessions:
        await session.close()


async def wait_for_events(seen: list[Event], expected: list[Event]) -> None:
    """Waits: the watches of an ensemble fire with a delay."""
    async with asyncio.timeout(60):
        while len(seen) < len(expected):
            await asyncio.sleep(0.005)
    assert seen == expected


async def test_a_node_is_created_read_changed_and_deleted(connect: Connect) -> None:
    first, second = await connect(), await connect()
    made = await first.create("/a", b"x")
    assert (made.data, made.version, made.owner) == (b"x", 0, 0)
    assert await second.get("/a") == await second.exists("/a") == made
    assert await second.set("/a", b"y", 0) == 1
    assert await first.get("/a") == made._replace(data=b"y", version=1)
    for call in (first.set("/a", b"z", 0), first.delete("/a", 0)):
        with pytest.raises(BadVersionError, match="/a"):
            await call
    with pytest.raises(NodeExistsError, match="/a"):
        await second.create("/a")
    await first.delete("/a", 1)
    assert await second.exists("/a") is None
    reads = (second.get("/a"), second.children("/a"))
    for gone in (*reads, second.set("/a", b""), second.delete("/a")):
        with pytest.raises(NoNodeError, match="/a"):
            await gone
    again = await first.create("/a", b"x")
    assert again.created != made.created


async def test_a_missing_parent_is_named(connect: Connect) -> None:
    session = await connect()
    with pytest.raises(NoNodeError, match=r"^/a$"):
        await session.create("/a/b")
    with pytest.raises(NoNodeError, match=r"^/a$"):
        await session.multi([Create("/a/b")])


async def test_children_are_listed_and_block_deletion(connect: Connect) -> None:
    session = await connect()
    assert await session.children("/") == ()
    await session.multi([Create("/a"), Create("/a/c"), Create("/a/b"), Create("/a/b/d")])
    assert await session.children("/") == ("a",)
    assert await session.children("/a") == ("b", "c")
    with pytest.raises(NotEmptyError, match="/a"):
        await session.delete("/a")
    await session.create("/e", ephemeral=True)
    with pytest.raises(EphemeralParentError):
        await session.create("/e/f")


async def test_multi_does_all_or_nothing(connect: Connect) -> None:
    session = await connect()
    await session.multi([])
    await session.create("/fence")
    with pytest.raises(NodeExistsError, match=r"^/a$"):
        await session.multi([Create("/a"), SetData("/fence", b"x"), Create("/a"), Create("/b")])
    with pytest.raises(BadVersionError, match=r"^/fence$"):
        await session.multi([Create("/a"), Check("/fence", 1)])
    assert (await session.get("/fence")).version == 0
    await session.multi(
        [Check("/fence", 0), Create("/a", b"1"), SetData("/a", b"2", 0), Create("/b"), Delete("/b")]
    )
    assert set(await session.read_tree("/")) == {"/", "/a", "/fence"}
    node = await session.get("/a")
    assert (node.data, node.version) == (b"2", 1)


async def test_read_tree_returns_the_whole_tree(connect: Connect) -> None:
    session = await connect()
    assert await session.read_tree("/none") == {}
    paths = ["/t", "/t/p", "/ta", *(f"/t/p/{number}" for number in range(700))]
    await session.multi([Create(path, path.encode()) for path in paths])
    await session.create("/t/e", b"live", ephemeral=True)
    tree = await session.read_tree("/t")
    assert set(tree) == {*paths, "/t/e"} - {"/ta"}
    below = [path for path in tree if path.startswith("/t/p/")]
    assert below == sorted(below)
    assert all(node.data == path.encode() for path, node in tree.items() if path != "/t/e")
    assert tree["/t/e"].owner == session.number
    assert tree["/t/p/9"] == await session.get("/t/p/9")
    assert set(await session.read_tree("/")) == {"/", *paths, "/t/e"}


async def test_calls_take_effect_in_the_order_in_which_they_were_made(connect: Connect) -> None:
    session = await connect()
    await session.create("/n", b"0")
    versions = await asyncio.gather(
        *(session.set("/n", str(number).encode()) for number in range(1, 501))
    )
    assert versions == list(range(1, 501))
    assert (await session.get("/n")).data == b"500"


async def test_watches_fire_once(connect: Connect) -> None:
    reader, writer = await connect(), await connect()
    seen: list[Event] = []
    assert await reader.exists("/a", seen.append) is None
    await writer.create("/a", b"1")
    expected = [Event(Change.CREATED, "/a")]
    await wait_for_events(seen, expected)
    await writer.set("/a", b"2")

    assert await reader.exists("/a", seen.append) is not None
    await writer.set("/a", b"3")
    await writer.set("/a", b"4")
    expected.append(Event(Change.DATA, "/a"))
    await wait_for_events(seen, expected)

    assert await reader.children("/a", seen.append) == ()
    await writer.set("/a", b"5")
    await writer.create("/a/b")
    await writer.create("/a/c")
    expected.append(Event(Change.CHILDREN, "/a"))
    await wait_for_events(seen, expected)

    await reader.get("/a/b", seen.append)
    await reader.children("/a/b", seen.append)
    await writer.delete("/a/b")
    expected += [Event(Change.DELETED, "/a/b")] * 2
    await wait_for_events(seen, expected)
    # Earlier events would have arrived by now: they arrive before later responses.
    await reader.get("/a")
    assert seen == expected


async def test_a_watch_on_a_missing_node_is_dropped(connect: Connect) -> None:
    session = await connect()
    seen: list[Event] = []
    for call in (session.get("/a", seen.append), session.children("/a", seen.append)):
        with pytest.raises(NoNodeError):
            await call
    await session.create("/a")
    await session.get("/a")
    assert seen == []


async def test_a_failed_multi_fires_nothing(connect: Connect) -> None:
    session = await connect()
    seen: list[Event] = []
    await session.exists("/a", seen.append)
    with pytest.raises(NodeExistsError):
        await session.multi([Create("/a"), Create("/a")])
    await session.children("/")
    assert seen == []


async def test_a_closed_session_deletes_its_ephemeral_nodes(connect: Connect) -> None:
    mortal, observer = await connect(), await connect()
    assert mortal.number != observer.number
    made = await mortal.create("/controller", b"1", ephemeral=True)
    assert made.owner == mortal.number
    own: list[Event] = []
    others: list[Event] = []
    await mortal.get("/controller", own.append)
    await observer.exists("/controller", others.append)
    await mortal.close()
    await wait_for_events(own, [Event(Change.EXPIRED, "")])
    await wait_for_events(others, [Event(Change.DELETED, "/controller")])
    for call in (mortal.get("/"), mortal.create("/b"), mortal.read_tree("/"), mortal.multi([])):
        with pytest.raises(SessionExpiredError):
            await call
    assert await observer.children("/") == ()
    await mortal.close()
