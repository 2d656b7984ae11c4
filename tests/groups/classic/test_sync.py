"""SyncGroup: the leader's assignment is stored first, then everybody gets theirs."""

from __future__ import annotations

from typing import Any

import pytest
from tests.groups.classic.members import GENERATION, answers, group_in, new_step

from ottla.groups.classic.requests import SyncRequest, SyncResult
from ottla.groups.classic.state import (
    COMPLETING_REBALANCE,
    DEAD,
    PREPARING_REBALANCE,
    STABLE,
    GroupState,
)
from ottla.groups.classic.sync import sync
from ottla.groups.classic.timers import heartbeat_key, sync_key
from ottla.groups.stored import GroupMetadataValue
from ottla.protocol.errors import ErrorCode
from ottla.shards.step import CancelTimer, SetTimer

A, B, S = ("a", None), ("b", None), ("s", "i")
NONE = ErrorCode.none


def request(member_id: str, **changes: Any) -> SyncRequest:
    request = SyncRequest(
        f"sync {member_id}", "g", GENERATION, member_id, None, "consumer", "range", {}
    )
    return request._replace(**changes)


@pytest.mark.parametrize(
    ("state", "changes", "error"),
    [
        (DEAD, {}, "coordinator_not_available"),
        (STABLE, {"member_id": "x"}, "unknown_member_id"),
        (STABLE, {"group_instance_id": "i"}, "fenced_instance_id"),
        (STABLE, {"generation": GENERATION - 1}, "illegal_generation"),
        (STABLE, {"protocol_type": "connect"}, "inconsistent_group_protocol"),
        (STABLE, {"protocol_name": "sticky"}, "inconsistent_group_protocol"),
        (PREPARING_REBALANCE, {"protocol_name": None}, "rebalance_in_progress"),
        (STABLE, {"protocol_type": None, "protocol_name": None}, "none"),
    ],
)
def test_refusals(state: GroupState, changes: dict[str, Any], error: str) -> None:
    step = new_step()
    sync(group_in(state, A, S), request("a")._replace(**changes), step)
    assert answers(step) == {"sync a": ErrorCode[error]}
    assert step.records == []


def test_a_stable_group_answers_at_once() -> None:
    group, step = group_in(STABLE, A, B), new_step()
    group.members["b"].assignment = b"mine"
    sync(group, request("b"), step)
    (reply,) = step.replies
    assert reply.result == SyncResult(NONE, "consumer", "range", b"mine")


def test_members_wait_for_the_leader_who_stores_all_assignments() -> None:
    group = group_in(COMPLETING_REBALANCE, A, B)
    group.pending_sync = dict.fromkeys("ab")
    step = new_step()
    sync(group, request("b"), step)
    assert (step.replies, step.records, list(group.pending_sync)) == ([], [], ["a"])
    step = new_step()
    sync(group, request("a", assignments={"a": b"0", "x": b"9"}), step)
    assert (step.replies, group.state) == ([], COMPLETING_REBALANCE)
    (record,) = step.records
    assert isinstance(record.value, GroupMetadataValue)
    kept = {member.member_id: member.assignment for member in record.value.members}
    assert kept == {"a": b"0", "b": b""}, "a member that the leader left out has none"
    group.apply(record.value)
    assert group.state is STABLE
    later = new_step()
    assert step.when_appended is not None
    step.when_appended(later)
    found = {reply.token: reply.result.assignment for reply in later.replies}
    assert found == {"sync a": b"0", "sync b": b""}
    assert CancelTimer(sync_key(group)) in later.timers
    extended = {timer.key for timer in later.timers if isinstance(timer, SetTimer)}
    assert extended == {heartbeat_key(group, "a"), heartbeat_key(group, "b")}


def test_assignments_that_cannot_be_stored_begin_another_rebalance() -> None:
    group = group_in(COMPLETING_REBALANCE, A, B)
    sync(group, request("b"), new_step())
    step = new_step()
    sync(group, request("a"), step)
    assert step.when_refused is not None
    later = new_step()
    step.when_refused(later, ErrorCode.not_coordinator)
    assert answers(later) == {"sync b": ErrorCode.not_coordinator}
    assert group.state is PREPARING_REBALANCE
