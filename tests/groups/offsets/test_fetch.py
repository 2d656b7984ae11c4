"""OffsetFetch: what was committed, what is unstable, and what is none of this topic's."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.groups.offsets.fetch import FetchedOffset, fetch, fetch_all
from ottla.groups.offsets.pending import PendingOffsets
from ottla.groups.offsets.store import OffsetStore
from ottla.groups.stored import OffsetCommitKey, OffsetCommitValue
from ottla.protocol.errors import ErrorCode

OLD, NEW = UUID(int=1), UUID(int=2)
FOUND = FetchedOffset(0, 7, 2, "note")
UNSTABLE = ErrorCode.unstable_offset_commit


def store(topic_id: UUID | None = None) -> OffsetStore:
    offsets = OffsetStore()
    value = OffsetCommitValue(7, 2, "note", 0, topic_id=topic_id)
    offsets.apply(OffsetCommitKey("g", "t", 0), value)
    return offsets


def pending_in(*partitions: int, group: str = "g") -> PendingOffsets:
    pending = PendingOffsets()
    for partition in partitions:
        key = OffsetCommitKey(group, "t", partition)
        pending.add(9, key, OffsetCommitValue(8, -1, "", 0), 1)
    return pending


def test_what_was_never_committed_is_no_error() -> None:
    nothing = (FetchedOffset(0, -1, -1, ""), FetchedOffset(1, -1, -1, ""))
    assert fetch(OffsetStore(), None, "g", "t", None, (0, 1)) == nothing
    assert fetch(store(), None, "g", "t", None, (0, 1)) == (FOUND, nothing[1])
    assert fetch(store(), None, "g", "u", None, (0,)) == nothing[:1]
    assert fetch_all(store(), None, "h") == {}


@pytest.mark.parametrize(
    ("stored", "wanted", "is_found"),
    [(None, None, True), (OLD, None, True), (None, NEW, True), (OLD, OLD, True), (OLD, NEW, False)],
)
def test_a_recreated_topic_has_no_offsets(
    stored: UUID | None, wanted: UUID | None, is_found: bool
) -> None:
    (found,) = fetch(store(stored), None, "g", "t", wanted, (0,))
    assert found == (FOUND if is_found else FetchedOffset(0))


def test_only_clients_that_ask_for_stable_offsets_are_refused_unstable_ones() -> None:
    asked = ("g", "t", None, (0, 1, 2))
    found = fetch(store(), pending_in(0, 1), *asked)
    assert [each.error for each in found] == [UNSTABLE, UNSTABLE, ErrorCode.none]
    assert found[0].offset == -1
    assert fetch(store(), None, *asked)[0] == FOUND
    assert fetch(store(), pending_in(0, group="h"), *asked)[0] == FOUND


def test_all_offsets_leave_out_partitions_that_have_only_a_pending_one() -> None:
    assert fetch_all(store(), pending_in(1), "g") == {"t": (FOUND,)}
    assert fetch_all(store(), pending_in(0), "g") == {"t": (FetchedOffset(0, error=UNSTABLE),)}
