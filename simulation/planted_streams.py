"""Bugs of streams groups (KIP-1071), as patches like those in `planted`. They are looked for in
runs with `--streams`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ottla.groups.offsets import commit
from ottla.groups.streams import departure, heartbeat, reconcile
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.shard import StreamsGroupShard
from ottla.groups.streams.sticky import _Assignor
from ottla.groups.streams.stored import GroupKey
from ottla.groups.streams.tasks import NO_TASKS
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


PLANTED_STREAMS: Final[dict[Callable[[Patch], None], Sighting]] = {
    owners_are_not_asked: Sighting(3, pace=Pace.SWIFT),
    revocations_are_not_awaited: Sighting(8, pace=Pace.SWIFT),
    departed_members_keep_their_tasks: Sighting(1, pace=Pace.SWIFT),
    a_new_coordinator_expires_nobody: Sighting(2, pace=Pace.SWIFT),
    departures_begin_no_epoch: Sighting(10, pace=Pace.SWIFT),
    new_topics_are_not_noticed: Sighting(pace=Pace.SWIFT),
    standbys_are_beside_their_task: Sighting(1, pace=Pace.SWIFT),
    former_members_commit: Sighting(1, pace=Pace.SWIFT),
    answers_are_not_repeated: Sighting(2, pace=Pace.SWIFT),
}
