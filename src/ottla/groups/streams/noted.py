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
    Reached,
    Who,
    Why,
)
from ottla.groups.streams.configured import ConfiguredTopology
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import Member
from ottla.groups.streams.step import Step
from ottla.groups.streams.stored import StreamsRecord, TargetKey, TargetValue


def who_is(member: Member) -> Who:
    return Who(member.member_id, member.instance_id, member.client_id, member.client_host)


def note_change(
    group: StreamsGroup,
    before: Member,
    after: Member,
    configured: ConfiguredTopology,
    epoch: int,
    step: Step,
) -> None:
    """What this member, the topics or the settings change; `epoch` is the group's then."""
    if epoch == group.epoch:
        return
    configs, had = step.settings.assignment_configs, group.assignment_configs
    if after.member_id not in group.members:
        cause = Cause(Why.JOINED, who_is(after))
    elif after != before:
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
    after: Member | None,
    records: Iterable[StreamsRecord],
    step: Step,
) -> None:
    """The targets for this epoch; those of `records` differ from before. `after`: a member as it is
    now, perhaps a new one.
    """
    old, new = {}, {}
    for key, value in records:
        if isinstance(key, TargetKey):
            assert isinstance(value, TargetValue)
            old[key.member] = group.target_of(key.member).active
            new[key.member] = value.tasks.active
    clients = {name: member.client_id for name, member in group.members.items()}
    if after is not None:
        clients[after.member_id] = after.client_id
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
