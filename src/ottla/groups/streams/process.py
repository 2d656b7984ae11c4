"""The processes of the application while tasks are assigned: their members (threads) and load.

Kafka's ProcessState. Which of two that are equally loaded gets a task: see `java_order`.
"""

from __future__ import annotations

from ottla.groups.streams.java_order import JavaQueue, order_of_computed, order_of_puts
from ottla.groups.streams.tasks import TaskId


class Process:
    """Members, the tasks of each, and the load: tasks per member."""

    __slots__ = ("_by_load", "active", "counts", "process_id", "standby", "task_count", "tasks")

    def __init__(self, process_id: str) -> None:
        self.process_id = process_id
        self.counts: dict[str, int] = {}
        """Tasks of each member."""
        self.active: dict[str, list[TaskId]] = {}
        self.standby: dict[str, list[TaskId]] = {}
        self.tasks: set[TaskId] = set()
        self.task_count = 0
        self._by_load: JavaQueue[str] | None = None

    @property
    def load(self) -> float:
        return self.task_count / len(self.counts)

    def add(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        """Gives the task to a member; returns how many that has now."""
        self._by_load = None
        return self._add(member_id, task, is_active=is_active)

    def _add(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        self.tasks.add(task)
        self.task_count += 1
        (self.active if is_active else self.standby).setdefault(member_id, []).append(task)
        self.counts[member_id] += 1
        return self.counts[member_id]

    def add_to_least_loaded(self, task: TaskId, *, is_active: bool) -> int:
        """Gives the task to the member that has the fewest; returns how many that has now."""
        if len(self.counts) == 1:
            return self._add(next(iter(self.counts)), task, is_active=is_active)
        if self._by_load is None:
            self._by_load = JavaQueue()
            for member_id in order_of_puts(self.counts):
                self._by_load.add(self.counts[member_id], member_id)
        member_id = self._by_load.take()
        count = self._add(member_id, task, is_active=is_active)
        self._by_load.add(count, member_id)
        return count


class Processes:
    """All of them."""

    def __init__(self) -> None:
        self.by_id: dict[str, Process] = {}
        self._of_members: list[str] = []
        """The id of each member's process."""
        self._by_load: JavaQueue[Process] = JavaQueue()

    def add_member(self, process_id: str, member_id: str) -> Process:
        process = self.by_id.setdefault(process_id, Process(process_id))
        process.counts[member_id] = 0
        self._of_members.append(process_id)
        return process

    def begin_by_load(self) -> None:
        """Before the first `give`, once tasks were given to members by name."""
        self._by_load = JavaQueue()
        for process_id in order_of_computed(self._of_members, len(self._of_members)):
            process = self.by_id[process_id]
            self._by_load.add(process.load, process)

    def give(self, task: TaskId, *, is_active: bool) -> int | None:
        """Gives the task to the least loaded process, a standby task to the least loaded one that
        does not have it. Returns how many the member has that got it; None: no process takes it.
        """
        looked_at: list[Process] = []
        count = None
        while count is None and self._by_load:
            process = self._by_load.take()
            looked_at.append(process)
            if is_active or task not in process.tasks:
                count = process.add_to_least_loaded(task, is_active=is_active)
        for process in reversed(looked_at):
            self._by_load.add(process.load, process)
        return count
