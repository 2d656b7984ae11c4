"""The timers of a consumer group's members."""

from __future__ import annotations

from typing import Final

from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import Member, MemberState
from ottla.groups.consumer.step import (
    RebalanceExpired,
    SessionExpired,
    Step,
    TimerEvent,
    TimerKey,
)

RETRY_MS: Final = 10_000
"""After an append that was refused, as when too few replicas are in sync."""


def await_heartbeat(group_id: str, member_id: str, step: Step) -> None:
    """The member has the group's session timeout for its next heartbeat."""
    event = SessionExpired(group_id, member_id)
    step.set_timer(
        TimerKey("session", group_id, member_id), step.settings.session_timeout_ms, event
    )


def await_revocation(group_id: str, member: Member, step: Step) -> None:
    """The member has its rebalance timeout to give up what it has to, if there is anything."""
    key = TimerKey("rebalance", group_id, member.member_id)
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        event = RebalanceExpired(group_id, member.member_id, member.epoch)
        step.set_timer(key, member.rebalance_timeout_ms, event)
    else:
        step.cancel_timer(key)


def expires_again(event: TimerEvent, step: Step) -> None:
    """What the timer led to could not be written."""
    kind = "session" if isinstance(event, SessionExpired) else "rebalance"
    step.set_timer(TimerKey(kind, event.group, event.member), RETRY_MS, event)


def forget(group_id: str, member_id: str, step: Step) -> None:
    """The member is gone."""
    step.cancel_timer(TimerKey("session", group_id, member_id))
    step.cancel_timer(TimerKey("rebalance", group_id, member_id))


def loaded(group: ConsumerGroup, step: Step) -> None:
    """A coordinator takes over: every member has all its time again."""
    for member in group.members.values():
        await_heartbeat(group.group_id, member.member_id, step)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            await_revocation(group.group_id, member, step)
