"""The tree in memory has those guarantees of ZooKeeper that the simulation relies on."""

from __future__ import annotations

import pytest
from simulation.tree import Tree

from ottla.coordination.tree import (
    BadVersionError,
    Check,
    Create,
    Event,
    NodeExistsError,
    SessionExpiredError,
    SetData,
)


def test_a_multi_applies_all_operations_or_none() -> None:
    tree = Tree(lambda path, before, after: None)
    session = tree.connect()
    tree.multi(session, [Create("/a", b"1")])
    with pytest.raises(BadVersionError):
        tree.multi(session, [SetData("/a", b"2"), Create("/a/b"), Check("/a", 7)])
    assert tree.get(session, "/a").data == b"1"
    assert tree.children(session, "/a") == ()
    with pytest.raises(NodeExistsError):
        tree.multi(session, [Create("/a")])


def test_the_end_of_a_session_deletes_its_nodes_and_fires_watches() -> None:
    tree = Tree(lambda path, before, after: None)
    mine, other = tree.connect(), tree.connect()
    tree.multi(mine, [Create("/one", ephemeral=True)])
    told: list[Event] = []
    assert tree.exists(other, "/one", told.append) is not None
    tree.expire(mine)
    assert tree.exists(other, "/one") is None
    assert [event.path for event in told] == ["/one"]
    with pytest.raises(SessionExpiredError):
        tree.exists(mine, "/one")


def test_each_creation_has_its_own_number() -> None:
    tree = Tree(lambda path, before, after: None)
    first = tree.connect()
    tree.multi(first, [Create("/one", ephemeral=True)])
    before = tree.get(first, "/one").created
    tree.expire(first)
    second = tree.connect()
    tree.multi(second, [Create("/one", ephemeral=True)])
    assert tree.get(second, "/one").created > before
