"""A heartbeat of a share group's member: what it says is stored, and it gets to know what it reads.

1. The member is new or says something new: its record. Another subscription, other topics, or
   partitions whose state is initialized by now: the group gets into a new epoch.
2. The group's epoch is ahead of its targets: they are computed, at most once per interval.
3. The member gets what its target says at once: nobody has to give it up before.
4. Subscribed partitions without state: the share coordinator is to begin it.

Kafka's counterpart is GroupMetadataManager.shareGroupHeartbeat.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from ottla.groups.consumer.assignors.spec import Partitions, java_order
from ottla.groups.consumer.member import MemberState
from ottla.groups.consumer.target import may_assign
from ottla.groups.consumer.topics import Topics
from ottla.groups.share.departure import known_member, leave
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.member import JOIN_EPOCH, LEAVE_EPOCH, Member
from ottla.groups.share.noted import note_assigned, note_change, note_reached
from ottla.groups.share.requests import (
    NO_OFFSET,
    HeartbeatRequest,
    HeartbeatResult,
    StatesToInitialize,
)
from ottla.groups.share.state_partitions import beginning, is_assignment_pending, missing
from ottla.groups.share.step import Step
from ottla.groups.share.stored import ShareRecord
from ottla.groups.share.target import compute_target
from ottla.groups.share.timers import await_heartbeat
from ottla.groups.share.written import current_record, group_record, member_record, states_record
from ottla.protocol.errors import ApiError, ErrorCode


def heartbeat(
    group: ShareGroup, request: HeartbeatRequest, topics: Topics, step: Step
) -> HeartbeatResult:
    """Answers a checked request (`requests.check`); raises ApiError where it is refused."""
    if request.epoch == LEAVE_EPOCH:
        return leave(group, request, topics, step)
    before = _subscribed(group, request, step)
    after = _updated(before, request)
    records: list[ShareRecord] = []
    if after != before:
        records.append(member_record(group.group_id, after))
    bumps = before.subscribed_topics != after.subscribed_topics
    are_states_due = False
    if not bumps and group.target_epoch >= group.epoch:
        are_states_due = bumps = (
            group.initialized_version != topics.version and is_assignment_pending(group, topics)
        )
    names = _names_after(group, before, after)
    epoch = _next_epoch(group, names, topics, records, bumps=bumps)
    if records:
        note_change(group, before, after, epoch, step, are_states_due=are_states_due)
    target_epoch, target = _target(group, epoch, after, topics, step, records)
    reconciled = _reconciled(after, target_epoch, target, topics, has_changed=epoch != group.epoch)
    if reconciled != after:
        records.append(current_record(group.group_id, reconciled))
        if reconciled.is_reconciled_to(target_epoch):
            note_reached(group, reconciled, step)
    await_heartbeat(group.group_id, after.member_id, step)
    to_initialize = _to_initialize(group, epoch, names, topics, step, records)
    step.records += records
    is_told = (
        request.epoch == JOIN_EPOCH
        or request.subscribed_topics is not None
        or reconciled.assigned != before.assigned
    )
    return HeartbeatResult(
        reconciled.member_id,
        reconciled.epoch,
        step.settings.heartbeat_interval_ms,
        reconciled.assigned if is_told else None,
        to_initialize,
    )


def _subscribed(group: ShareGroup, request: HeartbeatRequest, step: Step) -> Member:
    """The member as it is, perhaps a new one."""
    member_id, limit = request.member_id, step.settings.max_size
    if len(group.members) >= limit and member_id not in group.members:
        raise ApiError(
            ErrorCode.group_max_size_reached,
            f"The share group has reached its maximum capacity of {limit} members.",
        )
    if request.epoch == JOIN_EPOCH:
        return group.members.get(member_id, Member(member_id))
    member = known_member(group, member_id)
    _check_epoch(member, request.epoch)
    return member


def _check_epoch(member: Member, epoch: int) -> None:
    """The member is where it should be, or one epoch behind because an answer was lost."""
    if epoch == member.epoch or epoch == member.previous_epoch:
        return
    known = f"than the one known by the group coordinator ({member.epoch})"
    if epoch > member.epoch:
        reason = f"a greater member epoch ({epoch}) {known}"
    else:
        reason = (
            f"a smaller member epoch ({epoch}) {known}, and it does not match the previous member"
            f" epoch ({member.previous_epoch})"
        )
    raise ApiError(
        ErrorCode.fenced_member_epoch,
        f"The share group member has {reason}. The member must abandon all its partitions and"
        " rejoin.",
    )


def _updated(member: Member, request: HeartbeatRequest) -> Member:
    topics = request.subscribed_topics
    return member._replace(
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        subscribed_topics=member.subscribed_topics if topics is None else topics,
        client_id=request.client_id,
        client_host=request.client_host,
    )


def _names_after(group: ShareGroup, before: Member, after: Member) -> Collection[str]:
    """All topics that the group subscribes to then."""
    had = group.members.get(before.member_id)
    old = frozenset() if had is None else had.subscribed_topics
    if old == after.subscribed_topics:
        return group.subscribers
    return (group.subscribers - Counter(old)).keys() | after.subscribed_topics


def _next_epoch(
    group: ShareGroup,
    names: Collection[str],
    topics: Topics,
    records: list[ShareRecord],
    *,
    bumps: bool,
) -> int:
    if not bumps and group.checked_version == topics.version:
        return group.epoch
    metadata_hash = topics.metadata_hash(names)
    if not bumps and metadata_hash == group.metadata_hash:
        group.checked_version = topics.version
        return group.epoch
    records.append(group_record(group.group_id, group.epoch + 1, metadata_hash))
    return group.epoch + 1


def _target(
    group: ShareGroup,
    epoch: int,
    after: Member,
    topics: Topics,
    step: Step,
    records: list[ShareRecord],
) -> tuple[int, Partitions]:
    """For which epoch, and what the member is to read; computed now if it is time."""
    interval_ms = step.settings.assignment_interval_ms
    if epoch <= group.target_epoch or not may_assign(
        group.target_timestamp_ms, interval_ms, step.now_ms
    ):
        return group.target_epoch, group.target_of(after.member_id)
    new = compute_target(group, epoch, after, topics, step.now_ms)
    records += new.records
    note_assigned(group, epoch, new.members, new.records, step)
    return epoch, new.partitions


def _reconciled(
    member: Member, target_epoch: int, target: Partitions, topics: Topics, *, has_changed: bool
) -> Member:
    """Kafka's ShareGroupAssignmentBuilder."""
    if member.is_reconciled_to(target_epoch) and not has_changed:
        return member
    subscribed = topics.ids(member.subscribed_topics)
    assigned = {topic: numbers for topic, numbers in target.items() if topic in subscribed}
    if member.epoch == target_epoch:
        return member._replace(assigned=assigned)
    return member._replace(
        epoch=target_epoch,
        previous_epoch=member.epoch,
        state=MemberState.STABLE,
        assigned=assigned,
    )


def _to_initialize(
    group: ShareGroup,
    epoch: int,
    names: Collection[str],
    topics: Topics,
    step: Step,
    records: list[ShareRecord],
) -> StatesToInitialize | None:
    if not records and group.initialized_version == topics.version:
        return None
    retry_ms = step.settings.initialize_retry_interval_ms
    begun = missing(group, names, topics, retry_ms, step.now_ms)
    if not begun:
        if not records and not group.states.initializing:
            group.initialized_version = topics.version
        return None
    records.append(states_record(group.group_id, beginning(group.states, begun)))
    offsets = {
        topic_id: dict.fromkeys(sorted(begun[topic_id].partitions), NO_OFFSET)
        for topic_id in sorted(begun, key=java_order)
    }
    return StatesToInitialize(epoch, offsets)
