"""From one generation to the next.

A rebalance gives every member time to join again (at most the group's rebalance timeout), then
chooses a protocol and a leader and begins the generation; dynamic members that did not come back
are removed. The first rebalance of a group may wait for more members first
(group.initial.rebalance.delay.ms).

All of that is in memory only. What is written is the end of the last member: an empty generation.
Until that record is applied, nothing of the group changes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.member import EMPTY_ASSIGNMENT, Member
from ottla.groups.classic.noted import note, note_empty
from ottla.groups.classic.requests import UNKNOWN_MEMBER_ID, JoinResult, SyncResult
from ottla.groups.classic.state import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE
from ottla.groups.classic.timers import (
    await_heartbeat,
    await_syncs,
    forget_heartbeat,
    forget_syncs,
    join_key,
)
from ottla.groups.history.events import Why
from ottla.groups.step import InitialDelayExpired, JoinExpired, Step
from ottla.groups.stored import CoordinatorRecord, GroupMetadataKey, GroupMetadataValue
from ottla.protocol.errors import ErrorCode

MISSING_WAIT_MS = 1_000
"""If every member is missing, the wait is repeated after this time at the earliest."""
RETRY_MS = 10_000
"""A timer whose decision could not be written expires again after this time."""


def rebalance_or_complete_join(group: ClassicGroup, step: Step) -> None:
    """The members have changed: begins a rebalance, or completes one if all have joined."""
    if group.can_rebalance:
        prepare_rebalance(group, step)
    else:
        complete_join_if_all_joined(group, step)


def complete_join_if_all_joined(group: ClassicGroup, step: Step) -> None:
    """Ends the joining early; but a first rebalance waits out its delay."""
    if (
        group.state is PREPARING_REBALANCE
        and group.previous_state is not EMPTY
        and group.all_joined
    ):
        complete_join(group, step)


def prepare_rebalance(group: ClassicGroup, step: Step) -> None:
    """Members get REBALANCE_IN_PROGRESS from now on, and join again."""
    if group.state is COMPLETING_REBALANCE:
        drop_assignments(group, ErrorCode.rebalance_in_progress, step)
    forget_syncs(group, step)
    is_first = group.state is EMPTY
    group.move_to(PREPARING_REBALANCE, step.now_ms)
    if is_first:
        delay_ms = step.settings.initial_rebalance_delay_ms
        remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        event = InitialDelayExpired(group.group_id, delay_ms, remaining_ms)
        step.set_timer(join_key(group), delay_ms, event)
    elif group.all_joined:
        complete_join(group, step)
    else:
        await_joins(group, step)


def await_joins(group: ClassicGroup, step: Step, at_least_ms: int = 0) -> None:
    """The members have the group's rebalance timeout, which clients choose freely."""
    delay_ms = max(group.rebalance_timeout_ms, at_least_ms)
    step.set_timer(join_key(group), delay_ms, JoinExpired(group.group_id))


def initial_delay_over(group: ClassicGroup, event: InitialDelayExpired, step: Step) -> None:
    """Begins the first generation, or waits on if a member came meanwhile and time is left."""
    if group.state is not PREPARING_REBALANCE:
        return
    if not group.new_member_added or event.remaining_ms == 0:
        complete_join(group, step)
        return
    group.new_member_added = False
    delay_ms = min(step.settings.initial_rebalance_delay_ms, event.remaining_ms)
    remaining_ms = max(event.remaining_ms - event.delay_ms, 0)
    step.set_timer(
        join_key(group), delay_ms, InitialDelayExpired(group.group_id, delay_ms, remaining_ms)
    )


def complete_join(group: ClassicGroup, step: Step) -> None:
    """The time to join is over: begins the next generation with the members that joined."""
    missing = [
        member.member_id
        for member in group.members.values()
        if member.join_token is None and not member.is_static
    ]
    for member_id in missing:
        member = group.members[member_id]
        waited_ms = group.rebalance_timeout_ms
        note(group, step, Why.REBALANCE_TIMEOUT, member, waited_ms=waited_ms)
    if len(missing) == len(group.members):
        begin_empty_generation(group, (), step, lambda later: _join_expires_again(group, later))
        return
    step.cancel_timer(join_key(group))
    for member_id in missing:
        group.remove(member_id)
        forget_heartbeat(group, member_id, step)
    if group.elect_joined_leader():
        _begin_generation(group, step)
    else:
        # Only static members are left and none has come: their sessions decide.
        await_joins(group, step, MISSING_WAIT_MS)


def _join_expires_again(group: ClassicGroup, later: Step) -> None:
    later.set_timer(join_key(group), RETRY_MS, JoinExpired(group.group_id))


def _begin_generation(group: ClassicGroup, step: Step) -> None:
    group.generation += 1
    group.protocol_name = group.select_protocol()
    group.subscribed = group.compute_subscribed()
    group.move_to(COMPLETING_REBALANCE, step.now_ms)
    group.pending_sync = dict.fromkeys(group.members)
    for member in group.members.values():
        group.answer_join(member, group.joined(member.member_id), step)
        await_heartbeat(group, member, step)
        member.is_new = False
    await_syncs(group, step)


def leaves_empty(group: ClassicGroup, leaving: Container[str]) -> bool:
    """Whether no member and no pending member is left once these have gone."""
    return all(member_id in leaving for member_id in (*group.members, *group.pending_members))


def begin_empty_generation(
    group: ClassicGroup,
    leaving: Iterable[str],
    step: Step,
    try_again: Callable[[Step], None] | None = None,
) -> None:
    """Ends all members, and the pending ones that are `leaving`, by a record.

    `try_again` is called if the record is refused. Without it, somebody will ask again.
    """
    value = GroupMetadataValue(
        group.protocol_type or "", group.generation + 1, None, None, step.now_ms, ()
    )
    step.records.append(CoordinatorRecord(GroupMetadataKey(group.group_id), value))
    note_empty(group, step)
    members, leaving = list(group.members.values()), list(leaving)

    def appended(later: Step) -> None:
        for member in members:
            send_away(group, member, later)
        for member_id in dict.fromkeys([*leaving, *(one.member_id for one in members)]):
            group.pending_members.pop(member_id, None)
            forget_heartbeat(group, member_id, later)
        later.cancel_timer(join_key(group))
        forget_syncs(group, later)

    def refused(later: Step, error: ErrorCode) -> None:
        if try_again is not None:
            try_again(later)

    step.when_appended = appended
    step.when_refused = refused


def send_away(group: ClassicGroup, member: Member, step: Step) -> None:
    """Answers the requests of a removed member, so that a living client joins again."""
    error = ErrorCode.unknown_member_id
    if member.join_token is not None:
        step.reply(member.join_token, JoinResult(error, UNKNOWN_MEMBER_ID))
        member.join_token = None
    group.answer_sync(member, SyncResult(error), step)


def drop_assignments(group: ClassicGroup, error: ErrorCode, step: Step) -> None:
    """Answers the members that wait for their assignment with an error."""
    for member in group.members.values():
        member.assignment = EMPTY_ASSIGNMENT
        if group.answer_sync(member, SyncResult(error), step):
            await_heartbeat(group, member, step)
