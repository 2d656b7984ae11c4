"""The share groups of one partition of `__consumer_offsets`, and the deciders over them.

Groups and members change in `apply` only. Every method with a Step decides and changes nothing.
What the share coordinator is to do is returned as a value, to be asked for once the step is
committed; what it answered comes back through `states_answered` and `states_forgotten`. A very
large group decides in a thread (`groups.aside`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias
from uuid import UUID

from ottla.groups.consumer.step import SessionExpired
from ottla.groups.consumer.topics import Topics
from ottla.groups.share import departure, requests, state_partitions
from ottla.groups.share.describe import DescribedShareGroup, describe
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.heartbeat import heartbeat
from ottla.groups.share.large import is_large
from ottla.groups.share.member import JOIN_EPOCH, LEAVE_EPOCH
from ottla.groups.share.requests import HeartbeatRequest, HeartbeatResult, StatesToInitialize
from ottla.groups.share.state_partitions import PartitionsOfTopics
from ottla.groups.share.step import Step
from ottla.groups.share.stored import GroupKey, ShareRecord, StatesValue, StateTopic
from ottla.groups.share.timers import loaded
from ottla.groups.share.written import group_removal, states_record
from ottla.protocol.errors import ApiError, ErrorCode

StatesToDelete: TypeAlias = Mapping[UUID, frozenset[int]]
"""Partitions whose state the share coordinator is to forget, by topic."""


class AlteredOffsets(NamedTuple):
    """AlterShareGroupOffsets: what to ask the share coordinator for, and what it cannot do."""

    to_initialize: StatesToInitialize
    unknown: frozenset[tuple[str, int]]
    """Topics and partitions that do not exist."""


class ShareGroupShard:
    """Which share groups there are."""

    def __init__(self) -> None:
        self.groups: dict[str, ShareGroup] = {}

    def apply(self, record: ShareRecord, timestamp_ms: int) -> None:
        """Takes over one record of the log, while loading and ever after.

        A tombstone of what is not there is ignored: the rest of it was compacted away.
        """
        key, value = record
        group = self.groups.get(key.group)
        if group is None:
            if value is None:
                return
            group = self.groups[key.group] = ShareGroup(key.group)
        if isinstance(key, GroupKey) and value is None:
            del self.groups[key.group]
        else:
            group.apply(record, timestamp_ms)

    def loaded(self, group_id: str, step: Step) -> None:
        """The group's members have their session timeout to send a heartbeat."""
        loaded(self.groups[group_id], step)

    # Members.

    def heartbeat(self, request: HeartbeatRequest, topics: Topics, step: Step) -> HeartbeatResult:
        """ShareGroupHeartbeat; raises ApiError where it is refused."""
        requests.check(request)
        return heartbeat(self._group_for(request), request, topics, step)

    def _group_for(self, request: HeartbeatRequest) -> ShareGroup:
        """The group, or a new one; raises ApiError (GROUP_ID_NOT_FOUND)."""
        group = self.groups.get(request.group)
        if group is None:
            if request.epoch != JOIN_EPOCH:
                name = "Group" if request.epoch == LEAVE_EPOCH else "Share group"
                message = f"{name} {request.group} not found."
                raise ApiError(ErrorCode.group_id_not_found, message)
            group = ShareGroup(request.group)
        return group

    def large_group(self, request: HeartbeatRequest, topics: Topics) -> ShareGroup | None:
        """The group if it decides elsewhere; None where it is done at once."""
        group = self._group_for(request)
        return group if is_large(group, request, topics) else None

    def expired(self, event: SessionExpired, topics: Topics, step: Step) -> None:
        """A member's session has expired; it, or the group, may be gone by now."""
        group = self.groups.get(event.group)
        member = None if group is None else group.members.get(event.member)
        if group is not None and member is not None:
            departure.remove(group, member, topics, step)

    # What the share coordinator has done.

    def states_answered(
        self, group_id: str, begun: PartitionsOfTopics, refused: PartitionsOfTopics, step: Step
    ) -> None:
        """It has begun the state of some, and not of others (`states_answered` of a group)."""
        group = self.groups.get(group_id)
        if group is not None:
            states_answered(group, begun, refused, step)

    def states_forgotten(self, group_id: str, topic_ids: Iterable[UUID], step: Step) -> None:
        """It has forgotten all state in these topics."""
        group = self.groups.get(group_id)
        if group is not None:
            _change(group, state_partitions.forgotten(group.states, topic_ids), step)

    def topic_deleted(self, topic_id: UUID) -> list[ShareRecord]:
        """No group has state in the topic any more."""
        records = []
        for group in self.groups.values():
            states = state_partitions.without_topic(group.states, topic_id)
            if states != group.states:
                records.append(states_record(group.group_id, states))
        return records

    # Administrators.

    def describe(self, group_id: str) -> DescribedShareGroup:
        """ShareGroupDescribe; raises ApiError (GROUP_ID_NOT_FOUND)."""
        return describe(self._known(group_id))

    def _known(self, group_id: str) -> ShareGroup:
        group = self.groups.get(group_id)
        if group is None:
            raise ApiError(ErrorCode.group_id_not_found, f"Group {group_id} not found.")
        return group

    def _empty(self, group: ShareGroup) -> ShareGroup:
        if group.members:
            raise ApiError(ErrorCode.non_empty_group, "The group is not empty.")
        return group

    def initialized(self, group_id: str) -> dict[UUID, frozenset[int]]:
        """The partitions that have state, by topic; none for a group that is not there."""
        group = self.groups.get(group_id)
        topics = {} if group is None else group.states.initialized
        return {topic_id: topic.partitions for topic_id, topic in topics.items()}

    def begin_removal(self, group_id: str, topics: Topics, step: Step) -> StatesToDelete:
        """Before an empty group is removed, the share coordinator is to forget these. Raises
        ApiError (GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP).
        """
        group = self._empty(self._known(group_id))
        states, partitions = state_partitions.all_deleting(group.states, topics)
        _change(group, states, step)
        return partitions

    def remove(self, group_id: str, step: Step) -> None:
        """Removes an empty group; raises ApiError (GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP)."""
        step.records += group_removal(self._empty(self._known(group_id)))

    def alter_offsets(
        self,
        group_id: str,
        offsets: Mapping[str, Mapping[int, int]],
        topics: Topics,
        step: Step,
    ) -> AlteredOffsets:
        """AlterShareGroupOffsets, of an empty group, perhaps a new one; raises ApiError
        (NON_EMPTY_GROUP). `offsets`: by topic and partition.
        """
        group = self._empty(self.groups.get(group_id) or ShareGroup(group_id))
        wanted: dict[UUID, dict[int, int]] = {}
        begun: dict[UUID, StateTopic] = {}
        unknown: set[tuple[str, int]] = set()
        for name, its in offsets.items():
            topic = topics.by_name.get(name)
            count = 0 if topic is None else topic.partition_count
            known = {number: its[number] for number in its if 0 <= number < count}
            unknown.update((name, number) for number in its if number not in known)
            if topic is not None and known:
                wanted[topic.id] = known
                begun[topic.id] = StateTopic(name, frozenset(known))
        if begun:
            _change(group, state_partitions.beginning(group.states, begun), step)
        return AlteredOffsets(StatesToInitialize(group.epoch, wanted), frozenset(unknown))

    def begin_offset_removal(
        self, group_id: str, names: Sequence[str], topics: Topics, step: Step
    ) -> StatesToDelete:
        """DeleteShareGroupOffsets of these topics: what the share coordinator is to forget. A topic
        without state is not in there. Raises ApiError (GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP).
        """
        group = self._empty(self._known(group_id))
        states, partitions = state_partitions.deleting(group.states, names, topics)
        _change(group, states, step)
        return partitions


def states_answered(
    group: ShareGroup, begun: PartitionsOfTopics, refused: PartitionsOfTopics, step: Step
) -> None:
    """The share coordinator has begun the state of some partitions: members may be assigned them.
    For the others a later heartbeat asks again.
    """
    states = state_partitions.begun(group.states, begun)
    _change(group, state_partitions.refused(states, refused), step)


def _change(group: ShareGroup, states: StatesValue, step: Step) -> None:
    if states != group.states:
        step.records.append(states_record(group.group_id, states))
