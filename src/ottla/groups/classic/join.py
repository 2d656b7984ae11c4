"""JoinGroup: a member asks to be in the next generation.

A new dynamic member is first given an id and asked to come back with it (KIP-394), so that a client
that retries does not leave dead members behind. A request that is accepted waits until the
generation begins; `rebalance.complete_join` answers it.
"""

from __future__ import annotations

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.member import Member
from ottla.groups.classic.noted import note
from ottla.groups.classic.rebalance import rebalance_or_complete_join
from ottla.groups.classic.requests import UNKNOWN_MEMBER_ID, JoinRequest, JoinResult
from ottla.groups.classic.state import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
)
from ottla.groups.classic.static_member import replace_static
from ottla.groups.classic.timers import await_heartbeat, await_pending
from ottla.groups.history.events import Why
from ottla.groups.settings import GroupSettings
from ottla.groups.step import Step
from ottla.protocol.errors import ErrorCode
from ottla.shards.encoding import fits_string


def session_timeout_error(request: JoinRequest, settings: GroupSettings) -> ErrorCode:
    """INVALID_SESSION_TIMEOUT unless the member's lies within what the broker allows."""
    allowed = range(settings.min_session_timeout_ms, settings.max_session_timeout_ms + 1)
    if request.session_timeout_ms in allowed:
        return ErrorCode.none
    return ErrorCode.invalid_session_timeout


def join(group: ClassicGroup, request: JoinRequest, step: Step) -> None:
    """Answers now, or lets the request wait for the next generation."""
    is_unknown = request.member_id == UNKNOWN_MEMBER_ID
    if not _has_room(group, request.member_id, step.settings):
        group.remove(request.member_id)
        error = ErrorCode.group_max_size_reached
        step.reply(request.token, JoinResult(error, UNKNOWN_MEMBER_ID))
        return
    error = refusal(group, request, step.settings)
    if error is not ErrorCode.none:
        step.reply(request.token, JoinResult(error, request.member_id))
    elif is_unknown:
        _join_new(group, request, step)
    elif request.member_id in group.pending_members:
        if request.group_instance_id is not None:
            # Only dynamic members are pending. Kafka throws an IllegalStateException, which its
            # client gets as this error (GroupMetadataManager.classicGroupJoinExistingMember).
            step.reply(request.token, JoinResult(ErrorCode.unknown_server_error, request.member_id))
            return
        _add(group, request, request.member_id, step)
    else:
        _join_again(group, request, step)


def _has_room(group: ClassicGroup, member_id: str, settings: GroupSettings) -> bool:
    """group.max.size (KIP-389): members stay, except those that join again last."""
    member = group.members.get(member_id)
    if group.state in (EMPTY, DEAD):
        return True
    if group.state is PREPARING_REBALANCE:
        # Not the number of members: the limit may be smaller now than when they joined.
        already_waits = member is not None and member.join_token is not None
        return already_waits or group.awaiting_join < settings.max_size
    return member is not None or len(group.members) < settings.max_size


def refusal(group: ClassicGroup, request: JoinRequest, settings: GroupSettings) -> ErrorCode:
    """Why this member cannot join, if it cannot."""
    if group.state is DEAD:
        # The group has moved to another broker: the member has to look for it.
        return ErrorCode.coordinator_not_available
    if not group.supports(request.protocol_type, request.protocols):
        return ErrorCode.inconsistent_group_protocol
    error = metadata_error(request, settings)
    if error is not ErrorCode.none:
        return error
    member_id = request.member_id
    if request.group_instance_id is not None:
        member_id = group.static_members.get(request.group_instance_id, member_id)
    if not group.has_room_for(member_id, request.protocols, settings):
        # In Kafka the generation begins, its leader gets all of it, and nobody its assignment:
        # every SyncGroup is answered with UNKNOWN_SERVER_ERROR, as the record is too large
        # (GroupMetadataManager.appendGroupMetadataErrorToResponseError). Here only this member.
        return ErrorCode.group_max_size_reached
    return ErrorCode.none


def metadata_error(request: JoinRequest, settings: GroupSettings) -> ErrorCode:
    """Why what the member says of itself cannot be stored, if it cannot."""
    names = (request.group_instance_id or "", request.protocol_type, *dict(request.protocols))
    if not all(map(fits_string, names)):
        return ErrorCode.invalid_request
    size_bytes = sum(len(metadata) for _, metadata in request.protocols)
    if size_bytes > settings.member_metadata_max_bytes:
        # Kafka's error for a group whose record is too large to be stored.
        return ErrorCode.unknown_server_error
    return ErrorCode.none


def _join_new(group: ClassicGroup, request: JoinRequest, step: Step) -> None:
    """A member without an id: static members skip the detour over MEMBER_ID_REQUIRED."""
    if request.group_instance_id is not None:
        if request.group_instance_id in group.static_members:
            replace_static(group, request, step)
        else:
            _add(group, request, request.new_member_id, step)
    elif request.requires_known_member_id:
        if len(group.pending_members) >= step.settings.max_pending_members:
            error = ErrorCode.group_max_size_reached
            step.reply(request.token, JoinResult(error, UNKNOWN_MEMBER_ID))
            return
        group.pending_members[request.new_member_id] = None
        await_pending(group, request.new_member_id, step, request.session_timeout_ms)
        error = ErrorCode.member_id_required
        step.reply(request.token, JoinResult(error, request.new_member_id))
    else:
        _add(group, request, request.new_member_id, step)


def _add(group: ClassicGroup, request: JoinRequest, member_id: str, step: Step) -> None:
    member = Member.joining(request, member_id)
    if group.state is PREPARING_REBALANCE and group.previous_state is EMPTY:
        group.new_member_added = True
    group.add(member)
    group.park_join(member, request.token, step)
    # It cannot send heartbeats before it has its id and generation, and while its request waits
    # we do not see its client disconnect. So it has a time limit of its own.
    await_heartbeat(group, member, step, step.settings.new_member_join_timeout_ms)
    note(group, step, Why.JOINED, member, reason=request.reason)
    rebalance_or_complete_join(group, step)


def _join_again(group: ClassicGroup, request: JoinRequest, step: Step) -> None:
    """A member joins again: a new generation only where something changed."""
    member_id = request.member_id
    error = group.check_member(member_id, request.group_instance_id)
    if error is not ErrorCode.none:
        step.reply(request.token, JoinResult(error, member_id))
        return
    member = group.members[member_id]
    same = member.prefers_same(request.protocols)
    if group.state is COMPLETING_REBALANCE and same:
        # It did not get the response to its JoinGroup: it gets the same again.
        step.reply(request.token, group.joined(member_id))
    elif group.state is STABLE and same and member_id != group.leader_id:
        # A leader that joins requests a rebalance: it may have seen new partitions. A follower
        # does not.
        step.reply(request.token, group.joined(member_id))
    else:
        assert group.state is not EMPTY, "an empty group has no members"
        if not same:
            note(group, step, Why.SUBSCRIPTION_CHANGED, member, reason=request.reason)
        elif group.state is STABLE:
            note(group, step, Why.JOINED_AGAIN, member, reason=request.reason)
        group.update(member, request)
        group.park_join(member, request.token, step)
        rebalance_or_complete_join(group, step)
