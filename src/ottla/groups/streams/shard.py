"""The streams groups of one partition of `__consumer_offsets`, and the deciders over them.

Groups and members change in `apply` only. Every method with a Step decides and changes nothing.
What a group knows beside its records (`group.Soft`) is set once the step is appended. A very large
group decides in a thread (`groups.aside`).
"""

from __future__ import annotations

from typing import Final

from ottla.groups.consumer.step import RebalanceExpired, SessionExpired
from ottla.groups.consumer.topics import Topics
from ottla.groups.history.events import Why
from ottla.groups.newer_stored import GroupKey
from ottla.groups.streams import departure, requests
from ottla.groups.streams.describe import DescribedStreamsGroup, describe
from ottla.groups.streams.describe_topology import DescriptionUpdate, describe_topology
from ottla.groups.streams.group import Soft, StreamsGroup
from ottla.groups.streams.heartbeat import Decided, assign_first, heartbeat
from ottla.groups.streams.large import is_first_assignment_large, is_large
from ottla.groups.streams.member import JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH
from ottla.groups.streams.requests import HeartbeatRequest
from ottla.groups.streams.step import Step, TimerEvent
from ottla.groups.streams.stored import StreamsRecord
from ottla.groups.streams.timers import forget_group, loaded
from ottla.groups.streams.written import group_removal
from ottla.protocol.errors import ApiError, ErrorCode

_LEAVES: Final = (LEAVE_EPOCH, LEAVE_STATIC_EPOCH)


class StreamsGroupShard:
    """Which streams groups there are."""

    def __init__(self) -> None:
        self.groups: dict[str, StreamsGroup] = {}

    def apply(self, record: StreamsRecord) -> None:
        """Takes over one record of the log, while loading and ever after.

        A tombstone of what is not there is ignored: the rest of it was compacted away.
        """
        key, value = record
        group = self.groups.get(key.group)
        if group is None:
            if value is None:
                return
            group = self.groups[key.group] = StreamsGroup(key.group)
        if isinstance(key, GroupKey) and value is None:
            del self.groups[key.group]
        else:
            group.apply(record)

    def loaded(self, group_id: str, step: Step) -> None:
        """The group's members have their session timeout to send a heartbeat."""
        loaded(self.groups[group_id], step)

    # Members.

    def heartbeat(self, request: HeartbeatRequest, topics: Topics, step: Step) -> Decided:
        """StreamsGroupHeartbeat; raises ApiError where it is refused."""
        requests.check(request)
        return heartbeat(self._group_for(request), request, topics, step)

    def keep(self, group_id: str, soft: Soft) -> None:
        """What was decided is appended and applied."""
        group = self.groups.get(group_id)
        if group is not None:
            group.soft = soft

    def _group_for(self, request: HeartbeatRequest) -> StreamsGroup:
        """The group, or a new one; raises ApiError (GROUP_ID_NOT_FOUND)."""
        group = self.groups.get(request.group)
        if group is None:
            if request.epoch != JOIN_EPOCH:
                name = "Group" if request.epoch in _LEAVES else "Streams group"
                message = f"{name} {request.group} not found."
                raise ApiError(ErrorCode.group_id_not_found, message)
            group = StreamsGroup(request.group)
        return group

    def large_group(self, request: HeartbeatRequest, topics: Topics) -> StreamsGroup | None:
        """The group if it decides elsewhere; None where it is done at once."""
        group = self._group_for(request)
        return group if is_large(group, request, topics) else None

    def expired(self, event: TimerEvent, step: Step) -> None:
        """A timer has expired; the member, or the group, may be gone by now."""
        group = self.groups.get(event.group)
        if group is None:
            return
        match event:
            case SessionExpired():
                member = group.members.get(event.member)
                if member is not None:
                    timeout_ms = step.settings.session_timeout_ms
                    departure.remove(group, member, step, Why.SESSION_EXPIRED, timeout_ms)
            case RebalanceExpired():
                member = group.members.get(event.member)
                if member is not None and member.epoch == event.epoch:
                    timeout_ms = member.rebalance_timeout_ms
                    departure.remove(group, member, step, Why.REBALANCE_TIMEOUT, timeout_ms)
            case _:
                # A very large group waits for the next heartbeat, which decides in a thread.
                if not is_first_assignment_large(group):
                    assign_first(group, step)
                group.soft = group.soft._replace(is_delayed=False)

    # Administrators.

    def describe(self, group_id: str) -> DescribedStreamsGroup:
        """StreamsGroupDescribe; raises ApiError (GROUP_ID_NOT_FOUND)."""
        group = self.groups.get(group_id)
        if group is None:
            raise ApiError(ErrorCode.group_id_not_found, f"Group {group_id} not found.")
        return describe(group)

    def describe_topology(self, update: DescriptionUpdate, step: Step) -> tuple[str | None, Soft]:
        """StreamsGroupTopologyDescriptionUpdate: why it is not kept, and what the group knows then.
        Raises ApiError.
        """
        group = self.groups.get(update.group)
        if group is None:
            raise ApiError(ErrorCode.group_id_not_found, f"Group {update.group} not found.")
        why_not = describe_topology(group, update, step)
        return why_not, group.soft._replace(asked=None)

    def remove(self, group_id: str, step: Step) -> None:
        """Removes an empty group."""
        step.records += group_removal(self.groups[group_id])
        forget_group(group_id, step)
