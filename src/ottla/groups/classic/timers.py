"""The timers of a classic group, and what each waits for."""

from __future__ import annotations

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.member import Member
from ottla.groups.step import HeartbeatExpired, Step, SyncExpired, TimerKey


def heartbeat_key(group: ClassicGroup, member_id: str) -> TimerKey:
    return TimerKey("heartbeat", group.group_id, member_id)


def join_key(group: ClassicGroup) -> TimerKey:
    return TimerKey("join", group.group_id)


def sync_key(group: ClassicGroup) -> TimerKey:
    return TimerKey("sync", group.group_id)


def await_heartbeat(
    group: ClassicGroup, member: Member, step: Step, timeout_ms: int | None = None
) -> None:
    """The member has its session timeout (or `timeout_ms`) to send a heartbeat."""
    await_pending(
        group,
        member.member_id,
        step,
        member.session_timeout_ms if timeout_ms is None else timeout_ms,
    )


def await_pending(group: ClassicGroup, member_id: str, step: Step, timeout_ms: int) -> None:
    """The same for an id that is not a member yet."""
    event = HeartbeatExpired(group.group_id, member_id)
    step.set_timer(heartbeat_key(group, member_id), timeout_ms, event)


def forget_heartbeat(group: ClassicGroup, member_id: str, step: Step) -> None:
    step.cancel_timer(heartbeat_key(group, member_id))


def await_syncs(group: ClassicGroup, step: Step) -> None:
    """All members have the rebalance timeout to ask for their assignment."""
    event = SyncExpired(group.group_id, group.generation)
    step.set_timer(sync_key(group), group.rebalance_timeout_ms, event)


def forget_syncs(group: ClassicGroup, step: Step) -> None:
    group.pending_sync.clear()
    step.cancel_timer(sync_key(group))


def forget_sync_of(group: ClassicGroup, member_id: str, step: Step) -> None:
    """A member has asked for its assignment; the last one ends the wait."""
    group.pending_sync.pop(member_id, None)
    if not group.pending_sync:
        step.cancel_timer(sync_key(group))
