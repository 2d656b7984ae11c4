"""From one generation to the next, decision by decision."""

from __future__ import annotations

import pytest

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.member import Member
from ottla.groups.classic.rebalance import (
    MISSING_WAIT_MS,
    RETRY_MS,
    complete_join,
    initial_delay_over,
    leaves_empty,
    prepare_rebalance,
)
from ottla.groups.classic.state import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    GroupState,
)
from ottla.groups.classic.timers import join_key, sync_key
from ottla.groups.settings import GroupSettings
from ottla.groups.step import InitialDelayExpired, JoinExpired, Step, SyncExpired
from ottla.protocol.errors import ErrorCode
from ottla.shards.step import CancelTimer, SetTimer

DELAY_MS, REBALANCE_MS, SESSION_MS = 30, 100, 10


def step() -> Step:
    return Step(5, GroupSettings(initial_rebalance_delay_ms=DELAY_MS))


def group_of(state: GroupState, *members: tuple[str, str | None, bool]) -> ClassicGroup:
    """Members as (id, instance id, has joined again)."""
    group = ClassicGroup("g", 0)
    for member_id, instance_id, has_joined in members:
        member = Member(
            member_id, instance_id, "c", "h", REBALANCE_MS, SESSION_MS, "consumer", {"range": b""}
        )
        group.add(member)
        if has_joined:
            group.park_join(member, f"join {member_id}", step())
    group.state, group.generation = state, 3
    return group


def answered(done: Step) -> dict[str, ErrorCode]:
    return {reply.token: reply.result.error for reply in done.replies}


def test_the_first_rebalance_waits_for_more_members() -> None:
    group, done = group_of(EMPTY, ("a", None, True)), step()
    prepare_rebalance(group, done)
    assert (group.state, answered(done)) == (PREPARING_REBALANCE, {})
    event = InitialDelayExpired("g", DELAY_MS, REBALANCE_MS - DELAY_MS)
    assert SetTimer(join_key(group), DELAY_MS, event) in done.timers


def test_the_initial_delay_is_repeated_while_members_come_and_time_is_left() -> None:
    group = group_of(PREPARING_REBALANCE, ("a", None, True))
    group.new_member_added, done = True, step()
    initial_delay_over(group, InitialDelayExpired("g", DELAY_MS, 50), done)
    event = InitialDelayExpired("g", DELAY_MS, 20)
    assert done.timers == [SetTimer(join_key(group), DELAY_MS, event)]
    assert not group.new_member_added
    for more, remaining_ms in ((False, 50), (True, 0)):
        group = group_of(PREPARING_REBALANCE, ("a", None, True))
        group.new_member_added, done = more, step()
        initial_delay_over(group, InitialDelayExpired("g", DELAY_MS, remaining_ms), done)
        assert group.state is COMPLETING_REBALANCE
        assert answered(done) == {"join a": ErrorCode.none}


def test_a_later_rebalance_waits_for_the_slowest_member() -> None:
    group, done = group_of(STABLE, ("a", None, True), ("b", None, False)), step()
    prepare_rebalance(group, done)
    assert group.state is PREPARING_REBALANCE
    assert SetTimer(join_key(group), REBALANCE_MS, JoinExpired("g")) in done.timers


def test_a_rebalance_for_which_all_have_joined_ends_at_once() -> None:
    group, done = group_of(STABLE, ("a", None, True), ("b", None, True)), step()
    prepare_rebalance(group, done)
    assert (group.state, group.generation, group.leader_id) == (COMPLETING_REBALANCE, 4, "a")
    assert list(group.pending_sync) == ["a", "b"]
    assert answered(done) == {"join a": ErrorCode.none, "join b": ErrorCode.none}
    assert SetTimer(sync_key(group), REBALANCE_MS, SyncExpired("g", 4)) in done.timers


def test_those_who_wait_for_an_assignment_join_again() -> None:
    group, done = group_of(COMPLETING_REBALANCE, ("a", None, False), ("b", None, False)), step()
    group.park_sync(group.members["b"], "sync b", step())
    group.members["a"].assignment = b"partition 0"
    prepare_rebalance(group, done)
    assert answered(done) == {"sync b": ErrorCode.rebalance_in_progress}
    assert group.members["a"].assignment == b""


def test_a_dynamic_member_that_is_missing_is_removed_and_a_static_one_stays() -> None:
    group = group_of(PREPARING_REBALANCE, ("a", None, False), ("b", None, True), ("s", "i", False))
    done = step()
    complete_join(group, done)
    assert (list(group.members), group.leader_id, group.generation) == (["b", "s"], "b", 4)
    assert answered(done) == {"join b": ErrorCode.none}


def test_static_members_alone_are_waited_for() -> None:
    group, done = group_of(PREPARING_REBALANCE, ("a", None, False), ("s", "i", False)), step()
    complete_join(group, done)
    assert (list(group.members), group.state) == (["s"], PREPARING_REBALANCE)
    assert SetTimer(join_key(group), MISSING_WAIT_MS, JoinExpired("g")) in done.timers


def test_a_group_that_nobody_joins_becomes_empty_by_a_record() -> None:
    group, done = group_of(PREPARING_REBALANCE, ("a", None, False)), step()
    complete_join(group, done)
    (record,) = done.records
    assert (record.value.generation, record.value.members) == (4, ())  # type: ignore[union-attr]
    assert (list(group.members), done.timers) == (["a"], []), "nothing changes before it is applied"
    assert done.when_refused is not None
    later = step()
    done.when_refused(later, ErrorCode.not_enough_replicas)
    assert later.timers == [SetTimer(join_key(group), RETRY_MS, JoinExpired("g"))]
    assert done.when_appended is not None
    group.park_sync(group.members["a"], "sync a", step())
    later = step()
    done.when_appended(later)
    assert answered(later) == {"sync a": ErrorCode.unknown_member_id}
    assert CancelTimer(join_key(group)) in later.timers


@pytest.mark.parametrize(
    ("leaving", "is_empty"), [(("a",), False), (("a", "b"), False), (("a", "b", "p"), True)]
)
def test_pending_members_count_as_members(leaving: tuple[str, ...], is_empty: bool) -> None:
    group = group_of(STABLE, ("a", None, False), ("b", None, False))
    group.pending_members["p"] = None
    assert leaves_empty(group, leaving) is is_empty
