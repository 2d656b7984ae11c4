"""A static member comes back without its id (KIP-345): its process was restarted.

It takes the place of the member with its instance id, under a new member id; the old id is fenced.
In a stable group it keeps its assignment, and nobody else notices, as long as the group's protocol
stays the same.
"""

from __future__ import annotations

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.member import Member
from ottla.groups.classic.rebalance import (
    complete_join_if_all_joined,
    prepare_rebalance,
    rebalance_or_complete_join,
)
from ottla.groups.classic.requests import UNKNOWN_MEMBER_ID, JoinRequest, JoinResult, SyncResult
from ottla.groups.classic.state import COMPLETING_REBALANCE, STABLE
from ottla.groups.classic.timers import await_heartbeat, forget_heartbeat
from ottla.groups.step import Step
from ottla.groups.stored import CoordinatorRecord, GroupMetadataKey
from ottla.protocol.errors import ErrorCode


def replace_static(group: ClassicGroup, request: JoinRequest, step: Step) -> None:
    """Puts the member that joins in the place of the one that had its instance id."""
    instance_id = request.group_instance_id
    assert instance_id is not None
    old_id, old_leader = group.static_members[instance_id], group.leader_id
    member = group.members[old_id]
    before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
    # Whoever still waits under the old id is not the member any more.
    error = ErrorCode.fenced_instance_id
    group.answer_join(member, JoinResult(error, old_id), step)
    group.answer_sync(member, SyncResult(error), step)
    group.rename_static(instance_id, request.new_member_id)
    group.pending_sync.pop(old_id, None)
    group.update(member, request)
    group.park_join(member, request.token, step)
    member.is_new = False
    forget_heartbeat(group, old_id, step)
    await_heartbeat(group, member, step)
    if group.state is STABLE:
        if group.select_protocol() == group.protocol_name:
            _store_new_id(group, member, request, old_leader, step)

            def refused(later: Step, error: ErrorCode) -> None:
                group.rename_static(instance_id, old_id)
                group.restore(member, *before)
                forget_heartbeat(group, request.new_member_id, later)
                await_heartbeat(group, member, later)
                group.answer_join(member, JoinResult(error, UNKNOWN_MEMBER_ID), later)

            step.when_refused = refused
        else:
            rebalance_or_complete_join(group, step)
    elif group.state is COMPLETING_REBALANCE:
        # The leader may hold the old id already, so its assignment would miss the new one.
        prepare_rebalance(group, step)
    else:
        complete_join_if_all_joined(group, step)


def _store_new_id(
    group: ClassicGroup, member: Member, request: JoinRequest, old_leader: str | None, step: Step
) -> None:
    assignments = {one.member_id: one.assignment for one in group.members.values()}
    value = group.to_store(assignments, step.now_ms)
    step.records.append(CoordinatorRecord(GroupMetadataKey(group.group_id), value))

    def appended(later: Step) -> None:
        result = group.joined(member.member_id)
        if not request.supports_skip_assignment:
            # An older client that is told it leads would assign anew, and the group is stable: so
            # it is told the leader's old id, which is nobody's (KIP-345).
            result = result._replace(leader=old_leader or "", members=())
        elif group.leader_id == member.member_id:
            # A newer one may know that it leads, and that there is nothing to assign (KIP-814).
            result = result._replace(skip_assignment=True)
        group.answer_join(member, result, later)

    step.when_appended = appended
