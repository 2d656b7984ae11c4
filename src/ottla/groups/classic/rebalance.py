"""From one generation to the next.

A rebalance gives every member time to join again (at most the group's rebalance timeout), then
chooses a protocol and a leader and begins the generation; members that did not come back are out,
but for static ones. The first rebalance of a group may wait for more members first
(group.initial.rebalance.delay.ms).
"""

from __future__ import annotations

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.member import EMPTY_ASSIGNMENT
from ottla.groups.classic.requests import SyncResult
from ottla.groups.classic.state import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE
from ottla.groups.classic.timers import (
    await_heartbeat,
    await_syncs,
    forget_heartbeat,
    forget_syncs,
    join_key,
)
from ottla.groups.step import InitialDelayExpired, JoinExpired, Step
from ottla.groups.stored import CoordinatorRecord, GroupMetadataKey, GroupMetadataValue
from ottla.protocol.errors import ErrorCode

MISSING_WAIT_MS = 1_000
"""Members that are all missing are not asked for again and again without a pause."""


def rebalance_or_complete_join(group: ClassicGroup, step: Step) -> None:
    """Something about the members changed: begin a rebalance, or see whether one is done."""
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
    """Tells the members, as they ask, to join again."""
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
    """The time to join is over: begins the next generation with those who are here."""
    step.cancel_timer(join_key(group))
    missing = [
        member.member_id
        for member in group.members.values()
        if member.join_token is None and not member.is_static
    ]
    for member_id in missing:
        group.remove(member_id)
        forget_heartbeat(group, member_id, step)
    if not group.elect_joined_leader() and group.members:
        # Only static members are left and none has come: their sessions decide.
        await_joins(group, step, MISSING_WAIT_MS)
    elif group.members:
        _begin_generation(group, step)
    else:
        _begin_empty_generation(group, step)


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


def _begin_empty_generation(group: ClassicGroup, step: Step) -> None:
    generation, now_ms = group.generation + 1, step.now_ms
    value = GroupMetadataValue(group.protocol_type or "", generation, None, None, now_ms, ())
    step.records.append(CoordinatorRecord(GroupMetadataKey(group.group_id), value))

    def refused(later: Step, error: ErrorCode) -> None:
        # The generation before comes back if the broker ends now, and its members' sessions with
        # it; they run out then. Nobody waits for an answer.
        group.become_empty(generation, now_ms)

    step.when_refused = refused


def drop_assignments(group: ClassicGroup, error: ErrorCode, step: Step) -> None:
    """Sends away the members that wait for their assignment."""
    for member in group.members.values():
        member.assignment = EMPTY_ASSIGNMENT
        if group.answer_sync(member, SyncResult(error), step):
            await_heartbeat(group, member, step)
