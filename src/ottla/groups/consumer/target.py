"""The target assignment of a group: computed for an epoch, for all members at once.

Kafka's counterpart is TargetAssignmentBuilder. Members are given to the assignor sorted by id.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from ottla.groups.consumer.assignors.spec import NO_PARTITIONS, GroupSpec, MemberSpec, Partitions
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import Member
from ottla.groups.consumer.settings import ASSIGNORS
from ottla.groups.consumer.stored import ConsumerRecord, TargetValue
from ottla.groups.consumer.subscription import (
    Change,
    is_homogeneous,
    members_after,
    preferred_assignor,
    subscribed_names,
)
from ottla.groups.consumer.topics import Topics
from ottla.groups.newer_stored import TargetEpochKey, TargetEpochValue, TargetKey


class NewTarget(NamedTuple):
    """What was computed: the records, and what the changing member is to have."""

    records: list[ConsumerRecord]
    partitions: Partitions
    members: list[Member]
    """All that there are then."""


def may_assign(last_ms: int, interval_ms: int, now_ms: int) -> bool:
    """Whether the last computation is long enough ago (KIP-1263). `last_ms` 0: there was none.

    A clock that was set back does not make members wait (Kafka waits until it has caught up).
    """
    return not last_ms or not interval_ms or not last_ms <= now_ms < last_ms + interval_ms


def compute_target(
    group: ConsumerGroup, epoch: int, change: Change, topics: Topics, now_ms: int
) -> NewTarget:
    """The targets for this epoch, with records for those that differ."""
    after = change.after
    assert after is not None, "targets are computed when a member sends a heartbeat"
    members = members_after(group, change)
    targets = group.targets
    are_alike = is_homogeneous(members)
    ids: dict[frozenset[str], frozenset[UUID]] = {}
    subscribed: frozenset[UUID] | None = None
    specs: dict[str, MemberSpec] = {}
    for member in members:
        if subscribed is None or not are_alike:
            names = group.topics_of(member)
            if names not in ids:
                ids[names] = topics.ids(names)
            subscribed = ids[names]
        member_id = member.member_id
        held = targets.get(member_id, NO_PARTITIONS)
        if member is after:
            held = group.target_of(member)
        specs[member_id] = MemberSpec(subscribed, held, member.instance_id)
    counts = topics.partition_counts(subscribed_names(group, change))
    assignment = ASSIGNORS[preferred_assignor(members)](GroupSpec(specs, counts, are_alike))
    records = []
    for member_id in specs:
        target = assignment.get(member_id, NO_PARTITIONS)
        had = targets.get(member_id)
        # Most members keep what they have.
        if target is not had and target != had:
            records.append(
                ConsumerRecord(TargetKey(group.group_id, member_id), TargetValue(target))
            )
    records.append(ConsumerRecord(TargetEpochKey(group.group_id), TargetEpochValue(epoch, now_ms)))
    return NewTarget(records, assignment.get(after.member_id, NO_PARTITIONS), members)
