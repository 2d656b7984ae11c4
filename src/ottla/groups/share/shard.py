"""The share groups of one partition of `__consumer_offsets`, and the deciders over them.

Groups and members change in `apply` only. Every method with a Step decides and changes nothing.
What the share coordinator is to do is returned as a value, to be asked for once the step is
committed; what it answered comes back through `administration`, where the decisions of
administrators are, too. A very large group decides in a thread (`groups.aside`).
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from ottla.groups.consumer.step import SessionExpired
from ottla.groups.consumer.topics import Topics
from ottla.groups.history.events import Cause, Why
from ottla.groups.newer_stored import GroupKey
from ottla.groups.share import administration, departure, requests, state_partitions
from ottla.groups.share.describe import DescribedShareGroup, describe
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.heartbeat import heartbeat
from ottla.groups.share.large import is_large
from ottla.groups.share.member import JOIN_EPOCH, LEAVE_EPOCH
from ottla.groups.share.noted import who_is
from ottla.groups.share.requests import HeartbeatRequest, HeartbeatResult
from ottla.groups.share.step import Step
from ottla.groups.share.stored import ShareRecord
from ottla.groups.share.timers import loaded
from ottla.groups.share.written import states_record
from ottla.protocol.errors import ApiError, ErrorCode

MAX_DELETED_WEIGHT: Final = 10_000
"""Of groups whose records one step has, because of a deleted topic: about 10 ms. A record has all
states of its group.
"""
GROUP_WEIGHT: Final = 50
"""Beside its partitions."""


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
            timeout_ms = step.settings.session_timeout_ms
            cause = Cause(Why.SESSION_EXPIRED, who_is(member), waited_ms=timeout_ms)
            departure.remove(group, member, topics, step, cause)

    # Topics and groups.

    def topic_deleted(self, topic_id: UUID) -> tuple[list[ShareRecord], bool]:
        """Groups have no state in the topic any more. False: ask again, more of them have."""
        records: list[ShareRecord] = []
        weight = 0
        for group in self.groups.values():
            states = state_partitions.without_topic(group.states, topic_id)
            if states is group.states:
                continue
            if weight > MAX_DELETED_WEIGHT:
                return records, False
            weight += GROUP_WEIGHT + sum(
                len(topic.partitions)
                for topics in (states.initializing, states.initialized)
                for topic in topics.values()
            )
            records.append(states_record(group.group_id, states))
        return records, True

    # Administrators.

    def describe(self, group_id: str) -> DescribedShareGroup:
        """ShareGroupDescribe; raises ApiError (GROUP_ID_NOT_FOUND)."""
        return describe(self.known(group_id))

    def known(self, group_id: str) -> ShareGroup:
        """The group; raises ApiError (GROUP_ID_NOT_FOUND)."""
        group = self.groups.get(group_id)
        if group is None:
            raise ApiError(ErrorCode.group_id_not_found, f"Group {group_id} not found.")
        return group

    def initialized(self, group_id: str) -> dict[UUID, frozenset[int]]:
        """The partitions that have state, by topic; none for a group that is not there."""
        group = self.groups.get(group_id)
        topics = {} if group is None else group.states.initialized
        return {topic_id: topic.partitions for topic_id, topic in topics.items()}

    def being_deleted(self) -> list[str]:
        """The groups of which a deletion of states was begun, and has not ended well."""
        return [name for name, group in self.groups.items() if group.states.deleting]

    def groups_of(self, topic_id: UUID, partition: int) -> list[str]:
        """The groups with state of this partition."""
        return [
            name
            for name, group in self.groups.items()
            if (topic := group.states.initialized.get(topic_id)) is not None
            and partition in topic.partitions
        ]

    def remove(self, group_id: str, step: Step) -> None:
        """Removes an empty group; raises ApiError (GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP)."""
        administration.remove(self.known(group_id), step)
