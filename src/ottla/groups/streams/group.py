"""A streams group as its records have it; `apply` is the only way that changes.

    Empty        no members
    NotReady     the topology's topics are not all there, or do not fit
    Assigning    the group's epoch is ahead of its targets
    Reconciling  some member is not where its target is
    Stable       all are

Kafka's counterparts are StreamsGroup and the replay methods of GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

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
from ottla.groups.streams.configured import ConfiguredTopology
from ottla.groups.streams.member import Member, MemberState
from ottla.groups.streams.offsets import MemberTaskOffsets
from ottla.groups.streams.stored import (
    NOT_DESCRIBED,
    CurrentValue,
    GroupValue,
    MemberValue,
    StreamsRecord,
    TargetValue,
    TopologyKey,
    TopologyValue,
)
from ottla.groups.streams.tasks import NO_HELD, NO_TASKS, HeldTasks, TaskId, Tasks, each
from ottla.groups.streams.topology import Topology

NOBODY: Final[frozenset[str]] = frozenset()
NOBODY_SAID: Final[Mapping[str, MemberTaskOffsets]] = {}


class GroupState(Enum):
    """The value is the name that clients get."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class Compared(NamedTuple):
    """A topology as it was last compared with the topics of the cluster."""

    topics_version: int
    topology: Topology
    metadata_hash: int
    configured: ConfiguredTopology


class Asked(NamedTuple):
    """A member was asked to describe the topology."""

    topology_epoch: int
    times: int
    """How often one was asked before."""
    again_ms: int
    """When another one is, if none has."""


class Soft(NamedTuple):
    """What a group knows beside its records; a new coordinator begins without it."""

    compared: Compared | None = None
    endpoint_epoch: int = 0
    """Grows with each change of the tasks of a member that answers queries."""
    shutdown_by: str | None = None
    """The member that asked for the end of the whole application; until the group is empty."""
    is_delayed: bool = False
    """It waits for more members before its first assignment."""
    task_offsets: Mapping[str, MemberTaskOffsets] = NOBODY_SAID
    """What members last said of the states of their tasks; those that have not are not in it."""

    asked: Asked | None = None

    def merged(self, before: Soft, now: Soft) -> Soft:
        """This was decided from `before`, and `now` is what the group knows meanwhile: heartbeats
        that write no record, and the end of the delay, do not wait for a thread.
        """
        changes: dict[str, Any] = {
            name: value
            for name, value, former in zip(self._fields, now, before, strict=True)
            if value is not former
        }
        if "task_offsets" in changes:
            changes["task_offsets"] = dict(self.task_offsets) | {
                member: said
                for member, said in now.task_offsets.items()
                if said is not before.task_offsets.get(member)
            }
        return self._replace(**changes)

    def without(self, member_id: str, *, is_empty: bool) -> Soft:
        """Once the member is gone; `is_empty`: it was the last one."""
        soft = self._replace(shutdown_by=None) if is_empty else self
        if member_id in soft.task_offsets:
            left = {name: its for name, its in soft.task_offsets.items() if name != member_id}
            soft = soft._replace(task_offsets=left)
        return soft


class StreamsGroup:
    """Members, targets, topology and epochs of one group."""

    __slots__ = (
        "active_owners", "assignment_configs", "decided", "described_epoch", "description", "epoch",
        "group_id", "members", "metadata_hash", "readers", "revision", "soft",
        "standby_owners", "static_members", "target_epoch", "target_timestamp_ms",
        "targets", "topology", "undescribable_epoch", "validated_topology_epoch",
        "warmup_owners",
    )  # fmt: skip

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.validated_topology_epoch = 0
        self.assignment_configs: tuple[tuple[str, str], ...] = ()
        self.topology: Topology | None = None
        self.description: bytes | None = None
        """Of the topology, as `description.encode` has it."""
        self.described_epoch = NOT_DESCRIBED
        self.undescribable_epoch = NOT_DESCRIBED
        self.readers: Mapping[str, str] = {}
        """The subtopology that reads each topic."""
        self.target_epoch = FIRST_EPOCH
        self.target_timestamp_ms = 0
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        """The member of each instance id."""
        self.targets: dict[str, Tasks] = {}
        self.active_owners: dict[TaskId, str] = {}
        """The process that has each active task, also while it gives it up."""
        self.standby_owners: dict[TaskId, frozenset[str]] = {}
        """The processes that have each standby task."""
        self.warmup_owners: dict[TaskId, frozenset[str]] = {}
        self.soft = Soft()
        """Not stored."""
        self.decided: Soft | None = None
        """Of a copy that has decided in a thread: what the group knows then."""
        self.revision = 0
        """How many records it has taken over; not stored."""

    @property
    def state(self) -> GroupState:
        if not self.members:
            return GroupState.EMPTY
        topology = self.topology
        if topology is None or topology.epoch != self.validated_topology_epoch:
            return GroupState.NOT_READY
        if self.epoch > self.target_epoch:
            return GroupState.ASSIGNING
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return GroupState.STABLE
        return GroupState.RECONCILING

    def copied(self) -> StreamsGroup:
        """The group as it is now."""
        copy = StreamsGroup(self.group_id)
        for name in self.__slots__:
            value = getattr(self, name)
            setattr(copy, name, value.copy() if isinstance(value, dict) else value)
        return copy

    def static_member(self, instance_id: str) -> Member | None:
        """The member with this instance id."""
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member_id: str) -> Tasks:
        """What the member is to have."""
        return self.targets.get(member_id, NO_TASKS)

    def is_subscribed(self, topic: str) -> bool:
        """Whether members read the topic; no members read nothing."""
        return bool(self.members) and topic in self.readers

    # What the log has.

    def apply(self, record: StreamsRecord) -> None:
        """Takes over one record of this group, while loading and ever after."""
        key, value = record
        self.revision += 1
        match key:
            case GroupKey():
                assert isinstance(value, GroupValue), "the shard removes groups"
                self.epoch, self.metadata_hash, self.validated_topology_epoch = value[:3]
                self.assignment_configs = value.assignment_configs or ()
                self.described_epoch = value.described_epoch
                self.undescribable_epoch = value.undescribable_epoch
            case TopologyKey():
                self.topology, self.description = (
                    value if isinstance(value, TopologyValue) else (None, None)
                )
                self.readers = {} if self.topology is None else self.topology.readers()
            case MemberKey():
                self._apply_member(key.member, value if isinstance(value, MemberValue) else None)
            case TargetEpochKey():
                if not isinstance(value, TargetEpochValue):
                    value = TargetEpochValue(NO_EPOCH)
                self.target_epoch, self.target_timestamp_ms = value
            case TargetKey():
                if isinstance(value, TargetValue):
                    self.targets[key.member] = value.tasks
                else:
                    self.targets.pop(key.member, None)
            case CurrentKey():
                self._apply_current(key.member, value if isinstance(value, CurrentValue) else None)

    def _apply_member(self, member_id: str, value: MemberValue | None) -> None:
        old = self.members.get(member_id)
        if value is not None:
            self._update(old, (old or Member(member_id))._replace(**value._asdict()))
            return
        if old is not None:
            self._disown(old)
            self._release_instance(old)
            del self.members[member_id]
        self.soft = self.soft.without(member_id, is_empty=not self.members)

    def _apply_current(self, member_id: str, value: CurrentValue | None) -> None:
        old = self.members.get(member_id)
        if value is not None:
            self._update(
                old,
                (old or Member(member_id))._replace(
                    epoch=value.epoch,
                    previous_epoch=value.previous_epoch,
                    state=MemberState.of(value.state),
                    assigned=value.assigned,
                    pending_revocation=value.pending_revocation,
                ),
            )
        elif old is not None:
            self._update(
                old,
                old._replace(
                    epoch=NO_EPOCH,
                    previous_epoch=NO_EPOCH,
                    assigned=NO_HELD,
                    pending_revocation=NO_HELD,
                ),
            )

    def _update(self, old: Member | None, member: Member) -> None:
        if old is not None:
            self._disown(old)
            if old.instance_id != member.instance_id:
                self._release_instance(old)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        process = member.process_id
        for held in (member.assigned, member.pending_revocation):
            self.active_owners.update(dict.fromkeys(each(held.active), process))
            for owners, partitions in self._shared(held):
                for task in each(partitions):
                    owners[task] = owners.get(task, NOBODY) | {process}

    def _release_instance(self, member: Member) -> None:
        """Its instance id is nobody's, unless another member has taken it over."""
        instance_id = member.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member.member_id:
            del self.static_members[instance_id]

    def _disown(self, member: Member) -> None:
        process = member.process_id
        for held in (member.assigned, member.pending_revocation):
            for task in each(held.active):
                # Another process may have it by now.
                if self.active_owners.get(task) == process:
                    del self.active_owners[task]
            for owners, partitions in self._shared(held):
                for task in each(partitions):
                    left = owners.get(task, NOBODY) - {process}
                    if left:
                        owners[task] = left
                    else:
                        owners.pop(task, None)

    def _shared(
        self, held: HeldTasks
    ) -> tuple[tuple[dict[TaskId, frozenset[str]], Mapping[str, frozenset[int]]], ...]:
        return (self.standby_owners, held.standby), (self.warmup_owners, held.warmup)
