"""SyncGroup: a member asks for its assignment, and the leader brings everybody's.

The leader's assignment is stored first: the group is stable once that record is applied, and the
members get their assignments once it is committed.
"""

from __future__ import annotations

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.noted import note
from ottla.groups.classic.rebalance import drop_assignments, rebalance_or_complete_join
from ottla.groups.classic.requests import SyncRequest, SyncResult
from ottla.groups.classic.state import COMPLETING_REBALANCE, DEAD, PREPARING_REBALANCE, STABLE
from ottla.groups.classic.timers import await_heartbeat, forget_sync_of
from ottla.groups.history.events import Completed, Why
from ottla.groups.step import Step
from ottla.groups.stored import CoordinatorRecord, GroupMetadataKey
from ottla.protocol.errors import ErrorCode


def sync(group: ClassicGroup, request: SyncRequest, step: Step) -> None:
    """Answers now, or lets the request wait for the leader's."""
    error = _refusal(group, request)
    if error is not ErrorCode.none:
        step.reply(request.token, SyncResult(error))
        return
    member = group.members[request.member_id]
    if group.state is STABLE:
        forget_sync_of(group, request.member_id, step)
        step.reply(request.token, _assigned(group, member.assignment))
        return
    assert group.state is COMPLETING_REBALANCE
    if request.member_id == group.leader_id:
        _store_assignments(group, request, step)
    else:
        group.park_sync(member, request.token, step)
        forget_sync_of(group, request.member_id, step)


def _refusal(group: ClassicGroup, request: SyncRequest) -> ErrorCode:
    if group.state is DEAD:
        return ErrorCode.coordinator_not_available
    error = group.check_member(request.member_id, request.group_instance_id)
    if error is not ErrorCode.none:
        return error
    if request.generation != group.generation:
        return ErrorCode.illegal_generation
    if request.protocol_type not in (None, group.protocol_type):
        return ErrorCode.inconsistent_group_protocol
    if None not in (request.protocol_name, group.protocol_name) and (
        request.protocol_name != group.protocol_name
    ):
        return ErrorCode.inconsistent_group_protocol
    if group.state is PREPARING_REBALANCE:
        return ErrorCode.rebalance_in_progress
    return ErrorCode.none


def _assigned(group: ClassicGroup, assignment: bytes) -> SyncResult:
    return SyncResult(ErrorCode.none, group.protocol_type, group.protocol_name, assignment)


def _store_assignments(group: ClassicGroup, request: SyncRequest, step: Step) -> None:
    """Members that the leader left out get an empty assignment."""
    value = group.to_store(request.assignments, step.now_ms)
    step.records.append(CoordinatorRecord(GroupMetadataKey(group.group_id), value))
    step.committed.append(Completed(group.group_id, step.now_ms, group.stored, value))

    def appended(later: Step) -> None:
        forget_sync_of(group, request.member_id, later)
        leader = group.members[request.member_id]
        later.reply(request.token, _assigned(group, leader.assignment))
        await_heartbeat(group, leader, later)
        for member in group.members.values():
            if group.answer_sync(member, _assigned(group, member.assignment), later):
                # Its session may have expired while the request waited, which was ignored.
                await_heartbeat(group, member, later)

    def refused(later: Step, error: ErrorCode) -> None:
        # As in Kafka: everybody joins again, and the leader assigns again.
        drop_assignments(group, error, later)
        note(group, later, Why.NOT_STORED)
        rebalance_or_complete_join(group, later)

    step.when_appended = appended
    step.when_refused = refused
