"""A step of the groups' shard: its timers, and the events of those that expire."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ottla.groups.consumer.step import ClassicExpired, RebalanceExpired, SessionExpired
from ottla.groups.records import Record
from ottla.groups.settings import GroupSettings
from ottla.groups.streams.step import FirstAssignmentDue
from ottla.shards.step import Step as ShardStep


class TimerKey(NamedTuple):
    """One timer; setting it again moves it."""

    kind: str
    """"heartbeat" (one a member), "join" or "sync" (one a group): none that consumer groups have,
    whose keys have the same fields and so are equal to these."""
    group: str
    member: str = ""


class HeartbeatExpired(NamedTuple):
    """A member sent no heartbeat for its session timeout."""

    group: str
    member: str


class JoinExpired(NamedTuple):
    """The members had the group's rebalance timeout to join again."""

    group: str


class InitialDelayExpired(NamedTuple):
    """A new group waited for more members; `remaining_ms` is how much longer it may wait."""

    group: str
    delay_ms: int
    remaining_ms: int


class SyncExpired(NamedTuple):
    """The members had the group's rebalance timeout to ask for their assignment."""

    group: str
    generation: int


TimerEvent: TypeAlias = (
    HeartbeatExpired
    | JoinExpired
    | InitialDelayExpired
    | SyncExpired
    | SessionExpired
    | RebalanceExpired
    | ClassicExpired
    | FirstAssignmentDue
)
"""Before the last one, three of consumer groups (KIP-848); the last one is of streams groups."""
Step: TypeAlias = ShardStep[Record, TimerEvent, GroupSettings]
