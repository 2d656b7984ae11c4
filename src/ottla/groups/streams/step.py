"""A step of the decider of streams groups. The timers of members are those of consumer groups: an
id is that of one group.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ottla.groups.consumer.step import RebalanceExpired, SessionExpired
from ottla.groups.streams.settings import StreamsGroupSettings
from ottla.groups.streams.stored import StreamsRecord
from ottla.shards.step import Step as ShardStep


class FirstAssignmentDue(NamedTuple):
    """A group that had no members has waited for more of them."""

    group: str


TimerEvent: TypeAlias = SessionExpired | RebalanceExpired | FirstAssignmentDue
Step: TypeAlias = ShardStep[StreamsRecord, TimerEvent, StreamsGroupSettings]
