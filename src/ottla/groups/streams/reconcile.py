"""Leads a member to its target, one step at each heartbeat. Kafka's CurrentAssignmentBuilder.

kept      what it has and is to have
revoked   what it has and is not to have: it must give that up first, in its epoch
added     what it is to have and nobody has
unready   what it is to have, but others have: an active task any process, a standby or
          warm-up task the same process (its state has one folder there)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from ottla.groups.streams.group import NOBODY, StreamsGroup
from ottla.groups.streams.member import Member, MemberState
from ottla.groups.streams.tasks import (
    NO_HELD,
    AssignedPartitions,
    HeldTasks,
    Partitions,
    Tasks,
    chosen,
)
from ottla.protocol.errors import ApiError, ErrorCode

_IsTaken: TypeAlias = Callable[[str, int], bool]


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
            if owned is None or owned.has_any(member.pending_revocation):
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

    def _is_kept_back(self, subtopology: str, partition: int) -> bool:
        """This process has it as a standby or warm-up task."""
        task, process = (subtopology, partition), self._member.process_id
        return process in self._group.standby_owners.get(
            task, NOBODY
        ) or process in self._group.warmup_owners.get(task, NOBODY)

    def _is_active_taken(self, subtopology: str, partition: int) -> bool:
        return (subtopology, partition) in self._group.active_owners or self._is_kept_back(
            subtopology, partition
        )

    def _is_copy_taken(self, subtopology: str, partition: int) -> bool:
        owner = self._group.active_owners.get((subtopology, partition))
        return owner == self._member.process_id or self._is_kept_back(subtopology, partition)

    def member(self, epoch: int) -> Member:
        """`epoch` is the one that it stays in while it gives tasks up."""
        has, target = self._member.assigned, self._target
        kept = HeldTasks(
            chosen(has.active, lambda name, number: number in target.active.get(name, ())),
            _both(has.standby, target.standby),
            _both(has.warmup, target.warmup),
        )
        revoked = HeldTasks(
            chosen(has.active, lambda name, number: number not in target.active.get(name, ())),
            _without(has.standby, target.standby),
            _without(has.warmup, target.warmup),
        )
        if revoked and (self._owned is None or self._owned.has_any(revoked)):
            return self._member._replace(
                state=MemberState.UNREVOKED_TASKS,
                epoch=epoch,
                previous_epoch=self._member.epoch,
                assigned=kept,
                pending_revocation=revoked,
            )
        active, active_unready = _free(target.active, kept.active, self._is_active_taken)
        standby, standby_unready = _free(target.standby, kept.standby, self._is_copy_taken)
        warmup, warmup_unready = _free(target.warmup, kept.warmup, self._is_copy_taken)
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


def _both(has: Partitions, target: Partitions) -> Partitions:
    found = {name: numbers & target.get(name, frozenset()) for name, numbers in has.items()}
    return {name: numbers for name, numbers in found.items() if numbers}


def _without(has: Partitions, target: Partitions) -> Partitions:
    found = {name: numbers - target.get(name, frozenset()) for name, numbers in has.items()}
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
        free = frozenset(number for number in wanted if not is_taken(name, number))
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
