"""The settings of share groups, under Kafka's names with units last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ASSIGNOR: Final = "simple"
"""group.share.assignors: there is one."""


@dataclass(frozen=True, slots=True)
class ShareGroupSettings:
    """Kafka's defaults; of one group, whose own settings (resource type 32) come first."""

    session_timeout_ms: int = 45_000
    """group.share.session.timeout.ms"""
    heartbeat_interval_ms: int = 5_000
    """group.share.heartbeat.interval.ms"""
    assignment_interval_ms: int = 1_000
    """group.share.assignment.interval.ms (KIP-1263)"""
    initialize_retry_interval_ms: int = 30_000
    """group.share.initialize.retry.interval.ms"""
    max_size: int = 200
    """group.share.max.size"""


def default_share_settings(group: str) -> ShareGroupSettings:
    """The same for every group."""
    return ShareGroupSettings()
