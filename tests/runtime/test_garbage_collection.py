"""Tests for `ottla.runtime.garbage_collection`."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Iterator

import pytest

from ottla.runtime import garbage_collection
from ottla.runtime.garbage_collection import NEVER, FullCollections, OldObjects, no_collection


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    yield
    gc.enable()


def test_the_collector_runs_again_after_the_block() -> None:
    with no_collection():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_the_block_leaves_behind_is_old() -> None:
    with no_collection():
        left: list[object] = []
    assert any(each is left for each in gc.get_objects(generation=2))


def test_the_collector_runs_again_after_an_error() -> None:
    with pytest.raises(ValueError, match="inside"), no_collection():
        raise ValueError("inside")
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    with no_collection():
        pass
    assert not gc.isenabled()


async def test_full_collections_are_postponed_until_the_last_request_ends() -> None:
    before = gc.get_threshold()
    collections = FullCollections()
    for _ in range(2):
        collections.postpone()
        assert gc.get_threshold() == (*before[:2], NEVER)
    collections.resume()
    assert gc.get_threshold() == (*before[:2], NEVER)
    collections.resume()
    assert gc.get_threshold() == before
    collections.postpone()
    assert gc.get_threshold() != before
    collections.resume()
    assert gc.get_threshold() == before


async def test_full_collections_are_not_postponed_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(garbage_collection, "MAX_POSTPONED_S", 0)
    before = gc.get_threshold()
    collections = FullCollections()
    gc.disable()  # no other collection comes between
    collections.postpone()
    await asyncio.sleep(0.001)
    assert gc.get_threshold() == before
    collections.resume()
    collections.postpone()
    assert gc.get_threshold() == before, "one must run first"
    collections.resume()
    gc.collect()
    collections.postpone()
    assert gc.get_threshold() == (*before[:2], NEVER)
    collections.resume()
    assert gc.get_threshold() == before


class Node:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
async def old_objects() -> AsyncIterator[OldObjects]:
    old = OldObjects()
    old.begin()
    yield old
    old.end()
    assert gc.get_freeze_count() == 0


async def test_a_full_collection_looks_only_at_what_is_new(old_objects: OldObjects) -> None:
    dropped, kept = Node(), Node()
    seen = weakref.ref(dropped), weakref.ref(kept)
    del dropped
    gc.collect()
    assert seen[0]() is None
    assert not any(each is kept for each in gc.get_objects())
    del kept
    gc.collect()
    assert seen[1]() is not None


async def test_a_complete_collection_comes_when_many_objects_are_kept(
    old_objects: OldObjects,
) -> None:
    assert not old_objects.complete_if_grown()
    node = Node()
    seen = weakref.ref(node)
    many: list[list[int]] = [[] for _ in range(gc.get_freeze_count() // 3)]
    gc.collect()
    del node
    assert old_objects.complete_if_grown()
    assert seen() is None
    assert not old_objects.complete_if_grown()
    del many


async def test_the_timer_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asyncio.Event()
    monkeypatch.setattr(garbage_collection, "COMPLETE_EVERY_S", 0.001)
    monkeypatch.setattr(OldObjects, "complete_if_grown", lambda _: asked.set())
    old = OldObjects()
    old.begin()
    await asyncio.wait_for(asked.wait(), 10)
    asked.clear()
    await asyncio.wait_for(asked.wait(), 10)
    old.end()
