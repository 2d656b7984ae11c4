"""What a mirror is asked to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

DEFAULT_NAME: Final = "mirror"
DEFAULT_INSTANCE: Final = "1"
EXCLUDED_SETTINGS: Final = frozenset(
    {
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "message.timestamp.difference.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.after.max.ms",
        "message.timestamp.type",
        "unclean.leader.election.enable",
        "min.insync.replicas",
    }
)
"""As DefaultConfigPropertyFilter of MirrorMaker 2: they belong to the brokers of a cluster, and
with another timestamp type the records would lose their timestamps.
"""


MIN_COMMIT_EVERY_S: Final = 0.05
MAX_COMMIT_EVERY_S: Final = 10
"""A transaction that is older than DELIVERED_WITHIN_S is aborted; half of it is for the target."""
MIN_REFRESH_EVERY_S: Final = 1
MAX_REFRESH_EVERY_S: Final = 3600
"""The most that librdkafka takes for topic.metadata.refresh.interval.ms."""


@dataclass(frozen=True, slots=True)
class MirrorSpec:
    """A mirror. Patterns are RE2's and match the whole name."""

    name: str = DEFAULT_NAME
    """Keeps the mirrors into one cluster apart; instances of one mirror share it."""
    instance: str = DEFAULT_INSTANCE
    """Keeps the instances of a mirror apart; one with the same takes over."""
    topics: tuple[str, ...] = (".*",)
    exclude: tuple[str, ...] = ()
    prefix: str = ""
    """Of the names at the target."""
    groups: tuple[str, ...] = (".*",)
    """Empty: no offsets of groups are kept up."""
    exclude_groups: tuple[str, ...] = ()
    exclude_settings: frozenset[str] = field(default=EXCLUDED_SETTINGS)
    replication_factor: int | None = None
    """None: the target's default."""
    into_existing: bool = False
    """Whether topics at the target may have records that this mirror did not write."""
    with_acls: bool = False
    commit_every_s: float | None = None
    """The time of one transaction. None: as `commit_times` says."""
    refresh_every_s: float = 10.0
    groups_every_s: float = 5.0
