"""Members that leave, expire, or are late: what remains of the group."""

from __future__ import annotations

import pytest
from tests.groups.classic.members import GENERATION, answers, group_in, new_step

from ottla.groups.classic.departure import heartbeat_expired, leave, sync_expired
from ottla.groups.classic.requests import LeavingMember
from ottla.groups.classic.state import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    GroupState,
)
from ottla.groups.classic.timers import heartbeat_key, sync_key
from ottla.groups.step import Step, SyncExpired
from ottla.groups.stored import GroupMetadataValue
from ottla.protocol.errors import ErrorCode
from ottla.shards.step import CancelTimer, SetTimer

A, B, S = ("a", None), ("b", None), ("s", "i")
UNKNOWN = ErrorCode.unknown_member_id


def is_emptied_by(step: Step) -> bool:
    """The step writes the next generation, without members."""
    if not step.records:
        return False
    (record,) = step.records
    assert isinstance(record.value, GroupMetadataValue)
    return (record.value.generation, record.value.members) == (GENERATION + 1, ())


@pytest.mark.parametrize("state", [STABLE, COMPLETING_REBALANCE])
def test_the_others_rebalance_when_one_leaves(state: GroupState) -> None:
    group, step = group_in(state, A, B), new_step()
    (left,) = leave(group, [LeavingMember("a", None)], step)
    assert left.error is ErrorCode.none
    assert (list(group.members), group.leader_id) == (["b"], "b")
    assert group.state is PREPARING_REBALANCE
    assert CancelTimer(heartbeat_key(group, "a")) in step.timers


@pytest.mark.parametrize("state", [STABLE, COMPLETING_REBALANCE])
def test_the_last_members_are_ended_by_a_record(state: GroupState) -> None:
    group, step = group_in(state, A, B), new_step()
    left = leave(group, [LeavingMember("a", None), LeavingMember("b", None)], step)
    assert [each.error for each in left] == [ErrorCode.none] * 2
    assert is_emptied_by(step)
    assert list(group.members) == ["a", "b"], "nothing changes before the record is applied"


def test_who_leaves_and_who_is_not_known() -> None:
    group, step = group_in(STABLE, A, B, S), new_step()
    group.pending_members["p"] = None
    left = leave(
        group,
        [
            LeavingMember("", "i"),
            LeavingMember("s", None),
            LeavingMember("", "j"),
            LeavingMember("", None),
            LeavingMember("a", "i"),
            LeavingMember("x", None),
            LeavingMember("p", None),
        ],
        step,
    )
    assert [each.error for each in left] == [
        ErrorCode.none,
        UNKNOWN,
        UNKNOWN,
        UNKNOWN,
        ErrorCode.fenced_instance_id,
        UNKNOWN,
        ErrorCode.none,
    ]
    assert (list(group.members), list(group.pending_members)) == (["a", "b"], [])


def test_nobody_leaves_and_nothing_happens() -> None:
    group, step = group_in(STABLE, A), new_step()
    (left,) = leave(group, [LeavingMember("x", None)], step)
    assert (left.error, step.records, step.timers) == (UNKNOWN, [], [])
    assert group.state is STABLE


def test_a_member_that_leaves_while_it_waits_is_answered() -> None:
    group = group_in(PREPARING_REBALANCE, A, B)
    group.park_join(group.members["a"], "join a", new_step())
    step = new_step()
    leave(group, [LeavingMember("a", None)], step)
    assert answers(step) == {"join a": UNKNOWN}
    assert group.awaiting_join == 0


def test_a_rebalance_is_complete_when_the_one_that_is_missing_leaves() -> None:
    group = group_in(PREPARING_REBALANCE, A, B)
    group.previous_state = STABLE
    group.park_join(group.members["a"], "join a", new_step())
    step = new_step()
    leave(group, [LeavingMember("b", None)], step)
    assert answers(step) == {"join a": ErrorCode.none}
    assert (group.state, group.generation) == (COMPLETING_REBALANCE, GENERATION + 1)


def test_a_session_expires() -> None:
    group, step = group_in(STABLE, A, B), new_step()
    heartbeat_expired(group, "b", step)
    assert (list(group.members), group.state) == (["a"], PREPARING_REBALANCE)


@pytest.mark.parametrize("state", [STABLE, PREPARING_REBALANCE])
def test_the_last_session_expires(state: GroupState) -> None:
    group, step = group_in(state, A), new_step()
    heartbeat_expired(group, "a", step)
    assert is_emptied_by(step)
    assert step.when_refused is not None
    later = new_step()
    step.when_refused(later, ErrorCode.not_enough_replicas)
    (timer,) = later.timers
    assert timer.key == heartbeat_key(group, "a"), "it expires again"


def test_sessions_that_do_not_expire() -> None:
    group = group_in(STABLE, A, B)
    group.park_sync(group.members["b"], "sync b", new_step())
    dead = group_in(DEAD, A)
    for one, member_id in ((group, "b"), (group, "x"), (dead, "a")):
        step = new_step()
        heartbeat_expired(one, member_id, step)
        assert (step.records, step.replies, step.timers) == ([], [], [])
    assert (len(group.members), group.state, len(dead.members)) == (2, STABLE, 1)


def test_an_id_that_nobody_came_back_with_expires() -> None:
    group, step = group_in(STABLE, A), new_step()
    group.pending_members["p"] = None
    heartbeat_expired(group, "p", step)
    assert (list(group.pending_members), group.state) == ([], STABLE)
    alone = group_in(EMPTY)
    alone.pending_members["p"] = None
    heartbeat_expired(alone, "p", step)
    assert (list(alone.pending_members), step.records) == ([], [])


@pytest.mark.parametrize("state", [STABLE, COMPLETING_REBALANCE])
def test_members_that_never_sync_are_removed(state: GroupState) -> None:
    group, step = group_in(state, A, B), new_step()
    group.pending_sync = {"b": None}
    sync_expired(group, SyncExpired("g", GENERATION), step)
    assert (list(group.members), group.state) == (["a"], PREPARING_REBALANCE)


def test_a_sync_timer_that_is_not_this_generations() -> None:
    for state, generation, pending in (
        (STABLE, GENERATION - 1, {"b": None}),
        (PREPARING_REBALANCE, GENERATION, {"b": None}),
        (STABLE, GENERATION, {}),
    ):
        group, step = group_in(state, A, B), new_step()
        group.pending_sync = pending
        sync_expired(group, SyncExpired("g", generation), step)
        assert (list(group.members), group.state) == (["a", "b"], state)


def test_nobody_syncs() -> None:
    group, step = group_in(COMPLETING_REBALANCE, A), new_step()
    group.pending_sync = {"a": None}
    sync_expired(group, SyncExpired("g", GENERATION), step)
    assert is_emptied_by(step)
    assert step.when_refused is not None
    later = new_step()
    step.when_refused(later, ErrorCode.not_enough_replicas)
    (timer,) = later.timers
    assert isinstance(timer, SetTimer)
    assert (timer.key, timer.event) == (sync_key(group), SyncExpired("g", GENERATION))
