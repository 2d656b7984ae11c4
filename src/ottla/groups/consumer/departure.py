"""Members that leave, or are fenced because they did not do in time what they had to."""

from __future__ import annotations

from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import NO_OWNED, STATIC_LEAVE_EPOCH, Member
from ottla.groups.consumer.requests import HeartbeatRequest, HeartbeatResult
from ottla.groups.consumer.step import SessionExpired, Step, TimerEvent
from ottla.groups.consumer.stored import (
    ConsumerRecord,
    GroupKey,
    GroupValue,
    PartitionMetadataKey,
    RegexKey,
    TargetEpochKey,
)
from ottla.groups.consumer.subscription import Change, members_after, subscribed_names
from ottla.groups.consumer.timers import forget
from ottla.groups.consumer.topics import Topics
from ottla.groups.consumer.written import current_record, removal_records
from ottla.protocol.errors import ApiError, ErrorCode


def leave(
    group: ConsumerGroup, request: HeartbeatRequest, topics: Topics, step: Step
) -> HeartbeatResult:
    """The member leaves, a static one perhaps only for a while; raises ApiError for others."""
    if request.instance_id is None:
        member = known_member(group, request.member_id)
    else:
        member = known_static_member(group, request.instance_id, request.member_id)
        if request.epoch == STATIC_LEAVE_EPOCH:
            step.records.append(current_record(group.group_id, _absent(member)))
            return HeartbeatResult(member.member_id, STATIC_LEAVE_EPOCH)
    remove(group, member, topics, step)
    return HeartbeatResult(request.member_id, request.epoch)


def _absent(member: Member) -> Member:
    """The next client with the instance id takes over, and may commit in any epoch of its own."""
    return member._replace(
        epoch=STATIC_LEAVE_EPOCH,
        pending_revocation=NO_OWNED,
        assigned={topic: dict.fromkeys(epochs, 0) for topic, epochs in member.assigned.items()},
    )


def remove(group: ConsumerGroup, member: Member, topics: Topics, step: Step) -> None:
    """The member is gone: the group gets into a new epoch without it."""
    names = subscribed_names(group, Change(member, None))
    step.records += removal_records(group.group_id, member.member_id)
    step.records += unused_regexes(group, Change(member, None))
    value = GroupValue(group.epoch + 1, topics.metadata_hash(names))
    step.records.append(ConsumerRecord(GroupKey(group.group_id), value))
    forget(group.group_id, member.member_id, step)


def unused_regexes(group: ConsumerGroup, change: Change) -> list[ConsumerRecord]:
    """Removes the regular expressions that no member subscribes to any more."""
    if not group.regexes:
        return []
    used = {member.subscribed_regex for member in members_after(group, change)}
    return [
        ConsumerRecord(RegexKey(group.group_id, regex), None)
        for regex in group.regexes
        if regex not in used
    ]


def expired(group: ConsumerGroup, event: TimerEvent, topics: Topics, step: Step) -> None:
    """A timer has expired; the member may be gone, or have done what it had to."""
    member = group.members.get(event.member)
    if member is None:
        return
    if isinstance(event, SessionExpired) or member.epoch == event.epoch:
        remove(group, member, topics, step)


def group_removal(group: ConsumerGroup) -> list[ConsumerRecord]:
    """An empty group is gone."""
    assert not group.members, "only empty groups are removed"
    records = [
        ConsumerRecord(TargetEpochKey(group.group_id), None),
        ConsumerRecord(GroupKey(group.group_id), None),
    ]
    if group.has_partition_metadata:
        records.insert(1, ConsumerRecord(PartitionMetadataKey(group.group_id), None))
    return records


def known_member(group: ConsumerGroup, member_id: str) -> Member:
    """The member; raises ApiError(UNKNOWN_MEMBER_ID)."""
    member = group.members.get(member_id)
    if member is None:
        message = f"Member {member_id} is not a member of group {group.group_id}."
        raise ApiError(ErrorCode.unknown_member_id, message)
    return member


def known_static_member(group: ConsumerGroup, instance_id: str, member_id: str) -> Member:
    """The member with both ids; raises ApiError(UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID)."""
    member = group.static_member(instance_id)
    if member is None:
        message = f"Instance id {instance_id} is unknown."
        raise ApiError(ErrorCode.unknown_member_id, message)
    if member.member_id != member_id:
        raise ApiError(
            ErrorCode.fenced_instance_id,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.member_id}.",
        )
    return member
