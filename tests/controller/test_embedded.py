import asyncio
from pathlib import Path

import pytest

from ottla.controller.coordination import (
    BadVersionError,
    Change,
    Create,
    Event,
    NodeExistsError,
    NoNodeError,
    SessionExpiredError,
)
from ottla.controller.embedded import EmbeddedTree
from ottla.controller.embedded_store import StoreError


async def test_two_sessions_see_one_tree() -> None:
    tree = EmbeddedTree(None)
    first, second = await tree.connect(), await tree.connect()
    await first.create("/a", b"x")
    assert (await second.get("/a")).data == b"x"
    assert await second.set("/a", b"y", 0) == 1
    with pytest.raises(BadVersionError):
        await first.set("/a", b"z", 0)
    with pytest.raises(NodeExistsError):
        await second.create("/a")
    await first.delete("/a", 1)
    assert await second.exists("/a") is None
    with pytest.raises(NoNodeError):
        await second.get("/a")
    await tree.close()


async def test_watches_fire_once_after_the_change() -> None:
    tree = EmbeddedTree(None)
    reader, writer = await tree.connect(), await tree.connect()
    seen: list[Event] = []
    assert await reader.exists("/a", seen.append) is None
    await writer.create("/a", b"1")
    assert seen == [Event(Change.CREATED, "/a")]
    await writer.set("/a", b"2")
    assert len(seen) == 1

    assert (await reader.get("/a", seen.append)).data == b"2"
    await writer.set("/a", b"3")
    await writer.set("/a", b"4")
    assert seen[1:] == [Event(Change.DATA, "/a")]

    assert await reader.children("/a", seen.append) == ()
    await writer.set("/a", b"5")
    await writer.create("/a/b")
    await writer.create("/a/c")
    assert seen[2:] == [Event(Change.CHILDREN, "/a")]

    await reader.get("/a/b", seen.append)
    await reader.children("/a/b", seen.append)
    await writer.delete("/a/b")
    assert seen[3:] == [Event(Change.DELETED, "/a/b")] * 2
    await tree.close()


async def test_a_watch_on_what_is_not_there_is_not_kept() -> None:
    tree = EmbeddedTree(None)
    session = await tree.connect()
    seen: list[Event] = []
    with pytest.raises(NoNodeError):
        await session.get("/a", seen.append)
    with pytest.raises(NoNodeError):
        await session.children("/a", seen.append)
    await session.create("/a")
    assert seen == []
    await tree.close()


async def test_a_failed_multi_fires_nothing() -> None:
    tree = EmbeddedTree(None)
    session = await tree.connect()
    seen: list[Event] = []
    await session.exists("/a", seen.append)
    with pytest.raises(NodeExistsError):
        await session.multi([Create("/a"), Create("/a")])
    assert seen == []
    await tree.close()


async def test_expiry_takes_the_ephemeral_nodes_and_tells_everyone() -> None:
    tree = EmbeddedTree(None)
    mortal, observer = await tree.connect(), await tree.connect()
    await mortal.create("/controller", b"1", ephemeral=True)
    own: list[Event] = []
    others: list[Event] = []
    await mortal.get("/controller", own.append)
    await observer.exists("/controller", others.append)
    await tree.expire(mortal)
    assert own == [Event(Change.EXPIRED, "")]
    assert others == [Event(Change.DELETED, "/controller")]
    for call in (mortal.get("/"), mortal.create("/b"), mortal.read_tree("/"), mortal.set("/", b"")):
        with pytest.raises(SessionExpiredError):
            await call
    assert await observer.children("/") == ()
    await tree.expire(mortal)
    await tree.close()


async def test_calls_take_effect_in_the_order_in_which_they_were_made() -> None:
    tree = EmbeddedTree(None)
    session = await tree.connect()
    await session.create("/n", b"0")
    await asyncio.gather(*(session.set("/n", str(number).encode()) for number in range(1, 51)))
    node = await session.get("/n")
    assert node.data == b"50"
    assert node.version == 50
    await tree.close()


async def test_the_file_outlives_the_tree(tmp_path: Path) -> None:
    tree = EmbeddedTree(tmp_path)
    session = await tree.connect()
    await session.multi([Create("/a", b"kept"), Create("/e", b"", True)])
    await session.close()
    await tree.close()
    tree = EmbeddedTree(tmp_path)
    session = await tree.connect()
    assert set(await session.read_tree("/")) == {"/", "/a"}
    await tree.close()


async def test_a_folder_that_cannot_be_used_is_an_error_of_the_first_call(tmp_path: Path) -> None:
    tree = EmbeddedTree(tmp_path / "none")
    with pytest.raises(StoreError, match="unable to open"):
        await tree.connect()
    await tree.close()
