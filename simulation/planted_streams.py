"""Bugs of streams groups (KIP-1071), as patches like those in `planted`. They are looked for in
runs with `--streams`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ottla.groups.newer_stored import GroupKey
from ottla.groups.offsets import commit
from ottla.groups.streams import (
    departure,
    describe_topology,
    heartbeat,
    reconcile,
    sender,
    shard,
)
from ottla.groups.streams.departure import known_member
from ottla.groups.streams.describe import DescribedStreamsGroup, describe
from ottla.groups.streams.group import Soft, StreamsGroup
from ottla.groups.streams.member import LEAVE_STATIC_EPOCH, Member
from ottla.groups.streams.offsets import NO_TASK_OFFSETS, MemberTaskOffsets
from ottla.groups.streams.shard import StreamsGroupShard
from ottla.groups.streams.sticky import _Assignor
from ottla.groups.streams.stored import NOT_DESCRIBED, GroupValue, StreamsRecord
from ottla.groups.streams.tasks import NO_TASKS
from ottla.groups.streams.timers import forget
from ottla.groups.streams.written import undescribable_record
from simulation.faults import Fault
from simulation.pace import Pace
from simulation.planted import Patch, Sighting


def owners_are_not_asked(patch: Patch) -> None:
    """A member gets its target's active tasks while others still have them."""
    patch.setattr(reconcile._Next, "_is_active_taken", lambda *_: False)


def revocations_are_not_awaited(patch: Patch) -> None:
    """A member is taken to have given up what it was just told to."""
    right = reconcile.reconcile

    def at_once(member: Any, epoch: int, target: Any, group: Any, owned: Any) -> Any:
        return right(member, epoch, target, group, NO_TASKS)

    patch.setattr(heartbeat, "reconcile", at_once)


def departed_members_keep_their_tasks(patch: Patch) -> None:
    """The owner of a task stays when the member has gone."""
    right = StreamsGroup._apply_current

    def apply(self: StreamsGroup, member_id: str, value: Any) -> None:
        owners = dict(self.active_owners)
        right(self, member_id, value)
        if value is None:
            self.active_owners.update(owners)

    patch.setattr(StreamsGroup, "_apply_current", apply)


def a_new_coordinator_expires_nobody(patch: Patch) -> None:
    """The members of a group that is loaded have no session timeout until their next heartbeat."""
    patch.setattr(StreamsGroupShard, "loaded", lambda *_: None)


def departures_begin_no_epoch(patch: Patch) -> None:
    """What a member had is assigned to nobody when it has gone."""
    right = departure.remove

    def remove(group: Any, member: Any, step: Any, *given: Any) -> None:
        right(group, member, step, *given)
        step.records[:] = [each for each in step.records if not isinstance(each.key, GroupKey)]

    patch.setattr(departure, "remove", remove)


def new_topics_are_not_noticed(patch: Patch) -> None:
    """The topology is compared with the topics of the cluster once."""
    right = heartbeat._compared

    def compared(group: Any, topology: Any, topics: Any) -> Any:
        last = group.soft.compared
        return right(group, topology, topics) if last is None else last

    patch.setattr(heartbeat, "_compared", compared)


def standbys_are_beside_their_task(patch: Patch) -> None:
    """A copy of a task's state may be where the task is."""
    right = _Assignor._give_standby_back

    def give(self: Any, task: Any) -> bool:
        had = self._had_active.get(task)
        if had is not None:
            process, member_id = had
            self._counted(process.add(member_id, task, is_active=False), is_active=False)
            return True
        return right(self, task)

    patch.setattr(_Assignor, "_give_standby_back", give)


def former_members_commit(patch: Patch) -> None:
    """Any epoch of any member may commit."""
    patch.setattr(commit, "check_streams", lambda *_, **__: None)


def answers_are_not_repeated(patch: Patch) -> None:
    """A member that did not get an answer never hears of the tasks in it, as in Apache Kafka."""
    patch.setattr(heartbeat, "has_missed", lambda *_: False)


def places_are_taken_from_the_living(patch: Patch) -> None:
    """Who comes with the instance id of a static member gets its place, whether it left or not."""
    right = sender._in_place_of

    def in_place_of(old: Member, member_id: str) -> Member:
        return right(old._replace(epoch=LEAVE_STATIC_EPOCH), member_id)

    patch.setattr(sender, "_in_place_of", in_place_of)


def former_static_members_go_on(patch: Patch) -> None:
    """A request with the instance id and the epoch is that of the member."""

    def known(group: StreamsGroup, instance_id: str, member_id: str) -> Member:
        return group.static_member(instance_id) or known_member(group, member_id)

    patch.setattr(sender, "known_static_member", known)


def places_are_kept_for_ever(patch: Patch) -> None:
    """A static member that left for a while has no session that ends."""
    right = departure.leave

    def leave(group: StreamsGroup, request: Any, step: Any) -> Any:
        result = right(group, request, step)
        forget(group.group_id, request.member_id, step)
        return result

    patch.setattr(heartbeat, "leave", leave)


def one_kind_of_offsets_replaces_the_other(patch: Patch) -> None:
    """A member that says only one of both is taken to have taken the other one back."""

    def updated(self: MemberTaskOffsets, offsets: Any, end_offsets: Any) -> MemberTaskOffsets:
        return MemberTaskOffsets(offsets or NO_TASK_OFFSETS, end_offsets or NO_TASK_OFFSETS)

    patch.setattr(MemberTaskOffsets, "updated", updated)


def offsets_of_replaced_members_stay(patch: Patch) -> None:
    """The group knows what a static member said, after another process got its place."""
    patch.setattr(heartbeat, "_kept", lambda soft, *_: soft)


def epochs_forget_the_description(patch: Patch) -> None:
    """The record of the group's next epoch does not say that the topology is described."""

    def value(*given: Any) -> GroupValue:
        return GroupValue(*given)._replace(described_epoch=NOT_DESCRIBED)

    patch.setattr(heartbeat, "GroupValue", value)


def all_members_are_asked(patch: Patch) -> None:
    """Each heartbeat asks for the description until it is there."""
    right = describe_topology.asked

    def asked(group: StreamsGroup, epoch: int, soft: Soft, now_ms: int) -> Soft | None:
        return right(group, epoch, soft._replace(asked=None), now_ms)

    patch.setattr(heartbeat, "asked", asked)


def descriptions_outlive_their_group(patch: Patch) -> None:
    """They are looked up by the name of the group, which may be made again."""
    known: dict[str, bytes] = {}

    def described(group: StreamsGroup) -> DescribedStreamsGroup:
        found = describe(group)
        if found.description is not None:
            known.setdefault(group.group_id, found.description)
        return found._replace(description=known.get(group.group_id))

    patch.setattr(shard, "describe", described)


def too_large_descriptions_are_asked_for_again(patch: Patch) -> None:
    """That one is refused for good is not stored."""
    patch.setattr(describe_topology, "undescribable_record", _no_change)


def _no_change(group: StreamsGroup, topology_epoch: int) -> StreamsRecord:
    return undescribable_record(group, group.undescribable_epoch)


def often(kind: str) -> tuple[Fault, ...]:
    """One fault ten times, of one process after the other."""
    return tuple(Fault(1_500 + 700 * each, kind, 1, 2, 150, each) for each in range(10))


PLANTED_STREAMS: Final[dict[Callable[[Patch], None], Sighting]] = {
    owners_are_not_asked: Sighting(3, pace=Pace.SWIFT),
    revocations_are_not_awaited: Sighting(8, pace=Pace.SWIFT),
    departed_members_keep_their_tasks: Sighting(1, pace=Pace.SWIFT),
    a_new_coordinator_expires_nobody: Sighting(2),
    departures_begin_no_epoch: Sighting(1),
    new_topics_are_not_noticed: Sighting(pace=Pace.SWIFT),
    standbys_are_beside_their_task: Sighting(1, pace=Pace.SWIFT),
    former_members_commit: Sighting(0, pace=Pace.SWIFT),
    answers_are_not_repeated: Sighting(28, pace=Pace.SWIFT),
    places_are_taken_from_the_living: Sighting(101, often("kill member"), Pace.SWIFT),
    former_static_members_go_on: Sighting(1, often("replace threads"), Pace.SWIFT),
    places_are_kept_for_ever: Sighting(105, often("stop process"), Pace.SWIFT),
    one_kind_of_offsets_replaces_the_other: Sighting(pace=Pace.SWIFT),
    offsets_of_replaced_members_stay: Sighting(0, often("stop process"), Pace.SWIFT),
    epochs_forget_the_description: Sighting(pace=Pace.SWIFT),
    all_members_are_asked: Sighting(pace=Pace.SWIFT),
    descriptions_outlive_their_group: Sighting(0, often("new application"), Pace.SWIFT),
    too_large_descriptions_are_asked_for_again: Sighting(0, often("new application"), Pace.SWIFT),
}
