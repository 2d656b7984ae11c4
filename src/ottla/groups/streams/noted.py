"""What the deciders of streams groups note for the group's history (`groups.history.events`).

Of tasks only the active ones: copies of their state move for other reasons. They are noted by
subtopology in place of a topic.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.groups.history.events import (
    STREAMS,
    Assigned,
    Cause,
    Caused,
    Emptied,
    Happened,
    Reached,
    Who,
    Why,
)
from ottla.groups.newer_stored import TargetKey
from ottla.groups.streams.configured import ConfiguredTopology
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import Member
from ottla.groups.streams.step import Step
from ottla.groups.streams.stored import StreamsRecord, TargetValue
from ottla.groups.streams.target import Arriving


def who_is(member: Member) -> Who:
    return Who(member.member_id, member.instance_id, member.client_id, member.client_host)


def note_change(
    group: StreamsGroup,
    after: Member,
    replaced: Member | None,
    configured: ConfiguredTopology,
    epoch: int,
    step: Step,
    *,
    bumps: bool,
) -> None:
    """What this member, the topics or the settings change; `epoch` is the group's then. `bumps`:
    the member says something that changes the epoch. `replaced`: whose place it takes.
    """
    if replaced is not None:
        cause = Cause(Why.REPLACED, who_is(after), other_id=replaced.member_id)
        kind = Caused if epoch != group.epoch else Happened
        step.committed.append(kind(group.group_id, STREAMS, epoch, step.now_ms, cause))
        return
    if epoch == group.epoch:
        return
    configs, had = step.settings.assignment_configs, group.assignment_configs
    if after.member_id not in group.members:
        cause = Cause(Why.JOINED, who_is(after))
    elif bumps:
        cause = Cause(Why.SAID_OTHER, who_is(after))
    elif had and configs != had:
        cause = Cause(Why.SETTINGS_CHANGED, details=[f"{name}={value}" for name, value in configs])
    else:
        problem = configured.problem
        cause = Cause(Why.TOPICS_CHANGED, details=() if problem is None else (problem.detail,))
    step.committed.append(Caused(group.group_id, STREAMS, epoch, step.now_ms, cause))


def note_assigned(
    group: StreamsGroup,
    epoch: int,
    arriving: Arriving | None,
    records: Iterable[StreamsRecord],
    step: Step,
) -> None:
    """The targets for this epoch; those of `records` differ from before."""
    old, new = {}, {}
    for key, value in records:
        if isinstance(key, TargetKey):
            assert isinstance(value, TargetValue)
            is_own = arriving is not None and key.member == arriving.member.member_id
            former_id = arriving.former_id if arriving is not None and is_own else key.member
            old[key.member] = group.target_of(former_id).active
            new[key.member] = value.tasks.active
    clients = {name: member.client_id for name, member in group.members.items()}
    if arriving is not None:
        clients.pop(arriving.former_id, None)
        clients[arriving.member.member_id] = arriving.member.client_id
    step.committed.append(Assigned(group.group_id, STREAMS, epoch, step.now_ms, clients, old, new))


def note_reached(group: StreamsGroup, member: Member, step: Step) -> None:
    step.committed.append(Reached(group.group_id, member.member_id, member.epoch, step.now_ms))


def note_gone(
    group: StreamsGroup, member: Member, why: Why, waited_ms: int | None, step: Step
) -> None:
    """The member goes."""
    epoch = group.epoch + 1
    lost = {member.member_id: group.target_of(member.member_id).active}
    cause = Cause(why, who_is(member), waited_ms=waited_ms)
    step.committed.append(Caused(group.group_id, STREAMS, epoch, step.now_ms, cause, lost))
    if len(group.members) == 1:
        step.committed.append(Emptied(group.group_id, STREAMS, epoch, step.now_ms))
