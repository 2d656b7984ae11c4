"""Leads a member to its target, one step at each heartbeat. Kafka's CurrentAssignmentBuilder.

kept      what it has and is to have
revoked   what it has and is not to have: it must give that up first, in its epoch
added     what it is to have and nobody has
unready   what it is to have, but others have: an active task any process, a standby or
          warm-up task another member of the same process (its state has one folder there)

A task that the member has and is to have in another role stays where it is:

    active to standby   it is a standby task at once, while the active one is given up
    standby, warm-up    the one becomes the other at once
    copy to active      it stays a copy until nobody has the active task, and is not given up
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

from ottla.groups.streams.group import NOBODY, StreamsGroup
from ottla.groups.streams.member import Member, MemberState
from ottla.groups.streams.tasks import (
    NO_HELD,
    AssignedPartitions,
    HeldTasks,
    Partitions,
    TaskId,
    Tasks,
    chosen,
    has_task,
)
from ottla.protocol.errors import ApiError, ErrorCode

_IsTaken: TypeAlias = Callable[[TaskId], bool]


def reconcile(
    member: Member, target_epoch: int, target: Tasks, group: StreamsGroup, owned: Tasks | None
) -> Member:
    """The member after this step. `owned` is what it says that it has; None: it does not say.

    Raises ApiError (FENCED_MEMBER_EPOCH) where its state is of a later version.
    """
    next_of = _Next(member, target_epoch, target, group, owned)
    match member.state:
        case MemberState.STABLE:
            return member if member.epoch == target_epoch else next_of.member(member.epoch)
        case MemberState.UNREVOKED_TASKS:
            if _has_not_released(member.pending_revocation, owned):
                return member
            return next_of.member(member.epoch + 1)
        case MemberState.UNRELEASED_TASKS:
            return next_of.member(member.epoch)
        case MemberState.UNKNOWN:
            if owned is None or owned:
                raise ApiError(
                    ErrorCode.fenced_member_epoch,
                    "The streams group member is in a unknown state. The member must abandon all"
                    " its tasks and rejoin.",
                )
            return next_of.member(target_epoch)


class _Next:
    """The next step of one member."""

    def __init__(
        self,
        member: Member,
        target_epoch: int,
        target: Tasks,
        group: StreamsGroup,
        owned: Tasks | None,
    ) -> None:
        self._member = member
        self._target_epoch = target_epoch
        self._target = target
        self._group = group
        self._owned = owned

    def _is_active_taken(self, task: TaskId) -> bool:
        has, group = self._member.assigned, self._group
        return (
            task in group.active_owners
            or self._is_kept_back(group.standby_owners, task, has.standby)
            or self._is_kept_back(group.warmup_owners, task, has.warmup)
        )

    def _is_standby_taken(self, task: TaskId) -> bool:
        has, group, process = self._member.assigned, self._group, self._member.process_id
        is_run = group.active_owners.get(task) == process and not has_task(has.active, task)
        return (
            is_run
            or process in group.standby_owners.get(task, NOBODY)
            or self._is_kept_back(group.warmup_owners, task, has.warmup)
        )

    def _is_warmup_taken(self, task: TaskId) -> bool:
        has, group, process = self._member.assigned, self._group, self._member.process_id
        return (
            group.active_owners.get(task) == process
            or self._is_kept_back(group.standby_owners, task, has.standby)
            or process in group.warmup_owners.get(task, NOBODY)
        )

    def _is_kept_back(
        self, owners: Mapping[TaskId, frozenset[str]], task: TaskId, own: Partitions
    ) -> bool:
        """Another member of this process has it."""
        return self._member.process_id in owners.get(task, NOBODY) and not has_task(own, task)

    def member(self, epoch: int) -> Member:
        """`epoch` is the one that it stays in while it gives tasks up."""
        has, target = self._member.assigned, self._target
        kept = HeldTasks(
            chosen(has.active, lambda name, number: number in target.active.get(name, ())),
            _both(has.standby, target.standby),
            _both(has.warmup, target.warmup),
        )
        active, active_unready = _free(target.active, kept.active, self._is_active_taken)
        standby, standby_unready = _free(target.standby, kept.standby, self._is_standby_taken)
        warmup, warmup_unready = _free(target.warmup, kept.warmup, self._is_warmup_taken)
        # Other roles of what it has, at once.
        to_standby = _united(_both(standby, has.active), _both(standby, has.warmup))
        to_warmup = _both(warmup, has.standby)
        revoked = HeldTasks(
            chosen(has.active, lambda name, number: number not in target.active.get(name, ())),
            _without(_without(_without(has.standby, target.standby), to_warmup), target.active),
            _without(_without(_without(has.warmup, target.warmup), to_standby), target.active),
        )
        is_unrevoked = bool(revoked) and _has_not_released(revoked, self._owned)
        granted = {} if is_unrevoked else active
        kept = HeldTasks(
            kept.active,
            _united(_united(kept.standby, to_standby), self._promoted(has.standby, granted)),
            _united(_united(kept.warmup, to_warmup), self._promoted(has.warmup, granted)),
        )
        if is_unrevoked:
            return self._member._replace(
                state=MemberState.UNREVOKED_TASKS,
                epoch=epoch,
                previous_epoch=self._member.epoch,
                assigned=kept,
                pending_revocation=revoked,
            )
        is_unready = active_unready or standby_unready or warmup_unready
        return self._member._replace(
            state=MemberState.UNRELEASED_TASKS if is_unready else MemberState.STABLE,
            epoch=self._target_epoch,
            previous_epoch=self._member.epoch,
            assigned=HeldTasks(
                _with_epochs(kept.active, active, self._target_epoch),
                _united(kept.standby, standby),
                _united(kept.warmup, warmup),
            ),
            pending_revocation=NO_HELD,
        )

    def _promoted(self, copies: Partitions, granted: Partitions) -> Partitions:
        """Its copies that are to be active, and are not yet."""
        return _without(_both(copies, self._target.active), granted)


def _has_not_released(revoked: HeldTasks, owned: Tasks | None) -> bool:
    return owned is None or owned.has_any(revoked)


def _both(has: Partitions, others: Mapping[str, Collection[int]]) -> Partitions:
    found = {name: numbers.intersection(others.get(name, ())) for name, numbers in has.items()}
    return {name: numbers for name, numbers in found.items() if numbers}


def _without(has: Partitions, others: Partitions) -> Partitions:
    found = {name: numbers.difference(others.get(name, ())) for name, numbers in has.items()}
    return {name: numbers for name, numbers in found.items() if numbers}


def _free(
    target: Partitions,
    kept: Mapping[str, Mapping[int, int] | frozenset[int]],
    is_taken: _IsTaken,
) -> tuple[Partitions, bool]:
    """The tasks to add that are free, and whether others are taken."""
    found, has_taken = {}, False
    for name, numbers in target.items():
        wanted = numbers.difference(kept.get(name, ()))
        free = frozenset(number for number in wanted if not is_taken((name, number)))
        has_taken = has_taken or len(free) < len(wanted)
        if free:
            found[name] = free
    return found, has_taken


def _with_epochs(kept: AssignedPartitions, added: Partitions, epoch: int) -> AssignedPartitions:
    names = sorted(kept.keys() | added.keys())
    return {
        name: {**kept.get(name, {}), **dict.fromkeys(added.get(name, ()), epoch)} for name in names
    }


def _united(kept: Partitions, added: Partitions) -> Partitions:
    names = sorted(kept.keys() | added.keys())
    return {name: kept.get(name, frozenset()) | added.get(name, frozenset()) for name in names}
