"""The timers of a consumer group's members."""

from __future__ import annotations

from typing import Final

from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import Member, MemberState
from ottla.groups.consumer.step import (
    CLASSIC_JOIN,
    CLASSIC_SYNC,
    ClassicExpired,
    RebalanceExpired,
    SessionExpired,
    Step,
    TimerEvent,
    TimerKey,
)

RETRY_MS: Final = 10_000
"""After an append that was refused, as when too few replicas are in sync."""


def await_heartbeat(
    group_id: str, member_id: str, step: Step, timeout_ms: int | None = None
) -> None:
    """The member has the group's session timeout for its next heartbeat, a classic one its own."""
    event = SessionExpired(group_id, member_id)
    if timeout_ms is None:
        timeout_ms = step.settings.session_timeout_ms
    step.set_timer(TimerKey("session", group_id, member_id), timeout_ms, event)


def await_classic_join(group: ConsumerGroup, member: Member, step: Step) -> None:
    """A classic member is told to join again: it has its rebalance timeout since it was first."""
    if member.member_id not in group.awaited_joins:
        group.awaited_joins[member.member_id] = None
        key = TimerKey(CLASSIC_JOIN, group.group_id, member.member_id)
        event = ClassicExpired(CLASSIC_JOIN, group.group_id, member.member_id)
        step.set_timer(key, member.rebalance_timeout_ms, event)


def forget_classic_join(group_id: str, member_id: str, step: Step) -> None:
    """It has joined."""
    step.cancel_timer(TimerKey(CLASSIC_JOIN, group_id, member_id))


def await_classic_sync(group_id: str, member: Member, step: Step) -> None:
    """A classic member that has joined has its rebalance timeout to ask for its assignment."""
    key = TimerKey(CLASSIC_SYNC, group_id, member.member_id)
    event = ClassicExpired(CLASSIC_SYNC, group_id, member.member_id)
    step.set_timer(key, member.rebalance_timeout_ms, event)


def forget_classic_sync(group_id: str, member_id: str, step: Step) -> None:
    """It has asked."""
    step.cancel_timer(TimerKey(CLASSIC_SYNC, group_id, member_id))


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
    match event:
        case SessionExpired():
            kind = "session"
        case RebalanceExpired():
            kind = "rebalance"
        case ClassicExpired():
            kind = event.kind
    step.set_timer(TimerKey(kind, event.group, event.member), RETRY_MS, event)


def forget(group_id: str, member_id: str, step: Step) -> None:
    """The member is gone."""
    step.cancel_timer(TimerKey("session", group_id, member_id))
    step.cancel_timer(TimerKey("rebalance", group_id, member_id))
    forget_classic_join(group_id, member_id, step)
    forget_classic_sync(group_id, member_id, step)


def loaded(group: ConsumerGroup, step: Step) -> None:
    """A coordinator takes over: every member has all its time again.

    A classic member that has to give up partitions is told so with its next heartbeat, and has its
    time from then on. Kafka limits it from here on, too, and does not take that back when the
    member has given them up.
    """
    for member in group.members.values():
        await_heartbeat(group.group_id, member.member_id, step)
        if member.classic is None and member.state is MemberState.UNREVOKED_PARTITIONS:
            await_revocation(group.group_id, member, step)
