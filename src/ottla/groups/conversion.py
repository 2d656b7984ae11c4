"""Groups with members that become groups of the other type (KIP-848): a rolling upgrade begins when
the first member joins a classic group by the consumer protocol, and ends when the last classic
member has gone; a rolling downgrade ends when the last member of the consumer protocol has gone.

The records of the old group are removed and those of the new one written in one batch, so a crash
leaves one of them. Kafka's counterparts are ConsumerGroup.fromClassicGroup and
ClassicGroup.fromConsumerGroup.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.member import Member as ClassicMember
from ottla.groups.classic_members import named_partitions
from ottla.groups.consumer.assignors.spec import NO_PARTITIONS, Partitions
from ottla.groups.consumer.departure import group_removal
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import ClassicMetadata, Member, MemberState
from ottla.groups.consumer.settings import ConsumerGroupSettings
from ottla.groups.consumer.stored import ConsumerRecord, GroupValue, TargetValue
from ottla.groups.consumer.topics import Topics
from ottla.groups.consumer.written import current_record, member_record
from ottla.groups.embedded_protocol import (
    read_assignment,
    read_subscription,
    read_version,
    write_assignment,
)
from ottla.groups.newer_stored import GroupKey, TargetEpochKey, TargetEpochValue, TargetKey
from ottla.groups.records import Record
from ottla.groups.stored import CoordinatorRecord, GroupMetadataKey
from ottla.groups.subscription import CONSUMER_PROTOCOL_TYPE
from ottla.protocol.errors import ApiError, ErrorCode

MAX_CONVERTED: Final = 600
"""Members, subscriptions of all of them, and PARTITIONS_AS_ONE of their partitions as one more:
converted in about 30 ms. Kafka has no such limit.
"""
PARTITIONS_AS_ONE: Final = 20
MAX_CONVERTED_BYTES: Final = 150_000
"""Of what all members said of themselves, and what they were assigned: it may name a topic again
and again. Read in about 15 ms.
"""
_TOO_LARGE: Final = (
    f"its members, their subscriptions, and one for each {PARTITIONS_AS_ONE} partitions are more "
    f"than {MAX_CONVERTED} together."
)


def check_upgrade(group: ClassicGroup, settings: ConsumerGroupSettings) -> None:
    """Raises ApiError(GROUP_ID_NOT_FOUND) where the group stays a classic one."""
    if not settings.can_upgrade:
        raise _no_upgrade(group, "online upgrade is disabled.")
    if not group.uses_consumer_protocol:
        raise _no_upgrade(group, "the group does not use the consumer embedded protocol.")
    if len(group.members) > settings.max_size:
        raise _no_upgrade(group, "the group size exceeds the consumer group maximum size.")


def _no_upgrade(group: ClassicGroup, why: str) -> ApiError:
    return ApiError(
        ErrorCode.group_id_not_found,
        f"Cannot upgrade classic group {group.group_id} to consumer group because {why}",
    )


def upgraded(group: ClassicGroup, topics: Topics) -> tuple[ConsumerGroup, list[ConsumerRecord]]:
    """The consumer group with the members, the generation as epoch, and the last assignment; and
    its records. Raises ApiError(GROUP_ID_NOT_FOUND).
    """
    protocol = group.protocol_name
    if protocol is None or group.supported.get(protocol) != len(group.members):
        # Members that have joined during a rebalance may not know that of the last generation.
        protocol = group.select_protocol()
    members: list[tuple[Member, Partitions]] = []
    size = partition_count = 0
    size_bytes = sum(
        len(member.assignment) + sum(map(len, member.protocols.values()))
        for member in group.members.values()
    )
    if size_bytes > MAX_CONVERTED_BYTES:
        raise _no_upgrade(
            group,
            f"the metadata and assignments of its members have {size_bytes:,} bytes, more than "
            f"{MAX_CONVERTED_BYTES:,}.",
        )
    for member in group.members.values():
        try:
            subscription = read_subscription(member.protocols[protocol])
            assignment = read_assignment(member.assignment)
        except ValueError:
            why = "the embedded consumer protocol is malformed."
            raise _no_upgrade(group, why) from None
        if assignment.user_data:
            raise _no_upgrade(
                group,
                "an unsupported custom assignor is in use. Please refer to the documentation or"
                " switch to a default assignor before re-attempting the upgrade.",
            )
        size += 1 + len(subscription.topics)
        partition_count += sum(map(len, assignment.partitions.values()))
        if size + partition_count // PARTITIONS_AS_ONE > MAX_CONVERTED:
            raise _no_upgrade(group, _TOO_LARGE)
        partitions = {
            topics.by_name[topic].id: numbers
            for topic, numbers in assignment.partitions.items()
            if topic in topics.by_name and numbers
        }
        upgraded_member = Member(
            member_id=member.member_id,
            instance_id=member.group_instance_id,
            rack_id=subscription.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topics=subscription.topics,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            classic=ClassicMetadata(member.session_timeout_ms, tuple(member.protocols.items())),
            epoch=group.generation,
            previous_epoch=group.generation,
            state=MemberState.STABLE,
            assigned={
                topic: dict.fromkeys(numbers, group.generation)
                for topic, numbers in partitions.items()
            },
        )
        members.append((upgraded_member, partitions))
    records = _records_of(group.group_id, group.generation, members, topics)
    consumers = ConsumerGroup(group.group_id)
    for record in records:
        consumers.apply(record)
    return consumers, records


def _records_of(
    group_id: str, epoch: int, members: Collection[tuple[Member, Partitions]], topics: Topics
) -> list[ConsumerRecord]:
    """In Kafka's order."""
    names = {name for member, _ in members for name in member.subscribed_topics}
    records = [member_record(group_id, member) for member, _ in members]
    value = GroupValue(epoch, topics.metadata_hash(names))
    records.append(ConsumerRecord(GroupKey(group_id), value))
    records += [
        ConsumerRecord(TargetKey(group_id, member.member_id), TargetValue(partitions))
        for member, partitions in members
    ]
    # At time 0: the next target does not wait for the assignment interval.
    records.append(ConsumerRecord(TargetEpochKey(group_id), TargetEpochValue(epoch)))
    records += [current_record(group_id, member) for member, _ in members]
    return records


def may_downgrade(
    group: ConsumerGroup,
    gone: Mapping[str, Member],
    settings: ConsumerGroupSettings,
    joining: Member | None = None,
) -> bool:
    """Whether the group becomes a classic one without these members (by id), and with the one that
    takes the place of one of them.
    """
    left = len(group.members) - len(gone)
    if any(member.classic is not None for member in gone.values()) or group.classic_count != left:
        return False
    size = left + (joining is not None)
    if not 0 < size <= settings.max_classic_size or not settings.can_downgrade:
        return False
    if size + group.subscribers.total() > MAX_CONVERTED:
        return False
    partition_count = sum(
        len(numbers) for target in group.targets.values() for numbers in target.values()
    )
    if size + group.subscribers.total() + partition_count // PARTITIONS_AS_ONE > MAX_CONVERTED:
        return False
    members = [*group.members.values(), *(() if joining is None else (joining,))]
    size_bytes = sum(
        len(metadata)
        for member in members
        if member.classic is not None
        for _, metadata in member.classic.protocols
    )
    return size_bytes <= MAX_CONVERTED_BYTES


class Downgraded(NamedTuple):
    """A consumer group as a classic one."""

    records: list[Record]
    protocols: Mapping[str, dict[str, bytes]]
    """Of each member: its record has only the one that was chosen."""
    must_rebalance: bool
    """Somebody has gone, or somebody has not given up what the targets give to others. Kafka only
    asks whether the targets are those of the newest epoch: then two members may have a partition
    until the next heartbeat.
    """


def downgraded(
    group: ConsumerGroup,
    gone: Collection[str],
    topics: Topics,
    now_ms: int,
    joining: Member | None = None,
) -> Downgraded:
    """The classic group with the members that are left, the epoch as generation, and their targets
    as assignment. `joining` takes the place and the target of the one with its instance id.
    """
    targets = dict(group.targets)
    members = [member for name, member in group.members.items() if name not in gone]
    if joining is not None:
        targets[joining.member_id] = group.target_of(joining)
        members.append(joining)
    classic = ClassicGroup(group.group_id, now_ms)
    classic.generation = group.epoch
    for member in members:
        classic.add(_classic_member(member))
    classic.protocol_name = protocol = classic.select_protocol()
    assignments = {}
    for member in members:
        metadata = classic.members[member.member_id].protocols[protocol]
        try:
            version = read_version(metadata)
        except ValueError:
            version = 0  # it was read when the member joined, but by another of its protocols
        named = named_partitions(
            targets.get(member.member_id, NO_PARTITIONS), member.subscribed_topics, topics
        )
        assignments[member.member_id] = write_assignment(version, named)
    value = classic.to_store(assignments, now_ms)
    records: list[Record] = [
        *group_removal(group),
        CoordinatorRecord(GroupMetadataKey(group.group_id), value),
    ]
    protocols = {name: member.protocols for name, member in classic.members.items()}
    is_behind = joining is None or any(
        not member.is_reconciled_to(group.epoch) for member in members if member is not joining
    )
    return Downgraded(records, protocols, is_behind)


def _classic_member(member: Member) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        CONSUMER_PROTOCOL_TYPE,
        dict(member.classic.protocols),
    )
