"""What the members of a streams group were told, held against what KIP-1071 promises. Pure.

    one member at a time      has an active task, until it gives it up or is no member any more
    one member in an epoch    is told that it has an active task
    epochs                    of a member do not go back
    commits                   of a task are not taken back, and none of a former member is taken

A coordinator that was replaced and does not know it yet may say what was once so. So an answer
counts only if one broker alone was the coordinator from the request to its answer. While a
group is removed, the numbers begin again: answers to requests from before do not count either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

Task: TypeAlias = tuple[str, int]
"""Subtopology and partition."""


class Answered(NamedTuple):
    """Who answered a request, and when."""

    broker: int
    sent_ms: int
    received_ms: int


@dataclass(eq=False, slots=True)
class Life:
    """A member from the time that it joins until it has left or hears that it is none."""

    member: int
    member_id: str
    epoch: int = 0
    held: set[Task] = field(default_factory=set)
    """Active tasks that it was told, and has not given up."""
    doubts: list[tuple[int, str]] = field(default_factory=list)
    """If it goes on with a request sent after this time, two had a task."""


class StreamsLedger:
    """Of one group. What is wrong goes to `found`."""

    def __init__(
        self, has_led: Callable[[int, int, int], bool], found: Callable[[str], None]
    ) -> None:
        """`has_led(broker, from ms, to ms)`: whether it alone was the coordinator throughout."""
        self._has_led = has_led
        self._found = found
        self.lives: list[Life] = []
        self.told_count = 0
        self._told: dict[tuple[int, Task], str] = {}
        """By epoch and task: who was told so."""
        self._epochs: dict[str, int] = {}
        """By member id: its last epoch."""
        self._removed_ms = -1
        self._committed: dict[Task, int] = {}
        """What was acknowledged."""
        self._in_doubt: dict[Task, int] = {}
        """The lowest offset of a commit without an answer: it may be carried out at any time."""
        self.unsure: set[str] = set()
        """Subtopologies whose offsets an operator may have removed."""

    # Members.

    def joins(self, member: int, member_id: str) -> Life:
        """A member is about to join, or to join again."""
        life = Life(member, member_id)
        self.lives.append(life)
        return life

    def ended(self, life: Life) -> None:
        """It leaves, heard that it is no member, or was killed."""
        if life in self.lives:
            self.lives.remove(life)

    def went_on(self, life: Life, epoch: int, answer: Answered) -> None:
        """A heartbeat was answered without an error."""
        if not self._counts(answer):
            life.epoch = epoch
            return
        for since_ms, text in life.doubts:
            if since_ms < answer.sent_ms:
                self._found(text)
        life.doubts = [each for each in life.doubts if each[0] >= answer.sent_ms]
        last = self._epochs.get(life.member_id, 0)
        if epoch < last:
            self._found(
                f"member {life.member} was in epoch {last}, and is in {epoch} at"
                f" {answer.received_ms} ms"
            )
        life.epoch = self._epochs[life.member_id] = epoch

    def told(self, life: Life, active: Iterable[Task], answer: Answered) -> None:
        """An answer, after `went_on`, has the member's active tasks."""
        self.told_count += 1
        new = set(active)
        if self._counts(answer):
            for task in sorted(new):
                self._check_alone(life, task, answer)
        life.held |= new

    def _check_alone(self, life: Life, task: Task, answer: Answered) -> None:
        name, at_ms = f"{task[0]}_{task[1]}", answer.received_ms
        other_id = self._told.setdefault((life.epoch, task), life.member_id)
        if other_id != life.member_id:
            self._found(
                f"members {other_id} and {life.member_id} both have task {name} in epoch"
                f" {life.epoch}"
            )
        for other in self.lives:
            if other.member_id != life.member_id and task in other.held:
                text = (
                    f"task {name} was given to member {life.member} by {at_ms} ms, while member"
                    f" {other.member} had it, which went on"
                )
                other.doubts.append((at_ms, text))

    def gave_up(self, life: Life, tasks: Iterable[Task]) -> None:
        """The member works on these no longer."""
        life.held.difference_update(tasks)

    def _counts(self, answer: Answered) -> bool:
        return answer.sent_ms > self._removed_ms and self._has_led(*answer)

    def removed(self, at_ms: int) -> None:
        """The group is no longer there."""
        self._removed_ms = at_ms
        self._told.clear()
        self._epochs.clear()
        for life in self.lives:
            life.doubts.clear()

    # Commits.

    def committed(self, task: Task, offset: int, answer: Answered) -> None:
        """A commit was acknowledged."""
        if self._has_led(*answer):
            self._committed[task] = max(offset, self._committed.get(task, 0))

    def unanswered(self, task: Task, offset: int) -> None:
        """A commit got no answer."""
        self._in_doubt[task] = min(offset, self._in_doubt.get(task, offset))

    def known(self, task: Task) -> int:
        """The least that the group must know of the task, if it is asked from now on."""
        known = self._committed.get(task, 0)
        return min(known, self._in_doubt.get(task, known))

    def fetched(self, life: Life, task: Task, offset: int, known: int, answer: Answered) -> None:
        """A new owner asked where to begin; `known` is of the time at which it asked."""
        is_sure = task[0] not in self.unsure and self._has_led(*answer)
        if is_sure and offset < min(known, self.known(task)):
            self._found(
                f"task {task[0]}_{task[1]} was committed to {known}, and member {life.member} gets"
                f" {offset} at {answer.received_ms} ms"
            )

    def former_committed(self, life: Life, task: Task, removed: Answered, answer: Answered) -> None:
        """A commit in this life was taken, after the member had heard that it was removed."""
        throughout = Answered(answer.broker, removed.sent_ms, answer.received_ms)
        if removed.broker == answer.broker and self._counts(throughout):
            self._found(
                f"a commit of member {life.member} for task {task[0]}_{task[1]} was taken in epoch"
                f" {life.epoch}, after the member had been removed"
            )
