"""What the deciders of share groups note for the group's history (`groups.history.events`)."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.groups.consumer.assignors.spec import NO_PARTITIONS
from ottla.groups.history.events import (
    SHARE,
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
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.member import Member
from ottla.groups.share.step import Step
from ottla.groups.share.stored import ShareRecord, TargetValue


def who_is(member: Member) -> Who:
    return Who(member.member_id, None, member.client_id, member.client_host)


def note_change(
    group: ShareGroup,
    before: Member,
    after: Member,
    epoch: int,
    step: Step,
    *,
    are_states_due: bool,
) -> None:
    """What this member, or the topics, change; `epoch` is the group's then. `are_states_due`: more
    partitions may be read by now.
    """
    cause = None
    if after.member_id not in group.members:
        cause = Cause(Why.JOINED, who_is(after))
    elif before.subscribed_topics != after.subscribed_topics:
        cause = Cause(Why.SUBSCRIPTION_CHANGED, who_is(after))
    elif epoch != group.epoch:
        cause = Cause(Why.STATES_CHANGED if are_states_due else Why.TOPICS_CHANGED)
    if cause is not None:
        kind = Caused if epoch != group.epoch else Happened
        step.committed.append(kind(group.group_id, SHARE, epoch, step.now_ms, cause))


def note_assigned(
    group: ShareGroup,
    epoch: int,
    members: Iterable[Member],
    records: Iterable[ShareRecord],
    step: Step,
) -> None:
    """The targets for this epoch; those of `records` differ from before."""
    before, after = {}, {}
    for key, value in records:
        if isinstance(key, TargetKey):
            assert isinstance(value, TargetValue)
            before[key.member] = group.target_of(key.member)
            after[key.member] = value.partitions
    clients = {member.member_id: member.client_id for member in members}
    step.committed.append(
        Assigned(group.group_id, SHARE, epoch, step.now_ms, clients, before, after)
    )


def note_reached(group: ShareGroup, member: Member, step: Step) -> None:
    step.committed.append(Reached(group.group_id, member.member_id, member.epoch, step.now_ms))


def note_gone(group: ShareGroup, member: Member, cause: Cause, step: Step) -> None:
    """The member goes."""
    epoch = group.epoch + 1
    lost = {member.member_id: group.targets.get(member.member_id, NO_PARTITIONS)}
    step.committed.append(Caused(group.group_id, SHARE, epoch, step.now_ms, cause, lost))
    if len(group.members) == 1:
        step.committed.append(Emptied(group.group_id, SHARE, epoch, step.now_ms))
