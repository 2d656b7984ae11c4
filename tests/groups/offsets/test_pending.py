"""Offsets of open transactions: what a marker commits, and what is asked of them until then."""

from __future__ import annotations

from ottla.groups.offsets.pending import PendingOffsets
from ottla.groups.stored import OffsetCommitKey, OffsetCommitValue

KEY = OffsetCommitKey("g", "t", 0)
OTHER = OffsetCommitKey("g", "t", 1)


def value(offset: int) -> OffsetCommitValue:
    return OffsetCommitValue(offset, -1, "", 1_000)


def test_a_commit_marker_returns_the_newest_record_of_each_key() -> None:
    pending = PendingOffsets()
    pending.add(7, KEY, value(1), 10)
    pending.add(7, OTHER, value(2), 11)
    pending.add(7, KEY, value(3), 12)
    assert pending.of_producer(7) == {KEY: value(3), OTHER: value(2)}
    assert pending.end(7, is_commit=True) == {KEY: value(3), OTHER: value(2)}
    assert not pending
    assert pending.end(7, is_commit=True) == {}


def test_an_abort_marker_returns_nothing() -> None:
    pending = PendingOffsets()
    pending.add(7, KEY, value(1), 10)
    pending.add(8, KEY, value(2), 11)
    assert pending.end(7, is_commit=False) == {}
    assert pending.end(8, is_commit=True) == {KEY: value(2)}


def test_a_plain_commit_after_the_record_wins() -> None:
    pending = PendingOffsets()
    pending.add(7, KEY, value(1), 10)
    pending.add(8, KEY, value(2), 20)
    pending.supersede(KEY, 15)
    assert pending.end(7, is_commit=True) == {}
    assert pending.end(8, is_commit=True) == {KEY: value(2)}


def test_of_two_transactions_the_later_record_wins_in_either_order_of_the_markers() -> None:
    for first, second in ((7, 8), (8, 7)):
        pending = PendingOffsets()
        pending.add(7, KEY, value(1), 10)
        pending.add(8, KEY, value(2), 20)
        committed: dict[OffsetCommitKey, OffsetCommitValue] = {}
        for producer_id in (first, second):
            committed |= pending.end(producer_id, is_commit=True)
        assert committed == {KEY: value(2)}


def test_a_deleted_offset_is_deleted_from_every_transaction() -> None:
    pending = PendingOffsets()
    for producer_id in (7, 8):
        pending.add(producer_id, KEY, value(1), 10)
    pending.add(8, OTHER, value(2), 11)
    pending.remove(KEY)
    pending.remove(KEY)
    assert pending.of_producer(7) == {}
    assert pending.of_producer(8) == {OTHER: value(2)}
    assert (pending.count("g"), pending.has("g", "t", 0), pending.has("g", "t", 1)) == (
        1,
        False,
        True,
    )


def test_what_is_pending_by_group_and_by_topic() -> None:
    pending = PendingOffsets()
    elsewhere = OffsetCommitKey("h", "u", 0)
    pending.add(7, KEY, value(1), 10)
    pending.add(8, KEY, value(2), 11)
    pending.add(8, elsewhere, value(3), 12)
    assert list(pending.of_group("g")) == [KEY]
    assert (pending.count("g"), pending.count("h"), pending.count("nobody")) == (2, 1, 0)
    assert list(pending.of_topic("t")) == [(KEY, value(1)), (KEY, value(2))]
    assert list(pending.all()) == [
        (7, KEY, value(1)),
        (8, KEY, value(2)),
        (8, elsewhere, value(3)),
    ]
    for producer_id in (7, 8):
        pending.end(producer_id, is_commit=False)
    assert not pending.has_group("g")
    assert (list(pending.of_group("g")), pending.count("g")) == ([], 0)
