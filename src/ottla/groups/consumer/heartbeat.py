"""A heartbeat of a member: what it says is stored, and it gets to know what it is to do.

1. The member is new or says something new: its record. Another subscription, other topics, or
   another assignor that most members ask for: the group gets into a new epoch.
2. The group's epoch is ahead of its targets: they are computed, at most once per interval.
3. The member takes a step towards its target (`reconcile`).

Kafka's counterpart is GroupMetadataManager.consumerGroupHeartbeat.
"""

from __future__ import annotations

from typing import TypeVar

from ottla.groups.consumer import regexes
from ottla.groups.consumer.assignors.spec import Partitions
from ottla.groups.consumer.departure import known_member, known_static_member, leave
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import (
    JOIN_EPOCH,
    STATIC_LEAVE_EPOCH,
    Member,
    OwnedPartitions,
    partitions_of,
)
from ottla.groups.consumer.noted import note_assigned, note_change, note_reached
from ottla.groups.consumer.reconcile import FencedMemberError, Target, reconcile
from ottla.groups.consumer.requests import NOT_GIVEN, HeartbeatRequest, HeartbeatResult
from ottla.groups.consumer.step import Step
from ottla.groups.consumer.stored import (
    ConsumerRecord,
    GroupValue,
    PartitionMetadataKey,
    TargetValue,
)
from ottla.groups.consumer.subscription import Change, changes_assignor, subscribed_names
from ottla.groups.consumer.target import compute_target, may_assign
from ottla.groups.consumer.timers import await_heartbeat, await_revocation, forget
from ottla.groups.consumer.topics import Topics
from ottla.groups.consumer.written import current_record, member_record, removal_records
from ottla.groups.newer_stored import GroupKey, TargetKey
from ottla.protocol.errors import ApiError, ErrorCode

T = TypeVar("T")


def heartbeat(
    group: ConsumerGroup, request: HeartbeatRequest, topics: Topics, step: Step
) -> HeartbeatResult:
    """Answers a checked request (`requests.check`); raises ApiError where it is refused."""
    if request.epoch < JOIN_EPOCH:
        return leave(group, request, topics, step)
    check_room(group, request.member_id, request.instance_id, step)
    records: list[ConsumerRecord] = []
    before = _subscribe(group, request, records, step)
    after = _updated(before, request)
    reconciled = advance(group, before, after, request.owned, topics, step, records)
    await_heartbeat(group.group_id, after.member_id, step)
    step.records += records
    is_told = request.is_full or not reconciled.has_same_partitions(before)
    return HeartbeatResult(
        reconciled.member_id,
        reconciled.epoch,
        step.settings.heartbeat_interval_ms,
        partitions_of(reconciled.assigned) if is_told else None,
        regexes.due(group, after, topics, step),
    )


def check_room(group: ConsumerGroup, member_id: str, instance_id: str | None, step: Step) -> None:
    """Raises ApiError(GROUP_MAX_SIZE_REACHED) for a member too many. A static member that comes
    back under another id takes its own place.
    """
    if instance_id in group.static_members:
        return
    if len(group.members) >= step.settings.max_size and member_id not in group.members:
        raise ApiError(
            ErrorCode.group_max_size_reached,
            f"The consumer group has reached its maximum capacity of {step.settings.max_size}"
            " members.",
        )


def advance(
    group: ConsumerGroup,
    before: Member,
    after: Member,
    owned: Partitions | None,
    topics: Topics,
    step: Step,
    records: list[ConsumerRecord],
) -> Member:
    """What a member says is stored, the group's epoch and targets follow, and the member takes a
    step; it is returned as it is then. `owned`: see `reconcile`. Raises ApiError.
    """
    if after != before:
        records.append(member_record(group.group_id, after))
    change = Change(before, after)
    regex = regexes.changed(group, before, after, records)
    bumps = change.changes_subscription or regex.moves_topics or changes_assignor(group, change)
    epoch = _next_epoch(group, change, topics, records, bumps=bumps)
    if records:
        note_change(group, change, epoch, topics, step, bumps=bumps)
    target_epoch, target = _target(group, epoch, change, topics, step, records)
    reconciled = after
    has_changed = change.changes_subscription or regex.has_changed
    if has_changed or not after.is_reconciled_to(target_epoch):
        # Only now, as the member may subscribe to thousands.
        subscribed = topics.ids(group.topics_of(after))
        way = Target(target_epoch, target, subscribed, has_changed)
        reconciled = _reconciled(group, after, way, owned)
    if reconciled != after:
        records.append(current_record(group.group_id, reconciled))
        if reconciled.classic is None:
            # Of a classic member, its next JoinGroup and SyncGroup are awaited.
            await_revocation(group.group_id, reconciled, step)
        if reconciled.is_reconciled_to(target_epoch):
            note_reached(group, reconciled, step)
    return reconciled


def _subscribe(
    group: ConsumerGroup, request: HeartbeatRequest, records: list[ConsumerRecord], step: Step
) -> Member:
    """The member as it is, new, or in place of a static one that left for a while."""
    member_id = request.member_id or request.new_member_id
    is_joining = request.epoch == JOIN_EPOCH
    if request.instance_id is None:
        if is_joining:
            member = group.members.get(member_id, Member(member_id))
        else:
            member = known_member(group, member_id)
        _check_epoch(member, request)
        return member
    if not is_joining:
        member = known_static_member(group, request.instance_id, member_id)
        _check_epoch(member, request)
        return member
    previous = group.static_member(request.instance_id)
    if previous is None:
        return group.members.get(member_id, Member(member_id))
    if previous.epoch != STATIC_LEAVE_EPOCH and previous.classic is None:
        raise ApiError(
            ErrorCode.unreleased_instance_id,
            f"Static member {member_id} with instance id {request.instance_id} cannot join the"
            f" group because the instance id is owned by {previous.member_id} member.",
        )
    return put_in_place(group, previous, member_id, records, step)


def put_in_place(
    group: ConsumerGroup,
    previous: Member,
    member_id: str,
    records: list[ConsumerRecord],
    step: Step,
) -> Member:
    """A static member comes back under another id."""
    member = previous._replace(member_id=member_id, epoch=0, previous_epoch=0)
    group_id = group.group_id
    target = group.target_of(previous)
    forget(group_id, previous.member_id, step)
    records += removal_records(group_id, previous.member_id)
    records.append(member_record(group_id, member))
    records.append(ConsumerRecord(TargetKey(group_id, member_id), TargetValue(target)))
    records.append(current_record(group_id, member))
    return member


def _check_epoch(member: Member, request: HeartbeatRequest) -> None:
    """The member is where it should be, or one epoch behind because an answer was lost.

    One that joins again has given up everything, wherever it was.
    """
    if request.epoch == JOIN_EPOCH:
        return
    if request.epoch > member.epoch:
        raise _fenced("greater", request.epoch, member.epoch)
    if request.epoch < member.epoch and (
        request.epoch != member.previous_epoch or not _is_within(request.owned, member.assigned)
    ):
        raise _fenced("smaller", request.epoch, member.epoch)


def _is_within(owned: Partitions | None, assigned: OwnedPartitions) -> bool:
    return owned is not None and all(
        topic in assigned and partitions <= assigned[topic].keys()
        for topic, partitions in owned.items()
    )


def _fenced(word: str, received: int, known: int) -> ApiError:
    return ApiError(
        ErrorCode.fenced_member_epoch,
        f"The consumer group member has a {word} member epoch ({received}) than the one known by"
        f" the group coordinator ({known}). The member must abandon all its partitions and rejoin.",
    )


def _given(value: T | None, known: T) -> T:
    return known if value is None else value


def _updated(member: Member, request: HeartbeatRequest) -> Member:
    timeout_ms = request.rebalance_timeout_ms
    return member._replace(
        instance_id=_given(request.instance_id, member.instance_id),
        rack_id=_given(request.rack_id, member.rack_id),
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == NOT_GIVEN else timeout_ms,
        server_assignor=_given(request.server_assignor, member.server_assignor),
        subscribed_topics=_given(request.subscribed_topics, member.subscribed_topics),
        subscribed_regex=_given(request.subscribed_regex, member.subscribed_regex),
        client_id=request.client_id,
        client_host=request.client_host,
        classic=None,
    )


def _next_epoch(
    group: ConsumerGroup,
    change: Change,
    topics: Topics,
    records: list[ConsumerRecord],
    *,
    bumps: bool,
) -> int:
    """The group's epoch, a new one where topics changed, or what members ask for (`bumps`)."""
    if not bumps and group.checked_version == topics.version:
        return group.epoch
    metadata_hash = topics.metadata_hash(subscribed_names(group, change))
    epoch = group.epoch
    if bumps or metadata_hash != group.metadata_hash:
        epoch += 1
        value = GroupValue(epoch, metadata_hash)
        records.append(ConsumerRecord(GroupKey(group.group_id), value))
    else:
        group.checked_version = topics.version
    if group.has_partition_metadata:
        records.append(ConsumerRecord(PartitionMetadataKey(group.group_id), None))
    return epoch


def is_epoch_due(group: ConsumerGroup, before: Member, after: Member, topics: Topics) -> bool:
    """Whether the targets are not those that the group is to have once this member has changed."""
    change = Change(before, after)
    return (
        group.epoch > group.target_epoch
        or change.changes_subscription
        or changes_assignor(group, change)
        or topics.metadata_hash(subscribed_names(group, change)) != group.metadata_hash
    )


def _target(
    group: ConsumerGroup,
    epoch: int,
    change: Change,
    topics: Topics,
    step: Step,
    records: list[ConsumerRecord],
) -> tuple[int, Partitions]:
    """For which epoch, and what the member is to have; computed now if it is time."""
    after = change.after
    assert after is not None
    target_epoch, partitions = group.target_epoch, group.target_of(after)
    interval_ms = step.settings.assignment_interval_ms
    if epoch > target_epoch and may_assign(group.target_timestamp_ms, interval_ms, step.now_ms):
        new = compute_target(group, epoch, change, topics, step.now_ms)
        records += new.records
        note_assigned(group, epoch, new.members, new.records, after, step)
        target_epoch, partitions = epoch, new.partitions
    return target_epoch, partitions


def _reconciled(
    group: ConsumerGroup, member: Member, target: Target, owned: Partitions | None
) -> Member:
    try:
        return reconcile(member, target, group.owner_epoch, owned)
    except FencedMemberError as error:
        raise ApiError(ErrorCode.fenced_member_epoch, str(error)) from error
