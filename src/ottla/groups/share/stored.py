"""What a share group keeps in `__consumer_offsets`, as values.

As for consumer groups (`ottla.groups.consumer.stored`) a record's value is the whole new state of
the thing that its key names, and no value removes it. `record_format` has the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias
from uuid import UUID

from ottla.groups.consumer.assignors.spec import Partitions
from ottla.groups.newer_stored import (
    CurrentKey,
    GroupKey,
    MemberKey,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
)


class GroupValue(NamedTuple):
    """ShareGroupMetadata: the group's epoch, and what it was computed from."""

    epoch: int
    metadata_hash: int = 0
    """Of the subscribed topics; another one bumps the epoch."""


class MemberValue(NamedTuple):
    """ShareGroupMemberMetadata: what a member says of itself."""

    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topics: tuple[str, ...]
    """Sorted."""


class TargetValue(NamedTuple):
    """ShareGroupTargetAssignmentMember: what a member is to read."""

    partitions: Partitions


class CurrentValue(NamedTuple):
    """ShareGroupCurrentMemberAssignment: what a member reads, and in which epoch it is."""

    epoch: int
    previous_epoch: int
    state: int
    assigned: Partitions


class StateTopic(NamedTuple):
    """Partitions of one topic that have, or are about to have, state at the share coordinator."""

    name: str
    partitions: frozenset[int]


StateTopics: TypeAlias = Mapping[UUID, StateTopic]


class StatesKey(NamedTuple):
    group: str


class StatesValue(NamedTuple):
    """ShareGroupStatePartitionMetadata: of which partitions the share coordinator has state for
    this group. Only initialized ones are assigned to members.
    """

    initializing: StateTopics
    """The share coordinator was asked to begin; it may have."""
    initialized: StateTopics
    deleting: Mapping[UUID, str]
    """Topics, with their names, of which the share coordinator was asked to forget everything."""

    def __bool__(self) -> bool:
        return bool(self.initializing or self.initialized or self.deleting)


NO_STATES = StatesValue({}, {}, {})

Key: TypeAlias = GroupKey | MemberKey | TargetEpochKey | TargetKey | CurrentKey | StatesKey
Value: TypeAlias = (
    GroupValue | MemberValue | TargetEpochValue | TargetValue | CurrentValue | StatesValue
)


class ShareRecord(NamedTuple):
    """One record to append; `value` None is a tombstone."""

    key: Key
    value: Value | None
