"""The timers of a share group's members: their sessions."""

from __future__ import annotations

from ottla.groups.consumer.step import SessionExpired, TimerKey
from ottla.groups.consumer.timers import RETRY_MS
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.step import Step


def _key(group_id: str, member_id: str) -> TimerKey:
    return TimerKey("session", group_id, member_id)


def await_heartbeat(group_id: str, member_id: str, step: Step) -> None:
    """The member has the group's session timeout for its next heartbeat."""
    event = SessionExpired(group_id, member_id)
    step.set_timer(_key(group_id, member_id), step.settings.session_timeout_ms, event)


def forget(group_id: str, member_id: str, step: Step) -> None:
    """The member is gone."""
    step.cancel_timer(_key(group_id, member_id))


def expires_again(event: SessionExpired, step: Step) -> None:
    """What the timer led to could not be written."""
    step.set_timer(_key(event.group, event.member), RETRY_MS, event)


def loaded(group: ShareGroup, step: Step) -> None:
    """A coordinator takes over: every member has all its time again."""
    for member_id in group.members:
        await_heartbeat(group.group_id, member_id, step)
