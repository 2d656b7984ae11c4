"""The settings of streams groups, under Kafka's names with units last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ottla.groups.settings import MAX_GROUP_SIZE

STANDBYS: Final = "num.standby.replicas"
"""The setting that an assignment depends on; it is stored with the group's epoch."""


@dataclass(frozen=True, slots=True)
class StreamsGroupSettings:
    """Kafka's defaults; of one group, whose own settings (resource type 32) come first."""

    session_timeout_ms: int = 45_000
    """group.streams.session.timeout.ms"""
    heartbeat_interval_ms: int = 5_000
    """group.streams.heartbeat.interval.ms"""
    assignment_interval_ms: int = 1_000
    """group.streams.assignment.interval.ms (KIP-1263)"""
    initial_rebalance_delay_ms: int = 3_000
    """group.streams.initial.rebalance.delay.ms"""
    num_standby_replicas: int = 0
    """group.streams.num.standby.replicas"""
    task_offset_interval_ms: int = 60_000
    """group.streams.task.offset.interval.ms"""
    acceptable_recovery_lag: int = 10_000
    """group.streams.acceptable.recovery.lag: records, of all changelogs of a task; told to members,
    and not used here, as in Apache Kafka 4.4"""
    max_size: int = MAX_GROUP_SIZE
    """group.streams.max.size"""

    @property
    def assignment_configs(self) -> tuple[tuple[str, str], ...]:
        """What a change of leads to another assignment."""
        return ((STANDBYS, str(self.num_standby_replicas)),)


def default_streams_settings(group: str) -> StreamsGroupSettings:
    """The same for every group."""
    return StreamsGroupSettings()
