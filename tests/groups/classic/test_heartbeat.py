"""Which heartbeats and commits a classic group accepts, state by state."""

from __future__ import annotations

import pytest

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.heartbeat import (
    commit_error,
    extend_session_by_commit,
    heartbeat,
    transactional_commit_error,
)
from ottla.groups.classic.member import Member
from ottla.groups.classic.requests import HeartbeatRequest
from ottla.groups.classic.state import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    GroupState,
)
from ottla.groups.settings import GroupSettings
from ottla.groups.step import HeartbeatExpired, Step, TimerKey
from ottla.protocol.errors import ErrorCode
from ottla.shards.step import SetTimer

GENERATION = 3
NONE = ErrorCode.none
DYNAMIC, STATIC = ("m", None), ("s", "i")


def group_in(state: GroupState) -> ClassicGroup:
    """With a dynamic member m and a static one s, or without members."""
    group = ClassicGroup("g", 0)
    if state is not EMPTY:
        for member_id, instance_id in (DYNAMIC, STATIC):
            member = Member(member_id, instance_id, "c", "h", 100, 10, "consumer", {"range": b""})
            group.add(member)
    group.state, group.generation = state, GENERATION
    return group


def beat(group: ClassicGroup, member: str, instance: str | None, generation: int) -> ErrorCode:
    step = Step(0, GroupSettings())
    error = heartbeat(group, HeartbeatRequest("g", generation, member, instance), step)
    extends = SetTimer(TimerKey("heartbeat", "g", member), 10, HeartbeatExpired("g", member))
    is_alive = error in (NONE, ErrorCode.rebalance_in_progress)
    assert step.timers == ([extends] if is_alive else [])
    return error


@pytest.mark.parametrize("member", [DYNAMIC, STATIC])
def test_a_heartbeat_extends_the_session(member: tuple[str, str | None]) -> None:
    for state in (STABLE, COMPLETING_REBALANCE):
        assert beat(group_in(state), *member, GENERATION) is NONE
    rebalance = ErrorCode.rebalance_in_progress
    assert beat(group_in(PREPARING_REBALANCE), *member, GENERATION) is rebalance


def test_heartbeats_of_others_are_refused() -> None:
    group = group_in(STABLE)
    assert beat(group, *DYNAMIC, GENERATION - 1) is ErrorCode.illegal_generation
    assert beat(group, "x", None, GENERATION) is ErrorCode.unknown_member_id
    assert beat(group, "s", "j", GENERATION) is ErrorCode.unknown_member_id
    assert beat(group, "m", "i", GENERATION) is ErrorCode.fenced_instance_id
    assert beat(group_in(DEAD), *DYNAMIC, GENERATION) is ErrorCode.coordinator_not_available


@pytest.mark.parametrize(
    ("state", "member", "generation", "plain", "transactional"),
    [
        (STABLE, DYNAMIC, GENERATION, "none", "none"),
        (STABLE, STATIC, GENERATION, "none", "none"),
        (PREPARING_REBALANCE, DYNAMIC, GENERATION, "none", "none"),
        (COMPLETING_REBALANCE, DYNAMIC, GENERATION, "rebalance_in_progress", "none"),
        (STABLE, DYNAMIC, GENERATION - 1, "illegal_generation", "illegal_generation"),
        (STABLE, DYNAMIC, -1, "illegal_generation", "illegal_generation"),
        (STABLE, ("x", None), GENERATION, "unknown_member_id", "unknown_member_id"),
        (STABLE, ("m", "i"), GENERATION, "fenced_instance_id", "fenced_instance_id"),
        # Neither member nor generation: a consumer with its own partitions, or a transaction.
        (STABLE, ("", None), -1, "unknown_member_id", "none"),
        (EMPTY, ("", None), -1, "none", "none"),
        (EMPTY, DYNAMIC, GENERATION, "unknown_member_id", "unknown_member_id"),
        (DEAD, DYNAMIC, GENERATION, "coordinator_not_available", "coordinator_not_available"),
        (DEAD, ("", None), -1, "coordinator_not_available", "coordinator_not_available"),
    ],
)
def test_who_may_commit(
    state: GroupState,
    member: tuple[str, str | None],
    generation: int,
    plain: str,
    transactional: str,
) -> None:
    group = group_in(state)
    assert commit_error(group, *member, generation) is ErrorCode[plain]
    assert transactional_commit_error(group, *member, generation) is ErrorCode[transactional]


@pytest.mark.parametrize(
    ("state", "timers"), [(STABLE, 1), (PREPARING_REBALANCE, 1), (COMPLETING_REBALANCE, 0)]
)
def test_a_commit_extends_the_session_but_between_join_and_sync(
    state: GroupState, timers: int
) -> None:
    step = Step(0, GroupSettings())
    extend_session_by_commit(group_in(state), "m", step)
    assert len(step.timers) == timers
