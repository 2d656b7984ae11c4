"""Members of a consumer group that speak the classic protocol (KIP-848, rolling upgrade).

They keep JoinGroup, SyncGroup, Heartbeat and LeaveGroup; the epoch of a member is its generation.
The coordinator assigns, so no member leads. A member that has to give up partitions, or may have
more, is told to join again by REBALANCE_IN_PROGRESS, and its JoinGroup is its step towards its
target, as the heartbeat is that of the others. Kafka's counterparts are the methods
classicGroup...ToConsumerGroup of GroupMetadataManager.

The group keeps in memory only who was told to join again: each has its rebalance timeout for it
once, however often it is told.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from uuid import UUID

from ottla.groups.classic.requests import (
    UNKNOWN_MEMBER_ID,
    HeartbeatRequest,
    JoinRequest,
    JoinResult,
    SyncRequest,
    SyncResult,
)
from ottla.groups.consumer.assignors.spec import Partitions
from ottla.groups.consumer.departure import known_member, known_static_member
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.heartbeat import advance, check_room, put_in_place
from ottla.groups.consumer.large import is_heavy
from ottla.groups.consumer.member import ClassicMetadata, Member, MemberState, OwnedPartitions
from ottla.groups.consumer.reconcile import NO_OWNER
from ottla.groups.consumer.requests import MAX_SUBSCRIBED_TOPICS
from ottla.groups.consumer.settings import DISABLED
from ottla.groups.consumer.step import Step
from ottla.groups.consumer.stored import ConsumerRecord
from ottla.groups.consumer.timers import (
    await_classic_join,
    await_classic_sync,
    await_heartbeat,
    forget_classic_join,
    forget_classic_sync,
)
from ottla.groups.consumer.topics import Topics
from ottla.groups.embedded_protocol import (
    Subscription,
    read_subscription,
    read_version,
    write_assignment,
)
from ottla.groups.subscription import CONSUMER_PROTOCOL_TYPE
from ottla.protocol.errors import ApiError, ErrorCode

MAX_METADATA_BYTES: Final = 256 << 10
"""Of one member. It is read each time it joins: 25 ms where it names one topic again and again."""


class Joining(NamedTuple):
    """A member that joins by the classic protocol."""

    before: Member
    """As it is in the group, new, or in place of a static one."""
    after: Member
    subscription: Subscription
    records: list[ConsumerRecord]
    """Those that put it in the place of a static one."""

    def owned(self, topics: Topics) -> Partitions:
        """What it says it owns, by topic id; topics that do not exist are left out."""
        named = self.subscription.owned.items()
        return {
            topics.by_name[topic].id: partitions
            for topic, partitions in named
            if topic in topics.by_name and partitions
        }


def joining(group: ConsumerGroup, request: JoinRequest, step: Step) -> Joining | JoinResult:
    """Who joins; a result for one that has to come back with its id. Raises ApiError."""
    if step.settings.migration_policy == DISABLED:
        raise ApiError(ErrorCode.inconsistent_group_protocol)
    is_unknown = request.member_id == UNKNOWN_MEMBER_ID
    new_id = request.new_consumer_id or request.new_member_id
    member_id = new_id if is_unknown else request.member_id
    check_room(group, member_id, request.group_instance_id, step)
    names = [name for name, _ in request.protocols]
    if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not group.supports_classic(names):
        raise ApiError(ErrorCode.inconsistent_group_protocol)
    if is_unknown and request.group_instance_id is None and request.requires_known_member_id:
        return JoinResult(ErrorCode.member_id_required, member_id)
    if sum(len(metadata) for _, metadata in request.protocols) > MAX_METADATA_BYTES:
        raise ApiError(ErrorCode.invalid_request)
    try:
        subscription = read_subscription(request.protocols[0][1])
    except ValueError:
        # As in Kafka, which throws an IllegalStateException.
        raise ApiError(ErrorCode.unknown_server_error) from None
    if len(subscription.topics) > MAX_SUBSCRIBED_TOPICS:
        raise ApiError(ErrorCode.invalid_request)
    records: list[ConsumerRecord] = []
    before = _member(group, request, member_id, records, step, is_unknown=is_unknown)
    after = before._replace(
        instance_id=request.group_instance_id or before.instance_id,
        rack_id=subscription.rack_id or before.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        subscribed_topics=subscription.topics,
        subscribed_regex="",
        client_id=request.client_id,
        client_host=request.client_host,
        classic=ClassicMetadata(request.session_timeout_ms, request.protocols),
    )
    return Joining(before, after, subscription, records)


def _member(
    group: ConsumerGroup,
    request: JoinRequest,
    member_id: str,
    records: list[ConsumerRecord],
    step: Step,
    *,
    is_unknown: bool,
) -> Member:
    instance_id = request.group_instance_id
    if instance_id is None:
        return group.members.get(member_id, Member(member_id))
    if not is_unknown:
        return known_static_member(group, instance_id, member_id)
    previous = group.static_member(instance_id)
    if previous is None:
        return group.members.get(member_id, Member(member_id))
    return put_in_place(group, previous, member_id, records, step)


def join(group: ConsumerGroup, joins: Joining, topics: Topics, step: Step) -> JoinResult:
    """The member is in the group, in the epoch that is its generation."""
    before, after = joins.before, joins.after
    assert after.classic is not None
    reconciled = advance(group, before, after, joins.owned(topics), topics, step, joins.records)
    step.records += joins.records
    member_id = after.member_id
    forget_classic_join(group.group_id, member_id, step)
    await_heartbeat(group.group_id, member_id, step, after.classic.session_timeout_ms)
    await_classic_sync(group.group_id, after, step)
    return joined(reconciled)


def is_large_join(group: ConsumerGroup, request: JoinRequest, topics: Topics) -> bool:
    """Whether this JoinGroup is decided on a copy of the group, by `join_copied`."""
    if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not request.protocols:
        return False
    metadata = request.protocols[0][1]
    if len(metadata) > MAX_METADATA_BYTES:
        return False
    instance_id = request.group_instance_id
    if instance_id is not None and group.classic_count == len(group.members) - 1:
        # It may take the place of the last member of the other protocol: a group to convert.
        return False
    try:
        return is_heavy(group, read_subscription(metadata).topics, topics)
    except ValueError:
        return False


def join_copied(
    request: JoinRequest, group: ConsumerGroup, topics: Topics, step: Step
) -> JoinResult:
    """JoinGroup in a copy of the group; raises ApiError."""
    joins = joining(group, request, step)
    return joins if isinstance(joins, JoinResult) else join(group, joins, topics, step)


def joined(member: Member) -> JoinResult:
    """What it is told: nobody leads."""
    assert member.classic is not None
    return JoinResult(
        ErrorCode.none,
        member.member_id,
        member.epoch,
        CONSUMER_PROTOCOL_TYPE,
        member.classic.protocols[0][0],
    )


def sync(group: ConsumerGroup, request: SyncRequest, topics: Topics, step: Step) -> SyncResult:
    """The member's assignment, in its own protocol; raises ApiError."""
    member, classic = _classic_member(group, request.member_id, request.group_instance_id)
    _check_generation(member, request.generation)
    protocol, metadata = classic.protocols[0]
    if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or request.protocol_name not in (
        None,
        protocol,
    ):
        raise ApiError(ErrorCode.inconsistent_group_protocol)
    if group.target_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        await_classic_join(group, member, step)
        raise ApiError(ErrorCode.rebalance_in_progress)
    forget_classic_sync(group.group_id, member.member_id, step)
    await_heartbeat(group.group_id, member.member_id, step, classic.session_timeout_ms)
    assignment = write_assignment(
        read_version(metadata),
        named_partitions(member.assigned, member.subscribed_topics, topics),
    )
    return SyncResult(ErrorCode.none, request.protocol_type, request.protocol_name, assignment)


def named_partitions(
    partitions: OwnedPartitions | Partitions, names: frozenset[str], topics: Topics
) -> list[tuple[str, list[int]]]:
    """By the names of the topics that a member subscribes to; others do not exist any more."""
    by_id: dict[UUID, str] = {
        topics.by_name[name].id: name for name in names if name in topics.by_name
    }
    return [
        (by_id[topic], list(numbers)) for topic, numbers in partitions.items() if topic in by_id
    ]


def heartbeat(group: ConsumerGroup, request: HeartbeatRequest, step: Step) -> ErrorCode:
    """Extends the member's session; REBALANCE_IN_PROGRESS makes it join again. Raises ApiError."""
    member, classic = _classic_member(group, request.member_id, request.group_instance_id)
    _check_generation(member, request.generation)
    await_heartbeat(group.group_id, member.member_id, step, classic.session_timeout_ms)
    if (
        member.epoch < group.target_epoch
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or (member.state is MemberState.UNRELEASED_PARTITIONS and not _waits(group, member))
        or _is_nobody_elses(group)
    ):
        await_classic_join(group, member, step)
        return ErrorCode.rebalance_in_progress
    return ErrorCode.none


def _is_nobody_elses(group: ConsumerGroup) -> bool:
    """The targets are to be computed, and no member of the consumer protocol will do it.

    Kafka tells such members nothing: where it may not convert the group back, what the last member
    of the consumer protocol had is read by nobody until some member joins.
    """
    return group.epoch > group.target_epoch and group.classic_count == len(group.members)


def _waits(group: ConsumerGroup, member: Member) -> bool:
    """Others have not given up yet what the member is to have."""
    for topic, partitions in group.target_of(member).items():
        assigned = member.assigned.get(topic, {})
        for partition in partitions:
            if partition not in assigned and group.owner_epoch(topic, partition) != NO_OWNER:
                return True
    return False


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> tuple[Member, ClassicMetadata]:
    """Raises ApiError (UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID)."""
    if instance_id is None:
        member = known_member(group, member_id)
    else:
        member = known_static_member(group, instance_id, member_id)
    if member.classic is None:
        raise ApiError(ErrorCode.unknown_member_id)
    return member, member.classic


def _check_generation(member: Member, generation: int) -> None:
    if generation != member.epoch:
        raise ApiError(ErrorCode.illegal_generation)
