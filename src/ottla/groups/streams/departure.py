"""Members that leave, or whose time is over."""

from __future__ import annotations

from ottla.groups.history.events import Why
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import Member
from ottla.groups.streams.noted import note_gone
from ottla.groups.streams.step import Step
from ottla.groups.streams.stored import StreamsRecord, TargetEpochKey, TargetEpochValue
from ottla.groups.streams.timers import forget
from ottla.groups.streams.written import next_epoch_record, removal_records
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


def known_member(group: StreamsGroup, member_id: str) -> Member:
    """The member; raises ApiError(UNKNOWN_MEMBER_ID)."""
    member = group.members.get(member_id)
    if member is None:
        message = f"Member {member_id} is not a member of group {group.group_id}."
        raise ApiError(ErrorCode.unknown_member_id, message)
    return member
