"""Committed offsets by group, topic and partition."""

from __future__ import annotations

from ottla.groups.offsets.store import OffsetStore
from ottla.groups.stored import OffsetCommitKey, OffsetCommitValue


def value(offset: int) -> OffsetCommitValue:
    return OffsetCommitValue(offset, -1, "", 1_000)


def test_the_newest_record_of_a_key_counts() -> None:
    store = OffsetStore()
    store.apply(OffsetCommitKey("g", "t", 0), value(1))
    store.apply(OffsetCommitKey("g", "t", 0), value(2))
    store.apply(OffsetCommitKey("g", "u", 3), value(7))
    store.apply(OffsetCommitKey("h", "t", 0), value(9))
    assert store.get("g", "t", 0) == value(2)
    assert store.of_group("g") == {"t": {0: value(2)}, "u": {3: value(7)}}
    assert (store.count("g"), store.count("h")) == (2, 1)
    assert dict(store.of_topic("t")) == {
        OffsetCommitKey("g", "t", 0): value(2),
        OffsetCommitKey("h", "t", 0): value(9),
    }
    assert len(list(store.all())) == 3


def test_a_tombstone_removes_an_offset_and_the_last_one_its_group() -> None:
    store = OffsetStore()
    first, second = OffsetCommitKey("g", "t", 0), OffsetCommitKey("g", "u", 0)
    for key in (first, second):
        store.apply(key, value(1))
    store.apply(first, None)
    assert (store.get("g", "t", 0), store.count("g")) == (None, 1)
    assert store.of_group("g") == {"u": {0: value(1)}}
    for key in (second, second, OffsetCommitKey("nobody", "t", 0)):
        store.apply(key, None)
    assert (store.of_group("g"), store.count("g"), list(store.all())) == ({}, 0, [])
