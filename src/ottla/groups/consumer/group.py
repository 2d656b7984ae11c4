"""A consumer group as its records have it; `apply` is the only way that it changes.

    Empty        no members
    Assigning    the group's epoch is ahead of its targets
    Reconciling  some member is not where its target is
    Stable       all are

Kafka's counterparts are ConsumerGroup and the replay methods of GroupMetadataManager.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum
from uuid import UUID

from ottla.groups.consumer.assignors.spec import NO_PARTITIONS, Partitions
from ottla.groups.consumer.member import NO_OWNED, Member, MemberState
from ottla.groups.consumer.reconcile import NO_OWNER
from ottla.groups.consumer.stored import (
    ConsumerRecord,
    CurrentValue,
    GroupValue,
    MemberValue,
    PartitionMetadataKey,
    RegexKey,
    RegexValue,
    TargetValue,
)
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


class GroupState(Enum):
    """The value is the name that clients get."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerGroup:
    """Members, targets and epochs of one group."""

    __slots__ = (
        "awaited_joins", "checked_version", "classic_count", "classic_protocols", "epoch",
        "group_id", "has_partition_metadata", "members",
        "metadata_hash", "owner_epochs", "partition_count", "regex_subscribers", "regex_version",
        "regexes", "revision", "static_members", "subscribers",
        "target_epoch", "target_timestamp_ms", "targets",
    )  # fmt: skip

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.target_epoch = FIRST_EPOCH
        self.target_timestamp_ms = 0
        self.members: dict[str, Member] = {}
        self.targets: dict[str, Partitions] = {}
        self.static_members: dict[str, str] = {}
        """Instance id to member id."""
        self.owner_epochs: dict[tuple[UUID, int], int] = {}
        """The epoch of the member that has the partition, also while it gives it up."""
        self.subscribers: Counter[str] = Counter()
        """How many members name each topic."""
        self.regexes: dict[str, RegexValue] = {}
        """Those that were matched against the topics of the cluster."""
        self.regex_subscribers: Counter[str] = Counter()
        """How many members have each regular expression."""
        self.regex_version: int | None = None
        """Of the topics that they were last matched against here; not stored."""
        self.has_partition_metadata = False
        self.checked_version: int | None = None
        """Of the topics that the metadata hash was last compared with; not stored."""
        self.partition_count: tuple[int, int] | None = None
        """A version of the cluster's topics, and how many partitions the group's topics had then;
        None: not counted since the group's topics changed. Not stored."""
        self.classic_count = 0
        """How many members speak the classic protocol."""
        self.classic_protocols: Counter[str] = Counter()
        """How many of them know each of its protocols."""
        self.awaited_joins: dict[str, None] = {}
        """Classic members that were told to join again; not stored."""
        self.revision = 0
        """Grows with each record."""

    @property
    def state(self) -> GroupState:
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.target_epoch:
            return GroupState.ASSIGNING
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return GroupState.STABLE
        return GroupState.RECONCILING

    def owner_epoch(self, topic: UUID, partition: int) -> int:
        """The epoch of the member that has the partition, or NO_OWNER."""
        return self.owner_epochs.get((topic, partition), NO_OWNER)

    def static_member(self, instance_id: str) -> Member | None:
        """The member with this instance id."""
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def target_of(self, member: Member) -> Partitions:
        """What the member is to have; a static one takes over its predecessor's."""
        member_id = member.member_id
        if member.instance_id is not None:
            member_id = self.static_members.get(member.instance_id, member_id)
        return self.targets.get(member_id, NO_PARTITIONS)

    def topics_of(self, member: Member) -> frozenset[str]:
        """The names that it subscribes to; a regular expression counts once it is resolved."""
        resolved = self.regexes.get(member.subscribed_regex or "")
        return member.subscribed_topics.union(() if resolved is None else resolved.topics)

    def is_subscribed(self, topic: str) -> bool:
        """Whether a member reads the topic, by name or by a resolved regular expression."""
        return topic in self.subscribers or any(
            _is_in(topic, resolved.topics) for resolved in self.regexes.values()
        )

    def supports_classic(self, protocols: Iterable[str]) -> bool:
        """Whether all classic members know one of these protocols."""
        return any(self.classic_protocols[name] == self.classic_count for name in protocols)

    def copied(self) -> ConsumerGroup:
        """The group as it is now."""
        copy = ConsumerGroup(self.group_id)
        for name in self.__slots__:
            value = getattr(self, name)
            setattr(copy, name, value.copy() if isinstance(value, dict) else value)
        return copy

    # What the log has.

    def apply(self, record: ConsumerRecord) -> None:
        """Takes over one record of this group, while loading and ever after."""
        key, value = record
        self.revision += 1
        match key:
            case GroupKey():
                self._apply_group(value if isinstance(value, GroupValue) else GroupValue(0))
            case PartitionMetadataKey():
                self.has_partition_metadata = value is not None
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
            case RegexKey():
                self.partition_count = None
                if isinstance(value, RegexValue):
                    self.regexes[key.regex] = value
                else:
                    self.regexes.pop(key.regex, None)

    def _apply_group(self, value: GroupValue) -> None:
        self.epoch, self.metadata_hash = value

    def _apply_member(self, member_id: str, value: MemberValue | None) -> None:
        if value is not None:
            member = self.members.get(member_id, Member(member_id))
            self._update(
                member._replace(
                    **value._asdict() | {"subscribed_topics": frozenset(value.subscribed_topics)}
                )
            )
            return
        gone = self.members.pop(member_id, None)
        self.awaited_joins.pop(member_id, None)
        if gone is None:
            return
        self._forget(gone)
        self._release_instance(gone)

    def _apply_current(self, member_id: str, value: CurrentValue | None) -> None:
        if value is None:
            member = self.members.get(member_id)
            if member is not None:
                self._update(
                    member._replace(
                        epoch=NO_EPOCH,
                        previous_epoch=NO_EPOCH,
                        assigned=NO_OWNED,
                        pending_revocation=NO_OWNED,
                    )
                )
            return
        self._update(
            self.members.get(member_id, Member(member_id))._replace(
                epoch=value.epoch,
                previous_epoch=value.previous_epoch,
                state=MemberState.of(value.state),
                assigned=value.assigned,
                pending_revocation=value.pending_revocation,
            )
        )

    def _update(self, member: Member) -> None:
        old = self.members.get(member.member_id)
        if old is not None:
            self._forget(old)
            if old.instance_id != member.instance_id:
                self._release_instance(old)
        self.members[member.member_id] = member
        count = len(self.subscribers)
        self.subscribers.update(member.subscribed_topics)
        if len(self.subscribers) != count:
            self.partition_count = None
        if member.subscribed_regex:
            self.regex_subscribers[member.subscribed_regex] += 1
        if member.classic is not None:
            self.classic_count += 1
            self.classic_protocols.update({name for name, _ in member.classic.protocols})
        # There may be 100,000: nothing is called for each.
        owners, epoch = self.owner_epochs, member.epoch
        for part in (member.assigned, member.pending_revocation):
            for topic_id, partitions in part.items():
                for partition in partitions:
                    owners[topic_id, partition] = epoch
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def _release_instance(self, member: Member) -> None:
        """Its instance id is nobody's, unless another member has taken it over."""
        instance_id = member.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member.member_id:
            del self.static_members[instance_id]

    def _forget(self, member: Member) -> None:
        for topic in member.subscribed_topics:
            self.subscribers[topic] -= 1
            if not self.subscribers[topic]:
                del self.subscribers[topic]
                self.partition_count = None
        regex = member.subscribed_regex
        if regex:
            self.regex_subscribers[regex] -= 1
            if not self.regex_subscribers[regex]:
                del self.regex_subscribers[regex]
        if member.classic is not None:
            self.classic_count -= 1
            self.classic_protocols.subtract({name for name, _ in member.classic.protocols})
            self.classic_protocols += Counter()  # without those that nobody knows
        owners, epoch = self.owner_epochs, member.epoch
        for part in (member.assigned, member.pending_revocation):
            for topic_id, partitions in part.items():
                for partition in partitions:
                    key = topic_id, partition
                    # While a compacted log is read, another member may have it by now, in a later
                    # epoch.
                    if key in owners and owners[key] == epoch:
                        del owners[key]


def _is_in(name: str, names: Sequence[str]) -> bool:
    """Among sorted ones, of which there may be 10,000."""
    index = bisect_left(names, name)
    return index < len(names) and names[index] == name
