"""Tasks of a streams group: each is a subtopology and a partition of what that reads.

An active task processes; a standby task keeps a copy of its state; a warm-up task builds one up
before the active task moves. Kafka's TasksTuple and TasksTupleWithEpochs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

Partitions: TypeAlias = Mapping[str, frozenset[int]]
"""By subtopology; none has no partitions."""
AssignedPartitions: TypeAlias = Mapping[str, Mapping[int, int]]
"""The same, with the epoch in which the member got each."""
TaskId: TypeAlias = tuple[str, int]
NO_PARTITIONS: Final[Partitions] = {}
_NO_ASSIGNED: Final[AssignedPartitions] = {}


class Tasks(NamedTuple):
    """What a member is to have, or says that it has."""

    active: Partitions = NO_PARTITIONS
    standby: Partitions = NO_PARTITIONS
    warmup: Partitions = NO_PARTITIONS

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    def has_any(self, others: HeldTasks) -> bool:
        """Whether one of the others is among these, of the same kind."""
        return any(
            not partitions.isdisjoint(theirs.get(subtopology, ()))
            for mine, theirs in zip(self, others, strict=True)
            for subtopology, partitions in mine.items()
        )


class HeldTasks(NamedTuple):
    """What a member has as far as the group knows."""

    active: AssignedPartitions = _NO_ASSIGNED
    standby: Partitions = NO_PARTITIONS
    warmup: Partitions = NO_PARTITIONS

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    @property
    def size(self) -> int:
        """How many tasks."""
        return sum(len(partitions) for kind in self for partitions in kind.values())


NO_TASKS: Final = Tasks()
NO_HELD: Final = HeldTasks()


def each(partitions: Mapping[str, Mapping[int, int] | frozenset[int]]) -> Iterator[TaskId]:
    """The tasks one by one."""
    for subtopology, numbers in partitions.items():
        for number in numbers:
            yield subtopology, number


def has_task(partitions: Mapping[str, Mapping[int, int] | frozenset[int]], task: TaskId) -> bool:
    """Whether the task is among them."""
    subtopology, number = task
    return number in partitions.get(subtopology, ())


def by_subtopology(tasks: Iterator[TaskId] | list[TaskId]) -> Partitions:
    """Tasks by their subtopologies, which are sorted."""
    found: dict[str, set[int]] = {}
    for subtopology, partition in tasks:
        found.setdefault(subtopology, set()).add(partition)
    return {name: frozenset(found[name]) for name in sorted(found)}


def chosen(
    partitions: AssignedPartitions, is_chosen: Callable[[str, int], bool]
) -> AssignedPartitions:
    """Those that are chosen, with their epochs."""
    found = {}
    for subtopology, epochs in partitions.items():
        kept = {number: epoch for number, epoch in epochs.items() if is_chosen(subtopology, number)}
        if kept:
            found[subtopology] = kept
    return found
