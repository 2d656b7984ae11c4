"""The settings of consumer groups, under Kafka's names with units last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_GROUP_SIZE: Final = 5_000
"""Members of one group, whatever group.max.size allows: a generation begins for all at once, which
takes 6 us for each."""


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Kafka's defaults, but for the first rebalance of a group, which does not wait.

    The last ones are limits that Kafka does not have: a group's members, pending members and bytes
    are held in memory, and clients decide how many there are.
    """

    min_session_timeout_ms: int = 6_000
    """group.min.session.timeout.ms"""
    max_session_timeout_ms: int = 1_800_000
    """group.max.session.timeout.ms"""
    initial_rebalance_delay_ms: int = 0
    """group.initial.rebalance.delay.ms; Kafka waits 3 s"""
    max_size: int = 2**31 - 1
    """group.max.size (KIP-389)"""
    offset_metadata_max_bytes: int = 4096
    """offset.metadata.max.bytes"""
    offsets_retention_ms: int = 7 * 24 * 60 * 60_000
    """offsets.retention.minutes"""
    offsets_retention_check_interval_ms: int = 600_000
    """offsets.retention.check.interval.ms"""
    offset_commit_timeout_ms: int = 5_000
    """offsets.commit.timeout.ms"""
    new_member_join_timeout_ms: int = 300_000
    """A new member cannot send heartbeats before its first generation; fixed in Kafka too."""
    max_pending_members: int = 10_000
    """Members of one group that were given an id and have not come back with it yet."""
    member_metadata_max_bytes: int = 4 * 1024 * 1024
    """All protocols of one member together."""
    group_metadata_max_bytes: int = 1_048_588
    """message.max.bytes: a generation whose members have more together cannot be stored."""
    max_groups: int = 100_000
    """Groups of one partition of the offsets topic."""
    max_group_offsets: int = 1_000_000
    """Partitions that one group has offsets in."""
    max_commit_offsets: int = 20_000
    """Offsets of one commit. Its records are one batch: with Kafka's settings, whose largest batch
    has 1 MiB, it has room for at most 17,000."""
    max_transaction_offsets: int = 10_000
    """Partitions in which one transaction has pending offsets: its marker commits all at once."""
