"""Removing members: their session expires, they leave, or they miss the sync phase.

The last members to go are ended by a record; others are removed in memory, and the next generation
begins without them.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.noted import note
from ottla.groups.classic.rebalance import (
    RETRY_MS,
    begin_empty_generation,
    complete_join,
    complete_join_if_all_joined,
    leaves_empty,
    prepare_rebalance,
    rebalance_or_complete_join,
    send_away,
)
from ottla.groups.classic.requests import UNKNOWN_MEMBER_ID, LeavingMember, LeftMember
from ottla.groups.classic.state import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
)
from ottla.groups.classic.timers import await_pending, await_syncs, forget_heartbeat
from ottla.groups.history.events import Why
from ottla.groups.step import Step, SyncExpired
from ottla.protocol.errors import ErrorCode


def leave(
    group: ClassicGroup, leaving: Sequence[LeavingMember], step: Step
) -> tuple[LeftMember, ...]:
    """Members leave, or an administrator removes static ones by instance id (KIP-345)."""
    gone: dict[str, None] = {}
    left = []
    for each in leaving:
        found = _leaving_id(group, each, gone)
        error = found if isinstance(found, ErrorCode) else ErrorCode.none
        if not isinstance(found, ErrorCode):
            gone[found] = None
            member = group.members.get(found)
            if member is not None:
                why = Why.REMOVED if each.member_id == UNKNOWN_MEMBER_ID else Why.LEFT
                note(group, step, why, member, reason=each.reason or "")
        left.append(LeftMember(each.member_id, each.group_instance_id, error))
    if gone:
        _leave(group, gone, step)
    return tuple(left)


def _leaving_id(
    group: ClassicGroup, leaving: LeavingMember, gone: Container[str]
) -> str | ErrorCode:
    """Who leaves, or why not."""
    member_id, instance_id = leaving.member_id, leaving.group_instance_id
    if member_id == UNKNOWN_MEMBER_ID:
        if instance_id is None or instance_id not in group.static_members:
            return ErrorCode.unknown_member_id
        member_id = group.static_members[instance_id]
    elif member_id not in group.pending_members:
        error = group.check_member(member_id, instance_id)
        if error is not ErrorCode.none:
            return error
    return ErrorCode.unknown_member_id if member_id in gone else member_id


def _leave(group: ClassicGroup, gone: dict[str, None], step: Step) -> None:
    rebalances = group.state in (STABLE, COMPLETING_REBALANCE)
    # The first rebalance of a group waits out its delay, even with nobody left.
    joins_again = group.state is PREPARING_REBALANCE and group.previous_state is not EMPTY
    if (rebalances or joins_again) and leaves_empty(group, gone):
        begin_empty_generation(group, gone, step)
        return
    for member_id in gone:
        _remove(group, member_id, step)
        forget_heartbeat(group, member_id, step)
    if rebalances:
        rebalance_or_complete_join(group, step)
    else:
        complete_join_if_all_joined(group, step)


def _remove(group: ClassicGroup, member_id: str, step: Step) -> None:
    member = group.members.get(member_id)
    group.remove(member_id)
    if member is not None:
        send_away(group, member, step)


def heartbeat_expired(group: ClassicGroup, member_id: str, step: Step) -> None:
    """A member sent no heartbeat for its session timeout."""
    if group.state is DEAD:
        return
    member = group.members.get(member_id)
    if member_id not in group.pending_members and (member is None or member.is_waiting):
        return
    if member is not None:
        note(group, step, Why.SESSION_EXPIRED, member, waited_ms=member.session_timeout_ms)
    if group.state is not EMPTY and leaves_empty(group, (member_id,)):
        begin_empty_generation(
            group,
            (member_id,),
            step,
            lambda later: await_pending(group, member_id, later, RETRY_MS),
        )
        return
    _remove(group, member_id, step)
    if member is not None and group.state in (STABLE, COMPLETING_REBALANCE):
        rebalance_or_complete_join(group, step)
    elif group.state is PREPARING_REBALANCE and group.all_joined:
        complete_join(group, step)


def sync_expired(group: ClassicGroup, event: SyncExpired, step: Step) -> None:
    """Members that joined and never asked for their assignment are removed."""
    if event.generation != group.generation:
        return
    if group.state not in (COMPLETING_REBALANCE, STABLE) or not group.pending_sync:
        return
    late = list(group.pending_sync)
    for member_id in late:
        member = group.members[member_id]
        waited_ms = group.rebalance_timeout_ms
        note(group, step, Why.REBALANCE_TIMEOUT, member, waited_ms=waited_ms)
    if leaves_empty(group, late):
        begin_empty_generation(group, late, step, lambda later: await_syncs(group, later))
        return
    for member_id in late:
        group.remove(member_id)
        forget_heartbeat(group, member_id, step)
    prepare_rebalance(group, step)
