"""What a consumer group keeps in `__consumer_offsets`, as values.

As for classic groups (`ottla.groups.stored`) a record's value is the whole new state of the thing
that its key names, and no value removes it. `record_format` has the bytes.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ottla.groups.consumer.assignors.spec import Partitions
from ottla.groups.consumer.member import ClassicMetadata, OwnedPartitions
from ottla.groups.newer_stored import (
    CurrentKey,
    GroupKey,
    MemberKey,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
)


class GroupValue(NamedTuple):
    """ConsumerGroupMetadata: the group's epoch, and what it was computed from."""

    epoch: int
    metadata_hash: int = 0
    """Of the subscribed topics; another one bumps the epoch."""


class PartitionMetadataKey(NamedTuple):
    """ConsumerGroupPartitionMetadata, which came before the hash (until Kafka 4.0)."""

    group: str


class PartitionMetadataValue(NamedTuple):
    """That there is such a record. The next change removes it; its content no longer counts."""


class MemberValue(NamedTuple):
    """ConsumerGroupMemberMetadata: what a member says of itself."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topics: tuple[str, ...]
    """Sorted."""
    subscribed_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic: ClassicMetadata | None = None


class TargetValue(NamedTuple):
    """ConsumerGroupTargetAssignmentMember: what a member is to have."""

    partitions: Partitions


class CurrentValue(NamedTuple):
    """ConsumerGroupCurrentMemberAssignment: what a member has, and in which epoch it is."""

    epoch: int
    previous_epoch: int
    state: int
    """Of MemberState, or one that we do not know."""
    assigned: OwnedPartitions
    pending_revocation: OwnedPartitions


class RegexKey(NamedTuple):
    group: str
    regex: str


class RegexValue(NamedTuple):
    """ConsumerGroupRegularExpression: the topics that a regular expression matches."""

    topics: tuple[str, ...]
    """Sorted."""
    version: int
    """Of the cluster's metadata that it was matched against."""
    timestamp_ms: int


Key: TypeAlias = (
    GroupKey | PartitionMetadataKey | MemberKey | TargetEpochKey | TargetKey | CurrentKey | RegexKey
)
Value: TypeAlias = (
    GroupValue
    | PartitionMetadataValue
    | MemberValue
    | TargetEpochValue
    | TargetValue
    | CurrentValue
    | RegexValue
)


class ConsumerRecord(NamedTuple):
    """One record to append; `value` None is a tombstone."""

    key: Key
    value: Value | None
