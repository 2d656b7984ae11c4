"""TxnOffsetCommit: which group may commit in a transaction (KIP-447)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.groups.classic.members import GENERATION, group_in, new_step

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.state import COMPLETING_REBALANCE, DEAD, EMPTY, STABLE
from ottla.groups.offsets.commit import OffsetToCommit
from ottla.groups.offsets.pending import PendingOffsets
from ottla.groups.offsets.store import OffsetStore
from ottla.groups.offsets.transactional_commit import (
    TransactionalCommitRequest,
    commit_in_transaction,
)
from ottla.groups.stored import OffsetCommitKey, OffsetCommitValue
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.shards.step import ProducerEpoch

PRODUCER = ProducerEpoch(9, 1)
MEMBER = ("a", None)
NOBODY = {"member_id": "", "generation": -1}


def request(**changes: Any) -> TransactionalCommitRequest:
    offsets = (OffsetToCommit("t", None, 0, 7, 2, "note"),)
    made = TransactionalCommitRequest("g", "id", PRODUCER, GENERATION, "a", None, offsets, 3)
    return made._replace(**changes)


@pytest.mark.parametrize(
    ("group", "changes"),
    [
        (group_in(STABLE, MEMBER), {}),
        (group_in(COMPLETING_REBALANCE, MEMBER), {}),
        (group_in(STABLE, MEMBER), NOBODY),
        (group_in(EMPTY), NOBODY),
        (None, NOBODY),
    ],
)
def test_the_records_belong_to_the_producers_transaction(
    group: ClassicGroup | None, changes: dict[str, Any]
) -> None:
    step = new_step()
    errors = commit_in_transaction(group, request(**changes), OffsetStore(), PendingOffsets(), step)
    assert errors == [ErrorCode.none]
    assert step.producer == PRODUCER
    (record,) = step.records
    assert record.key == OffsetCommitKey("g", "t", 0)
    assert isinstance(record.value, OffsetCommitValue)
    assert (record.value.offset, record.value.expire_timestamp_ms) == (7, -1)
    assert (step.timers, step.committed) == ([], []), "no session is extended, nothing is committed"


@pytest.mark.parametrize(
    ("group", "changes", "error"),
    [
        (None, {}, "illegal_generation"),
        (None, {"version": 6}, "group_id_not_found"),
        (group_in(STABLE, MEMBER), {"generation": GENERATION - 1}, "illegal_generation"),
        (group_in(STABLE, MEMBER), {"member_id": "x"}, "unknown_member_id"),
        (group_in(STABLE, MEMBER, ("s", "i")), {"group_instance_id": "i"}, "fenced_instance_id"),
        (group_in(DEAD, MEMBER), NOBODY, "coordinator_not_available"),
    ],
)
def test_who_may_not_commit(
    group: ClassicGroup | None, changes: dict[str, Any], error: str
) -> None:
    step = new_step()
    with pytest.raises(ApiError) as refused:
        commit_in_transaction(group, request(**changes), OffsetStore(), PendingOffsets(), step)
    assert refused.value.code is ErrorCode[error]
    assert (step.records, step.producer) == ([], None)


def test_a_groups_partitions_are_limited_pending_ones_included() -> None:
    pending = PendingOffsets()
    pending.add(9, OffsetCommitKey("g", "t", 1), OffsetCommitValue(1, -1, "", 0), 0)
    with pytest.raises(ApiError) as refused:
        commit_in_transaction(
            None, request(**NOBODY), OffsetStore(), pending, new_step(max_group_offsets=1)
        )
    assert refused.value.code is ErrorCode.invalid_commit_offset_size


@pytest.mark.parametrize(("version", "adds"), [(4, False), (5, True)])
def test_the_version_that_adds_the_partition_by_itself(version: int, adds: bool) -> None:
    assert request(version=version).adds_partition is adds


def test_the_partitions_of_one_transaction_are_limited() -> None:
    """Its marker commits all of them at once. A partition that it has already is none more."""
    pending = PendingOffsets()
    for partition in (0, 1):
        value = OffsetCommitValue(5, -1, "", 0)
        pending.add(PRODUCER.producer_id, OffsetCommitKey("g", "t", partition), value, partition)
    step = new_step(max_transaction_offsets=2)
    again = request(member_id="", generation=-1)
    assert commit_in_transaction(None, again, OffsetStore(), pending, step) == [ErrorCode.none]
    third = again._replace(offsets=(OffsetToCommit("t", None, 2, 7, 2, None),))
    with pytest.raises(ApiError) as refused:
        commit_in_transaction(None, third, OffsetStore(), pending, step)
    assert refused.value.code is ErrorCode.invalid_commit_offset_size
