"""What a streams group keeps in `__consumer_offsets`, as values.

As for consumer groups (`ottla.groups.consumer.stored`) a record's value is the whole new state of
the thing that its key names, and no value removes it. `record_format` has the bytes.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from ottla.groups.newer_stored import (
    CurrentKey,
    GroupKey,
    MemberKey,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
)
from ottla.groups.streams.member import Endpoint
from ottla.groups.streams.tasks import HeldTasks, Tasks
from ottla.groups.streams.topology import Topology

NOT_VALIDATED: Final = -1
"""Instead of a topology's epoch: its topics are not all there, or do not fit."""


NOT_DESCRIBED: Final = -1
"""Instead of a topology's epoch."""


class GroupValue(NamedTuple):
    """StreamsGroupMetadata: the group's epoch, and what it was computed from."""

    epoch: int
    metadata_hash: int = 0
    """Of the topics that the topology requires; another one bumps the epoch."""
    validated_topology_epoch: int = NOT_VALIDATED
    """Of the topology if all its topics are there."""
    assignment_configs: tuple[tuple[str, str], ...] | None = None
    """The settings of the last assignment, sorted."""
    described_epoch: int = NOT_DESCRIBED
    """Of the topology whose description is kept (KIP-1331)."""
    undescribable_epoch: int = NOT_DESCRIBED
    """Of the topology whose description is refused for good."""


class MemberValue(NamedTuple):
    """StreamsGroupMemberMetadata: what a member says of itself."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    topology_epoch: int
    process_id: str
    endpoint: Endpoint | None
    client_tags: tuple[tuple[str, str], ...]


class TargetValue(NamedTuple):
    """StreamsGroupTargetAssignmentMember: what a member is to have."""

    tasks: Tasks


class CurrentValue(NamedTuple):
    """StreamsGroupCurrentMemberAssignment: what a member has, and in which epoch it is."""

    epoch: int
    previous_epoch: int
    state: int
    assigned: HeldTasks
    pending_revocation: HeldTasks


class TopologyKey(NamedTuple):
    group: str


class TopologyValue(NamedTuple):
    """StreamsGroupTopology: what the first member brought."""

    topology: Topology
    description: bytes | None = None
    """Ottla's own: Kafka leaves it to a plug-in."""


Key: TypeAlias = GroupKey | MemberKey | TargetEpochKey | TargetKey | CurrentKey | TopologyKey
Value: TypeAlias = (
    GroupValue | MemberValue | TargetEpochValue | TargetValue | CurrentValue | TopologyValue
)


class StreamsRecord(NamedTuple):
    """One record to append; `value` None is a tombstone."""

    key: Key
    value: Value | None
