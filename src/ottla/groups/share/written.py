"""The records that a share group's decisions write. Kafka's GroupCoordinatorRecordHelpers."""

from __future__ import annotations

from ottla.groups.newer_stored import (
    CurrentKey,
    GroupKey,
    MemberKey,
    TargetEpochKey,
    keys_of_member,
)
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.member import Member
from ottla.groups.share.stored import (
    CurrentValue,
    GroupValue,
    MemberValue,
    ShareRecord,
    StatesKey,
    StatesValue,
)


def group_record(group: str, epoch: int, metadata_hash: int) -> ShareRecord:
    return ShareRecord(GroupKey(group), GroupValue(epoch, metadata_hash))


def member_record(group: str, member: Member) -> ShareRecord:
    """What the member says of itself."""
    topics = tuple(sorted(member.subscribed_topics))
    value = MemberValue(member.rack_id, member.client_id, member.client_host, topics)
    return ShareRecord(MemberKey(group, member.member_id), value)


def current_record(group: str, member: Member) -> ShareRecord:
    """Where the member is."""
    value = CurrentValue(member.epoch, member.previous_epoch, member.state, member.assigned)
    return ShareRecord(CurrentKey(group, member.member_id), value)


def states_record(group: str, states: StatesValue) -> ShareRecord:
    return ShareRecord(StatesKey(group), states)


def removal_records(group: str, member_id: str) -> list[ShareRecord]:
    """A member is gone."""
    return [ShareRecord(key, None) for key in keys_of_member(group, member_id)]


def group_removal(group: ShareGroup) -> list[ShareRecord]:
    """An empty group is gone."""
    assert not group.members, "only empty groups are removed"
    return [
        ShareRecord(TargetEpochKey(group.group_id), None),
        ShareRecord(StatesKey(group.group_id), None),
        ShareRecord(GroupKey(group.group_id), None),
    ]
