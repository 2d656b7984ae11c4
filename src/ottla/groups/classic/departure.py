"""Members go: their session ends, they leave, or they miss the sync phase."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.rebalance import (
    complete_join,
    complete_join_if_all_joined,
    prepare_rebalance,
    rebalance_or_complete_join,
)
from ottla.groups.classic.requests import (
    UNKNOWN_MEMBER_ID,
    JoinResult,
    LeavingMember,
    LeftMember,
    SyncResult,
)
from ottla.groups.classic.state import COMPLETING_REBALANCE, DEAD, PREPARING_REBALANCE, STABLE
from ottla.groups.classic.timers import forget_heartbeat
from ottla.groups.step import Step, SyncExpired
from ottla.protocol.errors import ErrorCode


def leave(
    group: ClassicGroup, leaving: Sequence[LeavingMember], step: Step
) -> tuple[LeftMember, ...]:
    """Members leave, or an administrator removes static ones by instance id (KIP-345)."""
    left = tuple(
        LeftMember(member.member_id, member.group_instance_id, _leave_one(group, member, step))
        for member in leaving
    )
    if any(member.error is ErrorCode.none for member in left):
        if group.state in (STABLE, COMPLETING_REBALANCE):
            rebalance_or_complete_join(group, step)
        else:
            complete_join_if_all_joined(group, step)
    return left


def _leave_one(group: ClassicGroup, leaving: LeavingMember, step: Step) -> ErrorCode:
    member_id, instance_id = leaving.member_id, leaving.group_instance_id
    if member_id == UNKNOWN_MEMBER_ID:
        if instance_id is None or instance_id not in group.static_members:
            return ErrorCode.unknown_member_id
        member_id = group.static_members[instance_id]
    elif member_id in group.pending_members:
        group.remove(member_id)
        forget_heartbeat(group, member_id, step)
        return ErrorCode.none
    else:
        error = group.check_member(member_id, instance_id)
        if error is not ErrorCode.none:
            return error
    forget_heartbeat(group, member_id, step)
    _remove(group, member_id, step)
    return ErrorCode.none


def _remove(group: ClassicGroup, member_id: str, step: Step) -> None:
    """Its waiting requests are told that it is no member, so that a living client comes back."""
    member = group.members[member_id]
    error = ErrorCode.unknown_member_id
    group.answer_join(member, JoinResult(error, UNKNOWN_MEMBER_ID), step)
    group.answer_sync(member, SyncResult(error), step)
    group.remove(member_id)


def heartbeat_expired(group: ClassicGroup, member_id: str, step: Step) -> None:
    """A member was not heard of for its session timeout."""
    if group.state is DEAD:
        return
    if member_id in group.pending_members:
        group.remove(member_id)
    elif member_id in group.members and not group.members[member_id].is_heard_of:
        _remove(group, member_id, step)
        if group.state in (STABLE, COMPLETING_REBALANCE):
            rebalance_or_complete_join(group, step)
            return
    else:
        return
    if group.state is PREPARING_REBALANCE and group.all_joined:
        complete_join(group, step)


def sync_expired(group: ClassicGroup, event: SyncExpired, step: Step) -> None:
    """Members that joined and never asked for their assignment are out."""
    if event.generation != group.generation:
        return
    if group.state not in (COMPLETING_REBALANCE, STABLE) or not group.pending_sync:
        return
    for member_id in list(group.pending_sync):
        group.remove(member_id)
        forget_heartbeat(group, member_id, step)
    prepare_rebalance(group, step)
