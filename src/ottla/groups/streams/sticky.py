"""The assignor of streams groups, "sticky": tasks stay where they were, as far as the load allows.

1. An active task goes to the member that has it, then to one that has a copy of its state, both
   within that member's share; what is left goes to the least loaded process and member.
2. A standby task goes to another process than the others of the same task: where the task is active
   or where there is a copy, then to the least loaded.

Who has a copy: members that have the standby task, then those that say how far they are in its
changelogs, the furthest first. Kafka's StickyTaskAssignor of 4.4, which assigns no warm-up tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.groups.streams.configured import ConfiguredSubtopology
from ottla.groups.streams.java_order import order_of_puts
from ottla.groups.streams.offsets import NO_TASK_OFFSETS, TaskOffsets
from ottla.groups.streams.process import Process, Processes
from ottla.groups.streams.tasks import HeldTasks, TaskId, Tasks, by_subtopology, each


class MemberSpec(NamedTuple):
    """What the assignor knows of a member: its process, and its tasks now."""

    process_id: str
    tasks: Tasks | HeldTasks
    offsets: TaskOffsets = NO_TASK_OFFSETS
    """How far it says that states of tasks are."""


def assign(
    members: Mapping[str, MemberSpec],
    subtopologies: Mapping[str, ConfiguredSubtopology],
    standby_replicas: int,
) -> dict[str, Tasks]:
    """The tasks of each member; there is one at least."""
    assignor = _Assignor(members, subtopologies, standby_replicas)
    assignor.assign_active(_task_ids(subtopologies.items()))
    if standby_replicas > 0:
        stateful = ((name, each) for name, each in subtopologies.items() if each.is_stateful)
        assignor.assign_standby(_task_ids(stateful))
    return assignor.result()


def _task_ids(subtopologies: Iterable[tuple[str, ConfiguredSubtopology]]) -> list[TaskId]:
    return [(name, index) for name, each in subtopologies for index in range(each.task_count)]


class _Copy(NamedTuple):
    """Of a task's state."""

    member: tuple[Process, str]
    kind: int
    """0: it has the standby task; 1: it only says how far it is."""
    offset: int

    def rank(self) -> tuple[int, int]:
        return self.kind, -self.offset


class _Share:
    """How many tasks each member may have; the last ones have one less if they do not divide."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.per_member = -(-tasks // members)

    def has_now(self, count: int) -> None:
        """A member has so many: the full ones do not count any more."""
        if count == self.per_member:
            self._members -= 1
            self._tasks -= count
            self.per_member = -(-self._tasks // self._members) if self._members else 0


class _Assignor:
    def __init__(
        self,
        members: Mapping[str, MemberSpec],
        subtopologies: Mapping[str, ConfiguredSubtopology],
        standby_replicas: int,
    ) -> None:
        self._members = members
        self._standby_replicas = standby_replicas
        self._processes = Processes()
        active = sum(each.task_count for each in subtopologies.values())
        stateful = sum(each.task_count for each in subtopologies.values() if each.is_stateful)
        self._active_share = _Share(active, len(members))
        self._share = _Share(active + stateful * standby_replicas, len(members))
        self._had_active: dict[TaskId, tuple[Process, str]] = {}
        copies: dict[TaskId, list[_Copy]] = {}
        for member_id in order_of_puts(members):
            spec = members[member_id]
            had = self._processes.add_member(spec.process_id, member_id), member_id
            self._had_active.update(dict.fromkeys(each(spec.tasks.active), had))
            standby = set(each(spec.tasks.standby))
            for task in standby:
                copies.setdefault(task, []).append(_Copy(had, 0, spec.offsets.get(task, 0)))
            for task, offset in spec.offsets.items():
                if task not in standby:
                    copies.setdefault(task, []).append(_Copy(had, 1, offset))
        self._copies = {
            task: [each.member for each in sorted(its, key=_Copy.rank)]
            for task, its in copies.items()
        }

    def assign_active(self, tasks: list[TaskId]) -> None:
        left = []
        for task in sorted(tasks, key=_by_partition):
            had = self._had_active.get(task)
            if had is None or not self._give_active(*had, task):
                left.append(task)
        rest = []
        for task in left:
            had = self._least_loaded_of(self._copies.get(task, []), None)
            if had is None or not self._give_active(*had, task):
                rest.append(task)
        self._processes.begin_by_load()
        for task in sorted(rest):
            count = self._processes.give(task, is_active=True)
            assert count is not None, "there is a member"
            self._counted(count, is_active=True)

    def _give_active(self, process: Process, member_id: str, task: TaskId) -> bool:
        """Within the member's share of active tasks; False: it has that already."""
        if process.counts[member_id] >= self._active_share.per_member:
            return False
        self._counted(process.add(member_id, task, is_active=True), is_active=True)
        return True

    def _counted(self, count: int, *, is_active: bool) -> None:
        if is_active:
            self._active_share.has_now(count)
        self._share.has_now(count)

    def _least_loaded_of(
        self, members: list[tuple[Process, str]], task: TaskId | None
    ) -> tuple[Process, str] | None:
        """One of those with a copy; with a task, one whose process does not have that now. As Kafka
        does, a later one is taken only if its process and itself have less.
        """
        candidate = None
        load, count = 0.0, 0
        for process, member_id in members:
            if task is not None and task in process.tasks:
                continue
            its_load, its_count = process.load, process.counts[member_id]
            if candidate is None or (its_load < load and its_count < count):
                load, count = its_load, its_count
                candidate = process, member_id
        return candidate

    def assign_standby(self, tasks: list[TaskId]) -> None:
        to_least_loaded: list[tuple[TaskId, int]] = []
        for task in sorted(tasks, key=_by_partition, reverse=True):
            for given in range(self._standby_replicas):
                if not self._give_standby_back(task):
                    to_least_loaded.append((task, self._standby_replicas - given))
                    break
        self._processes.begin_by_load()
        for task, wanted in sorted(to_least_loaded, reverse=True):
            for _ in range(wanted):
                count = self._processes.give(task, is_active=False)
                if count is None:
                    break  # there are fewer processes than copies
                self._counted(count, is_active=False)

    def _give_standby_back(self, task: TaskId) -> bool:
        """To the member that has the task, or one with a copy."""
        had = self._had_active.get(task)
        if had is not None:
            process, member_id = had
            if task not in process.tasks and self._has_room(process, member_id):
                self._counted(process.add(member_id, task, is_active=False), is_active=False)
                return True
        had = self._least_loaded_of(self._copies.get(task, []), task)
        if had is None or not self._has_room(*had):
            return False
        process, member_id = had
        self._counted(process.add(member_id, task, is_active=False), is_active=False)
        return True

    def _has_room(self, process: Process, member_id: str) -> bool:
        return process.counts[member_id] < self._share.per_member

    def result(self) -> dict[str, Tasks]:
        found = {}
        for member_id, spec in self._members.items():
            process = self._processes.by_id[spec.process_id]
            found[member_id] = Tasks(
                by_subtopology(process.active.get(member_id, [])),
                by_subtopology(process.standby.get(member_id, [])),
            )
        return found


def _by_partition(task: TaskId) -> tuple[int, str]:
    subtopology, partition = task
    return partition, subtopology
