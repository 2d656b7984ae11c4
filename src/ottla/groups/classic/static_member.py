"""A static member comes back without its id (KIP-345): its process was restarted.

It takes the place of the member with its instance id, under a new member id; the old id is fenced.
In a stable group it keeps its assignment, and nobody else notices, as long as the group's protocol
stays the same: then the new id is stored, and nothing changes before that record is applied.
"""

from __future__ import annotations

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.member import Member
from ottla.groups.classic.noted import note, note_replaced
from ottla.groups.classic.rebalance import (
    complete_join_if_all_joined,
    prepare_rebalance,
    rebalance_or_complete_join,
)
from ottla.groups.classic.requests import JoinRequest, JoinResult, SyncResult
from ottla.groups.classic.state import COMPLETING_REBALANCE, STABLE
from ottla.groups.classic.timers import await_heartbeat, forget_heartbeat
from ottla.groups.history.events import Why
from ottla.groups.step import Step
from ottla.groups.stored import CoordinatorRecord, GroupMetadataKey, GroupMetadataValue
from ottla.protocol.errors import ErrorCode


def replace_static(group: ClassicGroup, request: JoinRequest, step: Step) -> None:
    """Puts the member that joins in the place of the one with its instance id."""
    instance_id = request.group_instance_id
    assert instance_id is not None
    old_id = group.static_members[instance_id]
    names = [name for name, _ in request.protocols]
    if group.state is STABLE and group.select_protocol(old_id, names) == group.protocol_name:
        _store_new_id(group, group.members[old_id], request, step)
        return
    member = group.members[old_id]
    _fence(group, member, old_id, step)
    group.rename_static(instance_id, request.new_member_id)
    group.update(member, request)
    group.park_join(member, request.token, step)
    member.is_new = False
    await_heartbeat(group, member, step)
    note(group, step, Why.REPLACED, member, other_id=old_id, reason=request.reason)
    if group.state is STABLE:
        rebalance_or_complete_join(group, step)
    elif group.state is COMPLETING_REBALANCE:
        # The leader may have the old id already, so its assignment would not name the new one.
        prepare_rebalance(group, step)
    else:
        complete_join_if_all_joined(group, step)


def _fence(group: ClassicGroup, member: Member, old_id: str, step: Step) -> None:
    """Requests under the old id are another process's now."""
    error = ErrorCode.fenced_instance_id
    group.answer_join(member, JoinResult(error, old_id), step)
    group.answer_sync(member, SyncResult(error), step)
    forget_heartbeat(group, old_id, step)


def _store_new_id(group: ClassicGroup, member: Member, request: JoinRequest, step: Step) -> None:
    old_id, old_leader = member.member_id, group.leader_id
    value = _with_new_id(group, old_id, request, step.now_ms)
    step.records.append(CoordinatorRecord(GroupMetadataKey(group.group_id), value))

    def appended(later: Step) -> None:
        _fence(group, member, old_id, later)
        group.update(member, request)
        member.is_new = False
        await_heartbeat(group, member, later)
        note_replaced(group, later, member, old_id)
        result = group.joined(member.member_id)
        if not request.supports_skip_assignment:
            # An older client that learns that it leads would assign again, though the group is
            # stable. It gets the leader's old id, which is nobody's (KIP-345).
            result = result._replace(leader=old_leader or "", members=())
        elif group.leader_id == member.member_id:
            # A newer one may know that it leads, and that there is nothing to assign (KIP-814).
            result = result._replace(skip_assignment=True)
        later.reply(request.token, result)

    step.when_appended = appended


def _with_new_id(
    group: ClassicGroup, old_id: str, request: JoinRequest, now_ms: int
) -> GroupMetadataValue:
    """The group's record with what `request` says of the member that returns; it comes last."""
    value = group.to_store(
        {one.member_id: one.assignment for one in group.members.values()}, now_ms
    )
    (old,) = (kept for kept in value.members if kept.member_id == old_id)
    assert value.protocol is not None
    new = old._replace(
        member_id=request.new_member_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        session_timeout_ms=request.session_timeout_ms,
        subscription=dict(request.protocols)[value.protocol],
    )
    others = tuple(kept for kept in value.members if kept is not old)
    leader = new.member_id if value.leader == old_id else value.leader
    return value._replace(leader=leader, members=(*others, new))
