"""What a coordinator keeps in `__consumer_offsets`, as values.

A record's key says what it is about, its value is the whole new state of that thing, and no value
(a tombstone) removes it: so the newest record of a key is enough, and the topic can be compacted.
`record_format` has the bytes.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias
from uuid import UUID

NO_LEADER_EPOCH = -1
NO_TIMESTAMP = -1


class OffsetCommitKey(NamedTuple):
    """The offset of one group in one partition of one topic."""

    group: str
    topic: str
    partition: int


class OffsetCommitValue(NamedTuple):
    """A committed offset: the next record that the group wants to read."""

    offset: int
    leader_epoch: int
    metadata: str
    """What the client stores with the offset; comes back as given."""
    commit_timestamp_ms: int
    expire_timestamp_ms: int = NO_TIMESTAMP
    """Only from OffsetCommit 2 to 4, whose clients chose a retention of their own (KIP-211)."""
    topic_id: UUID | None = None


class GroupMetadataKey(NamedTuple):
    """The members and generation of one group."""

    group: str


class MemberMetadata(NamedTuple):
    """One member of a generation; subscription and assignment are the clients' own bytes."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupMetadataValue(NamedTuple):
    """A generation that is stable with its assignment, or empty."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp_ms: int
    members: tuple[MemberMetadata, ...]


Key: TypeAlias = OffsetCommitKey | GroupMetadataKey
Value: TypeAlias = OffsetCommitValue | GroupMetadataValue


class CoordinatorRecord(NamedTuple):
    """One record to append; `value` None is a tombstone."""

    key: Key
    value: Value | None
