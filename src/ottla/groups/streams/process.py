"""The processes of the application while tasks are assigned: their members (threads) and load.

Kafka's ProcessState. Where two are equally loaded, the one whose id comes first gets the task:
Kafka takes the one that Java's hash table has first.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

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
        self._by_load: list[tuple[int, str]] | None = None

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
        if self._by_load is None:
            self._by_load = [(count, member_id) for member_id, count in self.counts.items()]
            heapify(self._by_load)
        _, member_id = heappop(self._by_load)
        count = self._add(member_id, task, is_active=is_active)
        heappush(self._by_load, (count, member_id))
        return count


class Processes:
    """All of them."""

    def __init__(self) -> None:
        self.by_id: dict[str, Process] = {}
        self._by_load: list[tuple[float, str]] = []

    def add_member(self, process_id: str, member_id: str) -> Process:
        process = self.by_id.setdefault(process_id, Process(process_id))
        process.counts[member_id] = 0
        return process

    def begin_by_load(self) -> None:
        """Before the first `give`, once tasks were given to members by name."""
        self._by_load = [(process.load, process_id) for process_id, process in self.by_id.items()]
        heapify(self._by_load)

    def give(self, task: TaskId, *, is_active: bool) -> int | None:
        """Gives the task to the least loaded process, a standby task to the least loaded one that
        does not have it. Returns how many the member has that got it; None: no process takes it.
        """
        looked_at: list[Process] = []
        count = None
        while count is None and self._by_load:
            process = self.by_id[heappop(self._by_load)[1]]
            looked_at.append(process)
            if is_active or task not in process.tasks:
                count = process.add_to_least_loaded(task, is_active=is_active)
        for process in looked_at:
            heappush(self._by_load, (process.load, process.process_id))
        return count
