"""What newer groups keep alike in `__consumer_offsets`: consumer, share and streams groups.

Each has a group with an epoch, members, targets that are all for one epoch, and what each member
has now. What they keep under these keys is in the `stored` of their rooms; `newer_records` has the
bytes.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

FIRST_EPOCH: Final = 1
"""Of a group that nobody has joined yet, so that no member is in epoch 0 for long."""
NO_EPOCH: Final = -1
"""Of the targets of a group that has none."""
NO_TIMESTAMP: Final = 0


class GroupKey(NamedTuple):
    """The group's epoch, and what it was computed from."""

    group: str


class MemberKey(NamedTuple):
    """What a member says of itself."""

    group: str
    member: str


class TargetEpochKey(NamedTuple):
    group: str


class TargetEpochValue(NamedTuple):
    """The epoch that all targets are for, and when."""

    epoch: int
    timestamp_ms: int = NO_TIMESTAMP


class TargetKey(NamedTuple):
    """What a member is to have."""

    group: str
    member: str


class CurrentKey(NamedTuple):
    """What a member has, and in which epoch it is."""

    group: str
    member: str


OfMember: TypeAlias = CurrentKey | TargetKey | MemberKey


def keys_of_member(group: str, member: str) -> tuple[OfMember, ...]:
    """What is removed once a member is gone. Kafka's replay wants this order."""
    return CurrentKey(group, member), TargetKey(group, member), MemberKey(group, member)
