"""Deleting another session's node: that one, and no later one of the same path."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.cluster.broker_node import BrokerNode, Folder
from ottla.cluster.deposing import delete_broker, delete_controller
from ottla.config.listener import Endpoint
from ottla.controller import layout
from ottla.controller.image import BrokerImage
from ottla.coordination.embedded import EmbeddedCoordination, EmbeddedTree
from ottla.coordination.tree import Create, Delete, SetData

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


async def test_a_registration_is_deleted_once(tree: EmbeddedTree) -> None:
    one, other = [await tree.connect() for _ in range(2)]
    made = await BrokerNode(1, Folder("disk", None)).put(one, ME)
    assert not await delete_broker(other, 1, made.created + 1)
    assert await delete_broker(other, 1, made.created)
    assert not await delete_broker(other, 1, made.created)
    assert await other.exists(PATH) is None


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
    assert not await delete_broker(other, 1, made.created)
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
    assert not await delete_controller(other, made.created)
    there = await other.get(layout.CONTROLLER)
    assert there.data == b"two"
    assert await delete_controller(other, there.created)
