"""The records that a streams group's decisions write. Kafka's StreamsCoordinatorRecordHelpers."""

from __future__ import annotations

from typing import Any

from ottla.groups.newer_stored import (
    CurrentKey,
    GroupKey,
    MemberKey,
    TargetEpochKey,
    TargetKey,
    keys_of_member,
)
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import Member
from ottla.groups.streams.stored import (
    CurrentValue,
    GroupValue,
    MemberValue,
    StreamsRecord,
    TargetValue,
    TopologyKey,
    TopologyValue,
)
from ottla.groups.streams.topology import Topology


def topology_record(group: str, topology: Topology) -> StreamsRecord:
    return StreamsRecord(TopologyKey(group), TopologyValue(topology))


def member_record(group: str, member: Member) -> StreamsRecord:
    """What the member says of itself."""
    value = MemberValue(*(getattr(member, name) for name in MemberValue._fields))
    return StreamsRecord(MemberKey(group, member.member_id), value)


def current_record(group: str, member: Member) -> StreamsRecord:
    """Where the member is."""
    value = CurrentValue(*(getattr(member, name) for name in CurrentValue._fields))
    return StreamsRecord(CurrentKey(group, member.member_id), value)


def next_epoch_record(group: StreamsGroup) -> StreamsRecord:
    """The group gets into its next epoch, and nothing else changes."""
    return _group_record(group, epoch=group.epoch + 1)


def _group_record(group: StreamsGroup, **changes: Any) -> StreamsRecord:
    value = GroupValue(
        group.epoch,
        group.metadata_hash,
        group.validated_topology_epoch,
        group.assignment_configs,
        group.described_epoch,
        group.undescribable_epoch,
    )
    return StreamsRecord(GroupKey(group.group_id), value._replace(**changes))


def described_records(group: StreamsGroup, description: bytes) -> list[StreamsRecord]:
    """The group has the description of its topology."""
    topology = group.topology
    assert topology is not None
    value = TopologyValue(topology, description)
    return [
        StreamsRecord(TopologyKey(group.group_id), value),
        _group_record(group, described_epoch=topology.epoch),
    ]


def undescribable_record(group: StreamsGroup, topology_epoch: int) -> StreamsRecord:
    """The description of that topology is refused for good: nobody is asked for it again."""
    return _group_record(group, undescribable_epoch=topology_epoch)


def removal_records(group: str, member_id: str) -> list[StreamsRecord]:
    """A member is gone."""
    return [StreamsRecord(key, None) for key in keys_of_member(group, member_id)]


def replacement_records(group: StreamsGroup, old: Member, member: Member) -> list[StreamsRecord]:
    """A static member comes back, perhaps under another id: it gets all that the old one had."""
    group_id = group.group_id
    target = TargetValue(group.target_of(old.member_id))
    return [
        *removal_records(group_id, old.member_id),
        member_record(group_id, member),
        StreamsRecord(TargetKey(group_id, member.member_id), target),
        current_record(group_id, member),
    ]


def group_removal(group: StreamsGroup) -> list[StreamsRecord]:
    """An empty group is gone."""
    assert not group.members, "only empty groups are removed"
    return [
        StreamsRecord(TargetEpochKey(group.group_id), None),
        StreamsRecord(GroupKey(group.group_id), None),
        StreamsRecord(TopologyKey(group.group_id), None),
    ]
