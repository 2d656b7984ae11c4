"""Members that leave, or whose session has expired."""

from __future__ import annotations

from collections import Counter

from ottla.groups.consumer.topics import Topics
from ottla.groups.history.events import Cause, Why
from ottla.groups.newer_stored import TargetEpochKey, TargetEpochValue
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.member import Member
from ottla.groups.share.noted import note_gone, who_is
from ottla.groups.share.requests import HeartbeatRequest, HeartbeatResult
from ottla.groups.share.step import Step
from ottla.groups.share.stored import ShareRecord
from ottla.groups.share.timers import forget
from ottla.groups.share.written import group_record, removal_records
from ottla.protocol.errors import ApiError, ErrorCode


def leave(
    group: ShareGroup, request: HeartbeatRequest, topics: Topics, step: Step
) -> HeartbeatResult:
    """The member leaves; raises ApiError (UNKNOWN_MEMBER_ID) for others."""
    member = known_member(group, request.member_id)
    remove(group, member, topics, step, Cause(Why.LEFT, who_is(member)))
    return HeartbeatResult(request.member_id, request.epoch)


def remove(group: ShareGroup, member: Member, topics: Topics, step: Step, cause: Cause) -> None:
    """The member is gone: the group gets into a new epoch without it."""
    note_gone(group, member, cause, step)
    step.records += removal_records(group.group_id, member.member_id)
    names = group.subscribers - Counter(member.subscribed_topics)
    metadata_hash = topics.metadata_hash(names)
    epoch = group.epoch + 1
    step.records.append(group_record(group.group_id, epoch, metadata_hash))
    if len(group.members) == 1:
        # As of a consumer group: nothing is left to assign, and who joins next does not wait.
        key, empty = TargetEpochKey(group.group_id), TargetEpochValue(epoch, 0)
        step.records.append(ShareRecord(key, empty))
    forget(group.group_id, member.member_id, step)


def known_member(group: ShareGroup, member_id: str) -> Member:
    """The member; raises ApiError(UNKNOWN_MEMBER_ID)."""
    member = group.members.get(member_id)
    if member is None:
        message = f"Member {member_id} is not a member of group {group.group_id}."
        raise ApiError(ErrorCode.unknown_member_id, message)
    return member
