"""The settings of consumer groups of KIP-848, under Kafka's names with units last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ottla.groups.consumer.assignors import range_assignor, uniform
from ottla.groups.consumer.assignors.spec import Assignor

ASSIGNORS: Final[dict[str, Assignor]] = {
    "uniform": uniform.assign,
    "range": range_assignor.assign,
}
"""group.consumer.assignors: the first one is the default."""
DEFAULT_ASSIGNOR: Final = "uniform"
BIDIRECTIONAL: Final = "bidirectional"
UPGRADE: Final = "upgrade"
DOWNGRADE: Final = "downgrade"
DISABLED: Final = "disabled"


@dataclass(frozen=True, slots=True)
class ConsumerGroupSettings:
    """Kafka's defaults; of one group, whose own settings (resource type 32) come first."""

    session_timeout_ms: int = 45_000
    """group.consumer.session.timeout.ms"""
    heartbeat_interval_ms: int = 5_000
    """group.consumer.heartbeat.interval.ms"""
    assignment_interval_ms: int = 1_000
    """group.consumer.assignment.interval.ms (KIP-1263)"""
    regex_refresh_interval_ms: int = 600_000
    """group.consumer.regex.refresh.interval.ms"""
    max_size: int = 2**31 - 1
    """group.consumer.max.size"""
    migration_policy: str = "bidirectional"
    """group.consumer.migration.policy: one of the four above"""
    max_classic_size: int = 2**31 - 1
    """group.max.size, of the classic group that this one may become"""

    @property
    def can_upgrade(self) -> bool:
        """A classic group with members becomes a consumer group."""
        return self.migration_policy in (BIDIRECTIONAL, UPGRADE)

    @property
    def can_downgrade(self) -> bool:
        """A consumer group that has only classic members left becomes a classic group."""
        return self.migration_policy in (BIDIRECTIONAL, DOWNGRADE)


_DEFAULTS: Final = ConsumerGroupSettings()


def default_settings(group: str) -> ConsumerGroupSettings:
    """Of a group without its own, at a broker without its own."""
    return _DEFAULTS
