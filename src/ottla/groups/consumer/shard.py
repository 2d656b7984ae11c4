"""The consumer groups of one partition of `__consumer_offsets`, and the deciders over them.

Groups and members change in `apply` only. Every method with a Step decides and changes nothing.
"""

from __future__ import annotations

from ottla.groups.consumer import departure, requests
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.heartbeat import heartbeat
from ottla.groups.consumer.large import is_large
from ottla.groups.consumer.member import JOIN_EPOCH
from ottla.groups.consumer.requests import HeartbeatRequest, HeartbeatResult
from ottla.groups.consumer.step import Step, TimerEvent
from ottla.groups.consumer.stored import ConsumerRecord
from ottla.groups.consumer.timers import loaded
from ottla.groups.consumer.topics import Topics
from ottla.groups.newer_stored import GroupKey
from ottla.protocol.errors import ApiError, ErrorCode

NEWEST_VERSION = 1
"""Of ConsumerGroupHeartbeat."""


class ConsumerGroupShard:
    """Which consumer groups there are."""

    def __init__(self) -> None:
        self.groups: dict[str, ConsumerGroup] = {}

    def apply(self, record: ConsumerRecord) -> None:
        """Takes over one record of the log, while loading and ever after.

        A tombstone of what is not there is ignored: the rest of it was compacted away.
        """
        key, value = record
        group = self.groups.get(key.group)
        if group is None:
            if value is None:
                return
            group = self.groups[key.group] = ConsumerGroup(key.group)
        if isinstance(key, GroupKey) and value is None:
            del self.groups[key.group]
        else:
            group.apply(record)

    def loaded(self, group_id: str, step: Step) -> None:
        """The group's members have their session timeout to send a heartbeat."""
        loaded(self.groups[group_id], step)

    def heartbeat(
        self,
        request: HeartbeatRequest,
        topics: Topics,
        step: Step,
        version: int = NEWEST_VERSION,
    ) -> HeartbeatResult:
        """ConsumerGroupHeartbeat; raises ApiError where it is refused."""
        requests.check(request, version)
        return heartbeat(self._group_for(request), request, topics, step)

    def _group_for(self, request: HeartbeatRequest) -> ConsumerGroup:
        """The group, perhaps a new one; raises ApiError(GROUP_ID_NOT_FOUND)."""
        group = self.groups.get(request.group)
        if group is None:
            if request.epoch != JOIN_EPOCH:
                message = f"Consumer group {request.group} not found."
                raise ApiError(ErrorCode.group_id_not_found, message)
            group = ConsumerGroup(request.group)
        return group

    def large_group(self, request: HeartbeatRequest, topics: Topics) -> ConsumerGroup | None:
        """The group if it decides elsewhere; None where it is done at once."""
        group = self._group_for(request)
        return group if is_large(group, request, topics) else None

    def expired(self, event: TimerEvent, topics: Topics, step: Step) -> None:
        """A timer has expired; the group may be gone by now."""
        group = self.groups.get(event.group)
        if group is not None:
            departure.expired(group, event, topics, step)

    def remove(self, group_id: str, step: Step) -> None:
        """Removes a group; raises ApiError (GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP)."""
        group = self.groups.get(group_id)
        if group is None:
            raise ApiError(ErrorCode.group_id_not_found, f"Group {group_id} not found.")
        if group.members:
            raise ApiError(ErrorCode.non_empty_group, f"Group {group_id} is not empty.")
        step.records += departure.group_removal(group)
