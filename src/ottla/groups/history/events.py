"""What deciders note of a group beside their step (`Step.committed`), as values.

    Caused     the group has to rebalance, or goes on with it, because of something
    Happened   something that makes nobody rebalance, but that people ask for
    Assigned   targets were computed (all but classic groups)
    Reached    a member is where its target is
    Completed  a generation has its assignment (classic groups)
    Emptied    the last members have gone
    Loaded     a coordinator has loaded these groups: what was under way is not known

They are handed on once everything before them is committed. `fold.py` makes histories of them, in
another thread: an event only refers to what the decider has already, and compares nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from ottla.groups.stored import GroupMetadataValue

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
SHARE: Final = "share"
STREAMS: Final = "streams"
Partitions: TypeAlias = Mapping[UUID, frozenset[int]] | Mapping[str, frozenset[int]]
"""By topic id; of a streams group by subtopology."""
NO_EPOCH: Final = -1
"""The event has nothing to do with one."""


class Why(Enum):
    """Why a group rebalances. The value is stored, and is what scripts get."""

    JOINED = "joined"
    JOINED_AGAIN = "joined_again"
    """The leader of a classic group, which asks for a rebalance by that."""
    LEFT = "left"
    REMOVED = "removed"
    """By an administrator (KIP-345)."""
    SESSION_EXPIRED = "session_expired"
    REBALANCE_TIMEOUT = "rebalance_timeout"
    """It did not join again, bring an assignment or give up partitions in time."""
    SUBSCRIPTION_CHANGED = "subscription_changed"
    TOPICS_CHANGED = "topics_changed"
    REGEX_MATCHED = "regex_matched"
    STATES_CHANGED = "states_changed"
    """Partitions that a share group may read by now."""
    SETTINGS_CHANGED = "settings_changed"
    SAID_OTHER = "said_other"
    """A member of a streams group says other things of itself."""
    REPLACED = "replaced"
    """A static member came back under another id, which fences the one before (KIP-345)."""
    UPGRADED = "upgraded"
    DOWNGRADED = "downgraded"
    NOT_STORED = "not_stored"
    """The leader's assignment could not be written."""
    TOO_LARGE = "too_large"
    """group.max.size is less than the group has members."""
    CAME_LATE = "came_late"
    """A member whose session had expired sent a heartbeat after all."""
    FENCED = "fenced"
    """It spoke for a member, or in an epoch, that it is not in any more."""


class Who(NamedTuple):
    """A member; also one that has gone."""

    member_id: str
    instance_id: str | None = None
    client_id: str = ""
    host: str = ""


class Cause(NamedTuple):
    """What happened, and to whom."""

    why: Why
    who: Who | None = None
    details: Sequence[str] = ()
    """Topics, each with what changed."""
    other_id: str = ""
    """The member id whose place it took."""
    waited_ms: int | None = None
    """How long it was silent, or had the time to do what it did not do."""
    reason: str = ""
    """What the client gave as its reason (KIP-800)."""


class Caused(NamedTuple):
    """`epoch`: the group's epoch or generation then. `lost`: what the members that have gone were
    to have, by member id.
    """

    group: str
    type: str
    epoch: int
    at_ms: int
    cause: Cause
    lost: Mapping[str, Partitions] = {}


class Happened(NamedTuple):
    group: str
    type: str
    epoch: int
    at_ms: int
    cause: Cause


class Assigned(NamedTuple):
    """`members`: the client id of all, by member id. `before`, `after`: the targets that change."""

    group: str
    type: str
    epoch: int
    at_ms: int
    members: Mapping[str, str]
    before: Mapping[str, Partitions]
    after: Mapping[str, Partitions]


class Reached(NamedTuple):
    group: str
    member_id: str
    epoch: int
    at_ms: int


class Completed(NamedTuple):
    """`before`: the record of the generation before, if there was one."""

    group: str
    at_ms: int
    before: GroupMetadataValue | None
    after: GroupMetadataValue


class Emptied(NamedTuple):
    group: str
    type: str
    epoch: int
    at_ms: int


class Loaded(NamedTuple):
    groups: Sequence[str]
    at_ms: int


Event: TypeAlias = Caused | Happened | Assigned | Reached | Completed | Emptied
"""What is about one group."""

_MEMBER_BYTES: Final = 100
_PARTITION_BYTES: Final = 50


def size_of(event: Event | Loaded) -> int:
    """About how many bytes the event keeps in memory beside itself, which the group may replace."""
    match event:
        case Completed():
            return sum(
                _MEMBER_BYTES + len(each.assignment) + len(each.subscription)
                for value in (event.before, event.after)
                if value is not None
                for each in value.members
            )
        case Assigned():
            changed = (*event.before.values(), *event.after.values())
            return _MEMBER_BYTES * len(event.members) + _size_of_all(changed)
        case Caused():
            return _size_of_all(event.lost.values())
        case _:
            return 0


def _size_of_all(targets: Iterable[Partitions]) -> int:
    return _PARTITION_BYTES * sum(len(its) for each in targets for its in each.values())
