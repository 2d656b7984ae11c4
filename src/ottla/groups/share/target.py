"""The target assignment of a share group: computed for an epoch, for all members at once.

Only partitions whose state is initialized are assigned. Kafka's counterpart is
TargetAssignmentBuilder. Members are given to the assignor sorted by id.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from ottla.groups.consumer.assignors.spec import NO_PARTITIONS, GroupSpec, MemberSpec, Partitions
from ottla.groups.consumer.topics import Topics
from ottla.groups.newer_stored import TargetEpochKey, TargetEpochValue, TargetKey
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.member import Member
from ottla.groups.share.simple import assign
from ottla.groups.share.stored import ShareRecord, TargetValue


class NewTarget(NamedTuple):
    """What was computed: the records, and what the member is to read."""

    records: list[ShareRecord]
    partitions: Partitions
    members: list[Member]
    """All that there are then."""


def compute_target(
    group: ShareGroup, epoch: int, after: Member, topics: Topics, now_ms: int
) -> NewTarget:
    """The targets for this epoch, with records for those that differ; `after` is a member as it
    is now, perhaps a new one.
    """
    members = sorted((group.members | {after.member_id: after}).items())
    ids: dict[frozenset[str], frozenset[UUID]] = {}
    specs: dict[str, MemberSpec] = {}
    for member_id, member in members:
        names = member.subscribed_topics
        if names not in ids:
            ids[names] = topics.ids(names)
        specs[member_id] = MemberSpec(ids[names], group.target_of(member_id))
    assignable = {
        topic_id: topic.partitions for topic_id, topic in group.states.initialized.items()
    }
    assignment = assign(GroupSpec(specs, {}, is_homogeneous=len(ids) == 1), assignable)
    records = []
    for member_id in specs:
        target = assignment.get(member_id, NO_PARTITIONS)
        if target != group.targets.get(member_id):
            key = TargetKey(group.group_id, member_id)
            records.append(ShareRecord(key, TargetValue(target)))
    key_of_all = TargetEpochKey(group.group_id)
    records.append(ShareRecord(key_of_all, TargetEpochValue(epoch, now_ms)))
    partitions = assignment.get(after.member_id, NO_PARTITIONS)
    return NewTarget(records, partitions, [member for _, member in members])
