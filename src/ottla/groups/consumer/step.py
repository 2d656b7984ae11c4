"""A step of the decider of consumer groups: its timers, and the events of those that expire."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from ottla.groups.consumer.settings import ConsumerGroupSettings
from ottla.groups.consumer.stored import ConsumerRecord
from ottla.shards.step import Step as ShardStep

CLASSIC_JOIN: Final = "classic join"
CLASSIC_SYNC: Final = "classic sync"


class TimerKey(NamedTuple):
    """One timer of a member; setting it again moves it."""

    kind: str
    """"session", or "rebalance": the time that it has to give up partitions. Of a classic member
    also CLASSIC_JOIN and CLASSIC_SYNC."""
    group: str
    member: str


class SessionExpired(NamedTuple):
    """A member sent no heartbeat for the session timeout."""

    group: str
    member: str


class RebalanceExpired(NamedTuple):
    """A member did not leave this epoch within its rebalance timeout."""

    group: str
    member: str
    epoch: int


class ClassicExpired(NamedTuple):
    """A classic member did not join again, or did not ask for its assignment, within its rebalance
    timeout.
    """

    kind: str
    group: str
    member: str


TimerEvent: TypeAlias = SessionExpired | RebalanceExpired | ClassicExpired
Step: TypeAlias = ShardStep[ConsumerRecord, TimerEvent, ConsumerGroupSettings]
