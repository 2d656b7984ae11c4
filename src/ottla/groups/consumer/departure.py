"""Members that leave, or are fenced because they did not do in time what they had to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain

from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import NO_OWNED, STATIC_LEAVE_EPOCH, Member
from ottla.groups.consumer.noted import note_gone, who_is
from ottla.groups.consumer.requests import HeartbeatRequest, HeartbeatResult
from ottla.groups.consumer.settings import ConsumerGroupSettings
from ottla.groups.consumer.step import RebalanceExpired, SessionExpired, Step, TimerEvent
from ottla.groups.consumer.stored import ConsumerRecord, GroupValue, PartitionMetadataKey, RegexKey
from ottla.groups.consumer.timers import forget
from ottla.groups.consumer.topics import Topics
from ottla.groups.consumer.written import current_record, removal_records
from ottla.groups.history.events import Cause, Why
from ottla.groups.newer_stored import GroupKey, TargetEpochKey, TargetEpochValue
from ottla.protocol.errors import ApiError, ErrorCode


def leave(
    group: ConsumerGroup, request: HeartbeatRequest, topics: Topics, step: Step
) -> HeartbeatResult:
    """The member leaves, a static one perhaps only for a while; raises ApiError for others."""
    member = leaving(group, request)
    if request.epoch == STATIC_LEAVE_EPOCH:
        step.records.append(current_record(group.group_id, _absent(member)))
        return HeartbeatResult(member.member_id, STATIC_LEAVE_EPOCH)
    remove(group, member, topics, step, Cause(Why.LEFT, who_is(member)))
    return HeartbeatResult(request.member_id, request.epoch)


def leaving(group: ConsumerGroup, request: HeartbeatRequest) -> Member:
    """Who leaves; raises ApiError."""
    if request.instance_id is None:
        return known_member(group, request.member_id)
    return known_static_member(group, request.instance_id, request.member_id)


def _absent(member: Member) -> Member:
    """The next client with the instance id takes over, and may commit in any epoch of its own."""
    return member._replace(
        epoch=STATIC_LEAVE_EPOCH,
        pending_revocation=NO_OWNED,
        assigned={topic: dict.fromkeys(epochs, 0) for topic, epochs in member.assigned.items()},
    )


def remove(group: ConsumerGroup, member: Member, topics: Topics, step: Step, cause: Cause) -> None:
    """The member is gone: the group gets into a new epoch without it."""
    gone = {member.member_id: member}
    remove_all(group, gone, topics, step, {member.member_id: cause})


def remove_all(
    group: ConsumerGroup,
    gone: Mapping[str, Member],
    topics: Topics,
    step: Step,
    causes: Mapping[str, Cause],
) -> None:
    """These members (by id) are gone: the group gets into one new epoch without them."""
    group_id = group.group_id
    note_gone(group, gone, causes, step)
    for member_id in gone:
        step.records += removal_records(group_id, member_id)
        forget(group_id, member_id, step)
    regexes = group.regex_subscribers - Counter(
        member.subscribed_regex for member in gone.values() if member.subscribed_regex
    )
    step.records += [
        ConsumerRecord(RegexKey(group_id, regex), None)
        for regex in group.regexes
        if regex not in regexes
    ]
    names = set(
        group.subscribers - Counter(chain(*(each.subscribed_topics for each in gone.values())))
    )
    for regex in regexes:
        if regex in group.regexes:
            names.update(group.regexes[regex].topics)
    value = GroupValue(group.epoch + 1, topics.metadata_hash(names))
    step.records.append(ConsumerRecord(GroupKey(group_id), value))
    if len(gone) == len(group.members):
        # Nothing is left to assign: the group is not due for it, and who joins next does not wait
        # for the interval (as in Apache Kafka since 4.4).
        empty = TargetEpochValue(value.epoch, 0)
        step.records.append(ConsumerRecord(TargetEpochKey(group_id), empty))


def leaving_members(
    group: ConsumerGroup, named: Iterable[tuple[str, str | None]]
) -> tuple[dict[str, Member], list[ErrorCode]]:
    """LeaveGroup, by which also an administrator removes members (KIP-345), each named by its
    id, its instance id or both. Those that are to be removed, by id, and the error of each in turn.
    """
    gone: dict[str, Member] = {}
    errors = []
    for member_id, instance_id in named:
        try:
            if instance_id is None:
                member = known_member(group, member_id)
            else:
                known = group.static_members.get(instance_id, "")
                member = known_static_member(group, instance_id, member_id or known)
        except ApiError as error:
            errors.append(error.code)
        else:
            gone[member.member_id] = member
            errors.append(ErrorCode.none)
    return gone, errors


def expired(group: ConsumerGroup, event: TimerEvent, topics: Topics, step: Step) -> None:
    """A timer has expired; the member may be gone, or have done what it had to."""
    member = late(group, event)
    if member is not None:
        remove(group, member, topics, step, why_late(member, event, step.settings))


def late(group: ConsumerGroup, event: TimerEvent) -> Member | None:
    """The member that did not do in time what it had to."""
    member = group.members.get(event.member)
    if member is None or (isinstance(event, RebalanceExpired) and member.epoch != event.epoch):
        return None
    return member


def why_late(member: Member, event: TimerEvent, settings: ConsumerGroupSettings) -> Cause:
    """What it did not do, and how long it had the time to."""
    if not isinstance(event, SessionExpired):
        return Cause(Why.REBALANCE_TIMEOUT, who_is(member), waited_ms=member.rebalance_timeout_ms)
    timeout_ms = settings.session_timeout_ms
    if member.classic is not None:
        timeout_ms = member.classic.session_timeout_ms
    return Cause(Why.SESSION_EXPIRED, who_is(member), waited_ms=timeout_ms)


def group_removal(group: ConsumerGroup) -> list[ConsumerRecord]:
    """The group is gone, with all its members."""
    records = [record for name in group.members for record in removal_records(group.group_id, name)]
    records += [ConsumerRecord(RegexKey(group.group_id, regex), None) for regex in group.regexes]
    if group.has_partition_metadata:
        records.append(ConsumerRecord(PartitionMetadataKey(group.group_id), None))
    records += [
        ConsumerRecord(TargetEpochKey(group.group_id), None),
        ConsumerRecord(GroupKey(group.group_id), None),
    ]
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
