"""What the members of a streams group were told, held against what KIP-1071 promises. Pure.

    one member at a time      has an active task, until it gives it up or is no member any more
    one member in an epoch    is told that it has an active task
    epochs                    of a member do not go back
    commits                   of a task are not taken back
    former members            are refused, whatever they ask for
    a static member's place   goes to another process in the same epoch only if it was left

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
    place: str
    """Its instance id, or its member id."""
    epoch: int = 0
    held: set[Task] = field(default_factory=set)
    """Active tasks that it was told, and has not given up."""
    told_ms: dict[Task, int] = field(default_factory=dict)
    """When it first was told each of them."""
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
        self._epochs: dict[str, tuple[int, int]] = {}
        """By place: the last epoch, and when its member heard of it."""
        self._left: dict[str, str] = {}
        """By the id of a member that left for a while: its place."""
        self._removed_ms = -1
        self._committed: dict[Task, int] = {}
        """What was acknowledged."""
        self._in_doubt: dict[Task, int] = {}
        """The lowest offset of a commit without an answer: it may be carried out at any time."""
        self.unsure: set[str] = set()
        """Subtopologies whose offsets an operator may have removed."""

    # Members.

    def joins(self, member: int, member_id: str, place: str) -> Life:
        """A member is about to join, or to join again."""
        life = Life(member, member_id, place)
        self.lives.append(life)
        return life

    def ended(self, life: Life) -> None:
        """It leaves, heard that it is no member, or was killed."""
        if life in self.lives:
            self.lives.remove(life)

    def leaves_for_a_while(self, life: Life) -> None:
        """A static member, which has ended, is about to say so: its place may go to another."""
        self._left[life.member_id] = life.place

    def went_on(self, life: Life, epoch: int, answer: Answered) -> None:
        """A heartbeat was answered without an error."""
        if not self._counts(answer):
            life.epoch = epoch
            return
        for since_ms, text in life.doubts:
            if since_ms < answer.sent_ms:
                self._found(text)
        life.doubts = [each for each in life.doubts if each[0] >= answer.sent_ms]
        life.epoch = epoch
        last, heard_ms = self._epochs.get(life.place, (0, -1))
        if answer.sent_ms < heard_ms:
            return  # another member has the place by now, and this one was paused
        if epoch < last:
            self._found(
                f"member {life.member} was in epoch {last}, and is in {epoch} at"
                f" {answer.received_ms} ms"
            )
        self._epochs[life.place] = epoch, answer.received_ms

    def told(self, life: Life, active: Iterable[Task], answer: Answered) -> None:
        """An answer, after `went_on`, has the member's active tasks."""
        self.told_count += 1
        new = set(active)
        if self._counts(answer):
            for task in sorted(new):
                self._check_alone(life, task, answer)
        life.held |= new
        for task in new:
            life.told_ms.setdefault(task, answer.received_ms)

    def _check_alone(self, life: Life, task: Task, answer: Answered) -> None:
        name, at_ms = f"{task[0]}_{task[1]}", answer.received_ms
        other_id = self._told.setdefault((life.epoch, task), life.member_id)
        if self._left.get(other_id) == life.place:
            self._told[life.epoch, task] = life.member_id
        elif other_id != life.member_id:
            self._found(
                f"members {other_id} and {life.member_id} both have task {name} in epoch"
                f" {life.epoch}"
            )
        for other in self.lives:
            # One that was told later may have got it after this one, which was paused, was removed.
            if other is not life and other.told_ms.get(task, answer.sent_ms) < answer.sent_ms:
                text = (
                    f"task {name} was given to member {life.member} by {at_ms} ms, while member"
                    f" {other.member} had it, which went on"
                )
                other.doubts.append((at_ms, text))

    def gave_up(self, life: Life, tasks: Iterable[Task]) -> None:
        """The member works on these no longer."""
        for task in {*tasks} & life.held:
            life.held.remove(task)
            del life.told_ms[task]

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

    def former_succeeded(self, life: Life, what: str, removed: Answered, answer: Answered) -> None:
        """In this life something was done, after the member had heard that it was none."""
        throughout = Answered(answer.broker, removed.sent_ms, answer.received_ms)
        if removed.broker == answer.broker and self._counts(throughout):
            self._found(
                f"{what} of member {life.member} was taken in epoch {life.epoch}, after the member"
                " had been removed or had left"
            )
