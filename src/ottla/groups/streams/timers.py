"""The timers of a streams group: sessions, what members have to give up, the first assignment."""

from __future__ import annotations

from ottla.groups.consumer.step import RebalanceExpired, SessionExpired, TimerKey
from ottla.groups.consumer.timers import RETRY_MS
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import Member, MemberState
from ottla.groups.streams.step import FirstAssignmentDue, Step


def await_heartbeat(group_id: str, member_id: str, step: Step) -> None:
    """The member has the group's session timeout for its next heartbeat."""
    event = SessionExpired(group_id, member_id)
    key = TimerKey("session", group_id, member_id)
    step.set_timer(key, step.settings.session_timeout_ms, event)


def await_revocation(group_id: str, member: Member, step: Step) -> None:
    """The member has its rebalance timeout to give up what it has to, if there is anything."""
    key = TimerKey("rebalance", group_id, member.member_id)
    if member.state is MemberState.UNREVOKED_TASKS:
        event = RebalanceExpired(group_id, member.member_id, member.epoch)
        step.set_timer(key, max(member.rebalance_timeout_ms, 0), event)
    else:
        step.cancel_timer(key)


def await_members(group_id: str, step: Step) -> None:
    """Others may join before the first assignment."""
    delay_ms = step.settings.initial_rebalance_delay_ms
    step.set_timer(_first_assignment(group_id), delay_ms, FirstAssignmentDue(group_id))


def forget_group(group_id: str, step: Step) -> None:
    """The group is gone."""
    step.cancel_timer(_first_assignment(group_id))


def _first_assignment(group_id: str) -> TimerKey:
    return TimerKey("first assignment", group_id, "")


def forget(group_id: str, member_id: str, step: Step) -> None:
    """The member is gone."""
    step.cancel_timer(TimerKey("session", group_id, member_id))
    step.cancel_timer(TimerKey("rebalance", group_id, member_id))


def expires_again(event: SessionExpired | RebalanceExpired, step: Step) -> None:
    """What the timer led to could not be written."""
    kind = "session" if isinstance(event, SessionExpired) else "rebalance"
    step.set_timer(TimerKey(kind, event.group, event.member), RETRY_MS, event)


def loaded(group: StreamsGroup, step: Step) -> None:
    """A coordinator takes over: every member has all its time again."""
    for member in group.members.values():
        await_heartbeat(group.group_id, member.member_id, step)
        if member.state is MemberState.UNREVOKED_TASKS:
            await_revocation(group.group_id, member, step)
