"""A share group as its records have it; `apply` is the only way that it changes.

Empty without members, else Stable. Kafka's counterparts are ShareGroup and the replay methods of
GroupMetadataManager.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum

from ottla.groups.consumer.assignors.spec import NO_PARTITIONS, Partitions
from ottla.groups.consumer.member import MemberState
from ottla.groups.newer_stored import (
    FIRST_EPOCH,
    NO_EPOCH,
    CurrentKey,
    GroupKey,
    MemberKey,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
)
from ottla.groups.share.member import Member
from ottla.groups.share.stored import (
    NO_STATES,
    CurrentValue,
    GroupValue,
    MemberValue,
    ShareRecord,
    StatesKey,
    StatesValue,
    TargetValue,
)


class GroupState(Enum):
    """The value is the name that clients get."""

    EMPTY = "Empty"
    STABLE = "Stable"


class ShareGroup:
    """Members, targets and epochs of one group, and which partitions have state."""

    __slots__ = (
        "checked_version", "epoch", "group_id", "initialized_version", "members", "metadata_hash",
        "revision", "states", "states_since_ms", "subscribers", "target_epoch",
        "target_timestamp_ms", "targets",
    )  # fmt: skip

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.target_epoch = FIRST_EPOCH
        self.target_timestamp_ms = 0
        self.members: dict[str, Member] = {}
        self.targets: dict[str, Partitions] = {}
        self.subscribers: Counter[str] = Counter()
        """How many members name each topic."""
        self.states = NO_STATES
        self.states_since_ms = 0
        """When they last changed: the time of their record."""
        self.checked_version: int | None = None
        """Of the topics that the metadata hash was last compared with; not stored."""
        self.initialized_version: int | None = None
        """Of the topics of which every subscribed partition has state, and is some member's; not
        stored.
        """
        self.revision = 0
        """How many records it has taken over; not stored."""

    @property
    def state(self) -> GroupState:
        return GroupState.STABLE if self.members else GroupState.EMPTY

    def copied(self) -> ShareGroup:
        """The group as it is now."""
        copy = ShareGroup(self.group_id)
        for name in self.__slots__:
            value = getattr(self, name)
            setattr(copy, name, value.copy() if isinstance(value, dict) else value)
        return copy

    def target_of(self, member_id: str) -> Partitions:
        """What the member is to read."""
        return self.targets.get(member_id, NO_PARTITIONS)

    # What the log has.

    def apply(self, record: ShareRecord, timestamp_ms: int) -> None:
        """Takes over one record of this group, while loading and ever after."""
        key, value = record
        self.revision += 1
        match key:
            case GroupKey():
                assert isinstance(value, GroupValue), "the shard removes groups"
                self.epoch, self.metadata_hash = value
            case MemberKey():
                self._apply_member(key.member, value if isinstance(value, MemberValue) else None)
            case TargetEpochKey():
                if not isinstance(value, TargetEpochValue):
                    value = TargetEpochValue(NO_EPOCH)
                self.target_epoch, self.target_timestamp_ms = value
            case TargetKey():
                if isinstance(value, TargetValue):
                    self.targets[key.member] = value.partitions
                else:
                    self.targets.pop(key.member, None)
            case CurrentKey():
                self._apply_current(key.member, value if isinstance(value, CurrentValue) else None)
            case StatesKey():
                self.states = value if isinstance(value, StatesValue) else NO_STATES
                self.states_since_ms = timestamp_ms
        self.initialized_version = None

    def _apply_member(self, member_id: str, value: MemberValue | None) -> None:
        old = self.members.get(member_id)
        if old is not None:
            self.subscribers -= Counter(old.subscribed_topics)
        if value is None:
            self.members.pop(member_id, None)
            return
        member = (old or Member(member_id))._replace(
            **value._asdict() | {"subscribed_topics": frozenset(value.subscribed_topics)}
        )
        self.members[member_id] = member
        self.subscribers.update(member.subscribed_topics)

    def _apply_current(self, member_id: str, value: CurrentValue | None) -> None:
        member = self.members.get(member_id)
        if value is not None:
            self.members[member_id] = (member or Member(member_id))._replace(
                epoch=value.epoch,
                previous_epoch=value.previous_epoch,
                state=MemberState.of(value.state),
                assigned=value.assigned,
            )
        elif member is not None:
            self.members[member_id] = member._replace(
                epoch=NO_EPOCH, previous_epoch=NO_EPOCH, assigned=NO_PARTITIONS
            )
