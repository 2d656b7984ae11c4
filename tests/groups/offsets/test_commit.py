"""OffsetCommit: whose offsets are stored, until when, and which are refused."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from tests.groups.classic.members import GENERATION, NOW_MS, group_in, new_step

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.state import COMPLETING_REBALANCE, EMPTY, STABLE
from ottla.groups.offsets.commit import (
    Cause,
    CommitRequest,
    OffsetsCommitted,
    OffsetToCommit,
    commit,
)
from ottla.groups.offsets.pending import PendingOffsets
from ottla.groups.offsets.store import OffsetStore
from ottla.groups.records import decode, encode
from ottla.groups.step import Step
from ottla.groups.stored import CoordinatorRecord, OffsetCommitKey, OffsetCommitValue
from ottla.protocol.errors import ApiError, ErrorCode

NONE, TOO_LARGE = ErrorCode.none, ErrorCode.offset_metadata_too_large
MEMBER = ("a", None)


def offset(partition: int = 0, metadata: str | None = None) -> OffsetToCommit:
    return OffsetToCommit("t", None, partition, 7, 2, metadata)


def request(*offsets: OffsetToCommit, **changes: Any) -> CommitRequest:
    made = CommitRequest("g", GENERATION, "a", None, -1, offsets or (offset(),), 9)
    return made._replace(**changes)


def committed(group: ClassicGroup | None, asked: CommitRequest, step: Step) -> list[ErrorCode]:
    return commit(group, asked, OffsetStore(), PendingOffsets(), step)


def test_an_offset_becomes_a_record_and_extends_the_session() -> None:
    step = new_step()
    assert committed(group_in(STABLE, MEMBER), request(offset(3, "note")), step) == [NONE]
    value = OffsetCommitValue(7, 2, "note", NOW_MS)
    assert step.records == [CoordinatorRecord(OffsetCommitKey("g", "t", 3), value)]
    assert step.committed == [OffsetsCommitted(step.records, NOW_MS, [None], Cause.MEMBER)]
    assert len(step.timers) == 1


def test_a_commit_says_who_made_it_and_what_it_replaces() -> None:
    before = OffsetCommitValue(3, 2, "", NOW_MS - 1)
    offsets = OffsetStore()
    offsets.apply(OffsetCommitKey("g", "t", 0), before)
    empty = group_in(EMPTY)
    empty.protocol_type = "consumer"
    for group, generation, cause in (
        (group_in(STABLE, MEMBER), GENERATION, Cause.MEMBER),
        (None, -1, Cause.SIMPLE),
        (ClassicGroup("g", 0), -1, Cause.SIMPLE),
        (empty, -1, Cause.OUTSIDE),
    ):
        step, asked = new_step(), request(generation=generation)
        if generation < 0:
            asked = asked._replace(member_id="")
        commit(group, asked, offsets, PendingOffsets(), step)
        (told,) = step.committed
        assert (told.before, told.cause) == ([before], cause)


@pytest.mark.parametrize(
    ("retention_ms", "expires_ms"),
    [(-1, -1), (0, NOW_MS), (60, NOW_MS + 60), (2**63 - 1, 2**63 - 1)],
)
def test_clients_before_kip_211_choose_a_retention(retention_ms: int, expires_ms: int) -> None:
    step = new_step()
    committed(None, request(generation=-1, retention_ms=retention_ms), step)
    (record,) = step.records
    assert isinstance(record.value, OffsetCommitValue)
    assert record.value.expire_timestamp_ms == expires_ms


@pytest.mark.parametrize("retention_ms", [-1, 60])
def test_memory_has_what_the_record_holds(retention_ms: int) -> None:
    """One with an expiry has no room for the topic id."""
    step = new_step()
    known = offset(0)._replace(topic_id=UUID(int=1), leader_epoch=-1)
    committed(None, request(known, generation=-1, retention_ms=retention_ms), step)
    (record,) = step.records
    key, value = encode(record)
    assert decode(key, value) == record


def test_too_long_metadata_is_refused_for_its_partition_only() -> None:
    """In Java's characters: the letter outside the first plane counts as two."""
    step = new_step(offset_metadata_max_bytes=4)
    offsets = [offset(0, "x" * 5), offset(1, "x" * 4), offset(2, "𝄞𝄞"), offset(3, "𝄞𝄞𝄞")]
    errors = committed(None, request(*offsets, generation=-1), step)
    assert errors == [TOO_LARGE, NONE, NONE, TOO_LARGE]
    assert [record.key[2] for record in step.records] == [1, 2]  # type: ignore[misc]


def test_nothing_is_announced_if_nothing_is_stored() -> None:
    step = new_step(offset_metadata_max_bytes=0)
    assert committed(None, request(offset(0, "x"), generation=-1), step) == [TOO_LARGE]
    assert (step.records, step.committed) == ([], [])


@pytest.mark.parametrize(
    ("group", "changes", "error"),
    [
        (None, {}, "group_id_not_found"),
        (None, {"version": 8}, "illegal_generation"),
        (group_in(STABLE, MEMBER), {"generation": GENERATION - 1}, "illegal_generation"),
        (group_in(STABLE, MEMBER), {"member_id": "x"}, "unknown_member_id"),
        (group_in(COMPLETING_REBALANCE, MEMBER), {}, "rebalance_in_progress"),
        (group_in(EMPTY), {}, "unknown_member_id"),
    ],
)
def test_who_may_not_commit(
    group: ClassicGroup | None, changes: dict[str, Any], error: str
) -> None:
    step = new_step()
    with pytest.raises(ApiError) as refused:
        committed(group, request(**changes), step)
    assert refused.value.code is ErrorCode[error]
    assert step.records == []


def test_a_groups_partitions_are_limited_pending_ones_included() -> None:
    store, pending = OffsetStore(), PendingOffsets()
    value = OffsetCommitValue(1, -1, "", 0)
    store.apply(OffsetCommitKey("g", "t", 0), value)
    pending.add(9, OffsetCommitKey("g", "t", 1), value, 0)
    asked = request(offset(2), generation=-1)
    assert commit(None, asked, store, pending, new_step(max_group_offsets=3)) == [NONE]
    with pytest.raises(ApiError) as refused:
        commit(None, asked, store, pending, new_step(max_group_offsets=2))
    assert refused.value.code is ErrorCode.invalid_commit_offset_size


def test_the_offsets_of_one_commit_are_limited() -> None:
    """They are one batch of the log, and one step."""
    step = new_step(max_commit_offsets=2)
    with pytest.raises(ApiError) as refused:
        committed(None, request(offset(0), offset(1), offset(2), generation=-1), step)
    assert refused.value.code is ErrorCode.unknown_server_error
    assert committed(None, request(offset(0), offset(1), generation=-1), step) == [NONE, NONE]


def test_much_is_announced_in_parts() -> None:
    step = new_step()
    many = tuple(offset(index) for index in range(2_001))
    committed(None, request(*many, generation=-1), step)
    assert [len(told.records) for told in step.committed] == [1_000, 1_000, 1]
    assert [record for told in step.committed for record in told.records] == step.records
