"""What the deciders of classic groups note for the group's history (`groups.history.events`)."""

from __future__ import annotations

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.member import Member
from ottla.groups.history.events import CLASSIC, Cause, Caused, Emptied, Happened, Who, Why
from ottla.groups.step import Step


def who_is(member: Member) -> Who:
    return Who(member.member_id, member.group_instance_id, member.client_id, member.client_host)


def note(
    group: ClassicGroup,
    step: Step,
    why: Why,
    member: Member | None = None,
    *,
    other_id: str = "",
    waited_ms: int | None = None,
    reason: str = "",
) -> None:
    """The group rebalances, or goes on with it, because of this."""
    who = None if member is None else who_is(member)
    cause = Cause(why, who, other_id=other_id, waited_ms=waited_ms, reason=reason)
    step.committed.append(Caused(group.group_id, CLASSIC, group.generation + 1, step.now_ms, cause))


def note_replaced(group: ClassicGroup, step: Step, member: Member, old_id: str) -> None:
    """A static member came back under another id, and nobody has to rebalance."""
    cause = Cause(Why.REPLACED, who_is(member), other_id=old_id)
    step.committed.append(Happened(group.group_id, CLASSIC, group.generation, step.now_ms, cause))


def note_empty(group: ClassicGroup, step: Step) -> None:
    """The last members go."""
    step.committed.append(Emptied(group.group_id, CLASSIC, group.generation + 1, step.now_ms))
