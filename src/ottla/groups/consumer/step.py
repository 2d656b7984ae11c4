"""A step of the decider of consumer groups: its timers, and the events of those that expire."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ottla.groups.consumer.settings import ConsumerGroupSettings
from ottla.groups.consumer.stored import ConsumerRecord
from ottla.shards.step import Step as ShardStep


class TimerKey(NamedTuple):
    """One timer of a member; setting it again moves it."""

    kind: str
    """"session", or "rebalance": the time that it has to give up partitions."""
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


TimerEvent: TypeAlias = SessionExpired | RebalanceExpired
Step: TypeAlias = ShardStep[ConsumerRecord, TimerEvent, ConsumerGroupSettings]
