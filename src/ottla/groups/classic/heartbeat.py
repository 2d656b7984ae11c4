"""Heartbeat: a member is alive, and gets to know whether it has to join again."""

from __future__ import annotations

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.requests import HeartbeatRequest
from ottla.groups.classic.state import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
)
from ottla.groups.classic.timers import await_heartbeat
from ottla.groups.step import Step
from ottla.protocol.errors import ErrorCode


def heartbeat(group: ClassicGroup, request: HeartbeatRequest, step: Step) -> ErrorCode:
    """Extends the member's session; REBALANCE_IN_PROGRESS makes it join again."""
    if group.state is DEAD:
        return ErrorCode.coordinator_not_available
    error = group.check_member(request.member_id, request.group_instance_id)
    if error is not ErrorCode.none:
        return error
    if request.generation != group.generation:
        return ErrorCode.illegal_generation
    assert group.state is not EMPTY, "an empty group has no members"
    await_heartbeat(group, group.members[request.member_id], step)
    if group.state is PREPARING_REBALANCE:
        return ErrorCode.rebalance_in_progress
    return ErrorCode.none


def commit_error(
    group: ClassicGroup, member_id: str, instance_id: str | None, generation: int
) -> ErrorCode:
    """Whether this client may commit for the group; a former owner may not.

    A consumer that manages its own partitions, or an administrator, has generation -1 and may
    commit while the group is empty.
    """
    if group.state is DEAD:
        return ErrorCode.coordinator_not_available
    if generation < 0 and group.state is EMPTY:
        return ErrorCode.none
    if generation < 0 and not member_id and instance_id is None:
        return ErrorCode.unknown_member_id
    error = group.check_member(member_id, instance_id)
    if error is not ErrorCode.none:
        return error
    if generation != group.generation:
        return ErrorCode.illegal_generation
    if group.state is COMPLETING_REBALANCE:
        # The member has joined the new generation, but owns nothing in it yet.
        return ErrorCode.rebalance_in_progress
    return ErrorCode.none


def transactional_commit_error(
    group: ClassicGroup, member_id: str, instance_id: str | None, generation: int
) -> ErrorCode:
    """The same for a commit in a transaction (KIP-447).

    A client that names no member and no generation may commit in any state: before KIP-447
    producers knew neither, and the transactional id alone fenced them. The state of the group is
    not checked, as in Kafka.
    """
    if group.state is DEAD:
        return ErrorCode.coordinator_not_available
    if generation < 0 and (group.state is EMPTY or (not member_id and instance_id is None)):
        return ErrorCode.none
    error = group.check_member(member_id, instance_id)
    if error is ErrorCode.none and generation != group.generation:
        error = ErrorCode.illegal_generation
    return error


def extend_session_by_commit(group: ClassicGroup, member_id: str, step: Step) -> None:
    """A commit extends the session as a heartbeat does, but not between join and sync."""
    if group.state in (STABLE, PREPARING_REBALANCE):
        await_heartbeat(group, group.members[member_id], step)
