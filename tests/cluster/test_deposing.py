"""Deleting another session's node: that one, and no later one of the same path."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ottla.cluster.broker_node import BrokerNode, Folder
from ottla.cluster.deposing import (
    Deposed,
    answer,
    depose_broker,
    depose_controller,
    is_challenged,
)
from ottla.config.listener import Endpoint
from ottla.controller import layout
from ottla.controller.image import BrokerImage
from ottla.coordination.embedded import EmbeddedCoordination, EmbeddedTree
from ottla.coordination.tree import Create, Delete, Event, SetData, TreeNode

PATH = layout.broker_path(1)
ME = layout.write_broker(BrokerImage(1, (Endpoint("PLAINTEXT", "here", 9092),)), 0)


@pytest.fixture
async def tree() -> Any:
    made = EmbeddedTree(None)
    session = await made.connect()
    for path in layout.LASTING_NODES:
        await session.create(path)
    await session.create(layout.CONTROLLER_EPOCH, b"1")
    yield made
    await made.close()


async def yes() -> bool:
    return True


async def no() -> bool:
    return False


async def test_a_silent_broker_is_deposed_once(tree: EmbeddedTree) -> None:
    one, other = [await tree.connect() for _ in range(2)]
    made = await BrokerNode(1, Folder("disk", None)).put(one, ME)
    assert await depose_broker(other, 1, made.created + 1, yes) is Deposed.GONE
    assert await depose_broker(other, 1, made.created, yes) is Deposed.DELETED
    assert await depose_broker(other, 1, made.created, yes) is Deposed.GONE
    assert await other.exists(PATH) is None


async def test_a_broker_that_answers_stays(tree: EmbeddedTree) -> None:
    one, other = [await tree.connect() for _ in range(2)]
    made = await BrokerNode(1, Folder("disk", None)).put(one, ME)
    answers: list[asyncio.Task[None]] = []

    async def watched() -> None:
        there = await one.exists(PATH, watch=changed)
        assert there is not None
        if is_challenged(there):
            await answer(one, PATH)

    def changed(event: Event) -> None:
        answers.append(asyncio.ensure_future(watched()))

    await watched()
    for times in (1, 2):
        assert await depose_broker(other, 1, made.created, yes) is Deposed.ALIVE
        there = await other.get(PATH)
        assert there == TreeNode(ME, 2 * times, one.number, made.created)
        await asyncio.gather(*answers)


async def test_only_the_owner_answers(tree: EmbeddedTree) -> None:
    one, other = [await tree.connect() for _ in range(2)]
    await BrokerNode(1, Folder("disk", None)).put(one, ME)
    await other.set(PATH, ME)
    await answer(other, PATH)
    assert (await other.get(PATH)).version == 1
    await answer(one, PATH)
    await answer(one, PATH)
    await answer(one, "/none")
    assert (await other.get(PATH)).version == 2


async def test_a_challenge_whose_author_died_is_continued(tree: EmbeddedTree) -> None:
    one, other = [await tree.connect() for _ in range(2)]
    made = await BrokerNode(1, Folder("disk", None)).put(one, ME)
    await other.set(PATH, ME)
    assert await depose_broker(other, 1, made.created, no) is Deposed.ALIVE
    assert await depose_broker(other, 1, made.created, yes) is Deposed.DELETED


async def test_two_may_challenge_at_once(tree: EmbeddedTree) -> None:
    sessions = [await tree.connect() for _ in range(3)]
    made = await sessions[0].create(layout.CONTROLLER, b"one", ephemeral=True)
    outcomes = await asyncio.gather(
        *(depose_controller(each, 1, made.created, yes) for each in sessions[1:])
    )
    assert sorted(each.value for each in outcomes) == ["deleted", "gone"]


async def test_a_broker_that_registers_again_meanwhile_stays(
    tree: EmbeddedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its new node has the version of the old one."""
    one, other = [await tree.connect() for _ in range(2)]
    node = BrokerNode(1, Folder("disk", None))
    made = await node.put(one, ME)
    real = EmbeddedCoordination.multi

    async def late(self: Any, operations: Any) -> None:
        monkeypatch.setattr(EmbeddedCoordination, "multi", real)
        await one.delete(PATH)
        again = await node.put(one, ME)
        assert (again.version, again.created) == (made.version, made.created + 1)
        await real(self, operations)

    monkeypatch.setattr(EmbeddedCoordination, "multi", late)
    assert await depose_broker(other, 1, made.created, yes) is Deposed.GONE
    assert await other.exists(PATH) is not None


async def test_a_controller_that_is_elected_meanwhile_stays(
    tree: EmbeddedTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = [await tree.connect() for _ in range(2)]
    made = await one.create(layout.CONTROLLER, b"one", ephemeral=True)
    real = EmbeddedCoordination.multi

    async def late(self: Any, operations: Any) -> None:
        monkeypatch.setattr(EmbeddedCoordination, "multi", real)
        await one.multi(
            [
                Delete(layout.CONTROLLER),
                Create(layout.CONTROLLER, b"two", ephemeral=True),
                SetData(layout.CONTROLLER_EPOCH, b"2"),
            ]
        )
        await real(self, operations)

    monkeypatch.setattr(EmbeddedCoordination, "multi", late)
    assert await depose_controller(other, 1, made.created, yes) is Deposed.GONE
    there = await other.get(layout.CONTROLLER)
    assert there.data == b"two"
    assert await depose_controller(other, 1, there.created, yes) is Deposed.DELETED


async def test_a_controllers_registration_goes_with_its_session(tree: EmbeddedTree) -> None:
    one, two, other = [await tree.connect() for _ in range(3)]
    made = await one.create(layout.CONTROLLER, b"one", ephemeral=True)
    await BrokerNode(1, Folder("disk", None)).put(two, ME)
    assert await depose_controller(other, 1, made.created, yes) is Deposed.DELETED
    assert await other.exists(PATH) is not None, "another session's"
    made = await two.create(layout.CONTROLLER, b"two", ephemeral=True)
    assert await depose_controller(other, 1, made.created, yes) is Deposed.DELETED
    assert await other.exists(PATH) is None


async def test_an_answer_at_one_node_is_enough(tree: EmbeddedTree) -> None:
    one, other = [await tree.connect() for _ in range(2)]
    made = await one.create(layout.CONTROLLER, b"one", ephemeral=True)
    await BrokerNode(1, Folder("disk", None)).put(one, ME)

    async def then_answers() -> bool:
        await answer(one, PATH)
        return True

    assert await depose_controller(other, 1, made.created, then_answers) is Deposed.ALIVE
    assert await other.exists(PATH) is not None
    assert await other.exists(layout.CONTROLLER) is not None
