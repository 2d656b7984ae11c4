"""Members that leave, or whose time is over."""

from __future__ import annotations

from ottla.groups.history.events import Why
from ottla.groups.newer_stored import TargetEpochKey, TargetEpochValue
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import LEAVE_STATIC_EPOCH, Member
from ottla.groups.streams.noted import note_gone
from ottla.groups.streams.requests import HeartbeatRequest, HeartbeatResult
from ottla.groups.streams.step import Step
from ottla.groups.streams.stored import StreamsRecord
from ottla.groups.streams.timers import forget
from ottla.groups.streams.written import (
    current_record,
    next_epoch_record,
    removal_records,
)
from ottla.protocol.errors import ApiError, ErrorCode


def remove(
    group: StreamsGroup, member: Member, step: Step, why: Why, waited_ms: int | None = None
) -> None:
    """The member is gone: the group gets into a new epoch without it."""
    note_gone(group, member, why, waited_ms, step)
    step.records += removal_records(group.group_id, member.member_id)
    step.records.append(next_epoch_record(group))
    if len(group.members) == 1:
        # As of a consumer group: nothing is left to assign, and who joins next does not wait.
        key, empty = TargetEpochKey(group.group_id), TargetEpochValue(group.epoch + 1, 0)
        step.records.append(StreamsRecord(key, empty))
    forget(group.group_id, member.member_id, step)


def leave(group: StreamsGroup, request: HeartbeatRequest, step: Step) -> HeartbeatResult:
    """The member leaves, a static one perhaps only for a while; raises ApiError for others.

    Until its session expires, the place of a static member is kept.
    """
    member = _leaving(group, request)
    if request.epoch == LEAVE_STATIC_EPOCH:
        step.records.append(current_record(group.group_id, member.absent()))
        return HeartbeatResult(member.member_id, LEAVE_STATIC_EPOCH)
    remove(group, member, step, Why.LEFT)
    return HeartbeatResult(request.member_id, request.epoch)


def _leaving(group: StreamsGroup, request: HeartbeatRequest) -> Member:
    if request.instance_id is None:
        return known_member(group, request.member_id)
    return known_static_member(group, request.instance_id, request.member_id)


def known_static_member(group: StreamsGroup, instance_id: str, member_id: str) -> Member:
    """The member with both ids; raises ApiError(UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID)."""
    member = group.static_member(instance_id)
    if member is None:
        raise ApiError(ErrorCode.unknown_member_id, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise ApiError(
            ErrorCode.fenced_instance_id,
            f"Static member {member_id} with instance id {instance_id} was fenced by member"
            f" {member.member_id}.",
        )
    return member


def known_member(group: StreamsGroup, member_id: str) -> Member:
    """The member; raises ApiError(UNKNOWN_MEMBER_ID)."""
    member = group.members.get(member_id)
    if member is None:
        message = f"Member {member_id} is not a member of group {group.group_id}."
        raise ApiError(ErrorCode.unknown_member_id, message)
    return member
