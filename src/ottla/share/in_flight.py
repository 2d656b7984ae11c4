"""The records of a share partition that are in flight: in order, in runs of one state.

A batch is what was acquired together for the first time. It begins as one run; where its records
fare differently it is split, and runs that are equal again are joined. Kafka keeps a state for each
batch, and for each offset once the batch is split.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from ottla.share.record_state import TERMINAL, Cause, RecordState

WRITTEN: Final = 0
UNWRITTEN: Final = 1
"""Goes out with the next write."""
BEING_WRITTEN: Final = 2

_first_of = attrgetter("first")


class Batch(NamedTuple):
    """What was acquired together; `is_gap`: what the group had acquired, and not ended, when this
    leader loaded the partition, so that nothing is stored of it."""

    first: int
    last: int
    is_gap: bool = False

    @property
    def size(self) -> int:
        return self.last - self.first + 1


class Ending:
    """A member has ended a delivery; that holds once it is written, else it is taken back."""

    __slots__ = ("is_in_write", "lock_until_ms", "member")

    def __init__(self, member: str, lock_until_ms: int) -> None:
        self.member = member
        self.lock_until_ms = lock_until_ms
        self.is_in_write = False


class Run:
    """Records of one batch that are all in one state."""

    __slots__ = (
        "batch", "cause", "delivery_count", "ending", "first", "has_letter", "last",
        "lock_until_ms", "member", "state", "written",
    )  # fmt: skip

    def __init__(
        self, batch: Batch, first: int, last: int, state: RecordState, delivery_count: int
    ) -> None:
        self.batch = batch
        self.first = first
        self.last = last
        self.state = state
        """Already the new one while there is an `ending`."""
        self.delivery_count = delivery_count
        self.member = ""
        """Who has acquired it; empty in all other states."""
        self.lock_until_ms = 0
        self.ending: Ending | None = None
        self.written = WRITTEN
        """Of a state that changed by itself, and holds whether it is written or not."""
        self.cause: Cause | None = None
        """Why it is ARCHIVING; None also if a leader before this one knew."""
        self.has_letter = False
        """Somebody writes its dead letter."""

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    @property
    def is_available(self) -> bool:
        return self.state is RecordState.AVAILABLE and self.ending is None

    @property
    def is_acquired(self) -> bool:
        return self.state is RecordState.ACQUIRED

    @property
    def is_over(self) -> bool:
        """Never delivered again, which is written."""
        return self.state in TERMINAL and self.ending is None and self.written == WRITTEN

    @property
    def needs_letter(self) -> bool:
        """Its dead letter is to be written: that it is ARCHIVING is stored, so that the next leader
        would write the dead letter if this one did not."""
        return (
            self.state is RecordState.ARCHIVING
            and not self.has_letter
            and self.ending is None
            and self.written == WRITTEN
        )

    def acquire(self, member: str, lock_until_ms: int) -> None:
        self.state = RecordState.ACQUIRED
        self.delivery_count += 1
        self.member = member
        self.lock_until_ms = lock_until_ms

    def settle(self, state: RecordState, written: int, cause: Cause | None = None) -> None:
        """To a state in which nobody has the records."""
        self.state = state
        self.member = ""
        self.written = written
        self.cause = cause
        self.has_letter = False

    def end(self, state: RecordState, cause: Cause | None = None) -> None:
        """The member ends the delivery, to be written."""
        self.ending = Ending(self.member, self.lock_until_ms)
        self.state = state
        self.member = ""
        self.cause = cause

    def take_back(self) -> None:
        """The end could not be written: the member still has the records."""
        assert self.ending is not None
        self.state = RecordState.ACQUIRED
        self.member = self.ending.member
        self.lock_until_ms = self.ending.lock_until_ms
        self.ending = None
        self.cause = None

    def _copied(self, first: int, last: int) -> Run:
        copy = Run(self.batch, first, last, self.state, self.delivery_count)
        copy.member = self.member
        copy.lock_until_ms = self.lock_until_ms
        copy.ending = self.ending
        copy.written = self.written
        copy.cause = self.cause
        copy.has_letter = self.has_letter
        return copy

    def split_at(self, offset: int) -> Run:
        """Keeps what is before this offset, and returns the rest."""
        rest = self._copied(offset, self.last)
        self.last = offset - 1
        return rest

    def equals(self, other: Run) -> bool:
        """Whether the two, one behind the other, can be one."""
        return (
            self.last + 1 == other.first
            and self.batch is other.batch
            and self.state is other.state
            and self.delivery_count == other.delivery_count
            and self.member == other.member
            and self.ending is other.ending
            and self.written == other.written
            and self.cause is other.cause
            and self.has_letter == other.has_letter
            and (not self.is_acquired or self.lock_until_ms == other.lock_until_ms)
        )


class InFlight:
    """The runs, in order and without overlap; there may be offsets between them."""

    def __init__(self) -> None:
        self.runs: list[Run] = []

    def __bool__(self) -> bool:
        return bool(self.runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def _after(self, offset: int) -> int:
        """The index of the first run that begins after this offset."""
        return bisect_right(self.runs, offset, key=_first_of)

    def index_of(self, offset: int) -> int:
        """The index of the run with this offset, or else of the next one."""
        index = self._after(offset)
        return index - 1 if index and self.runs[index - 1].last >= offset else index

    def add(self, run: Run) -> None:
        """A run that overlaps no other."""
        self.runs.insert(self._after(run.first), run)

    def batches(self, first: int, last: int) -> list[tuple[Batch, list[Run]]]:
        """Each batch with runs in these offsets, and all of these runs, also where they stick out
        of the offsets."""
        found: list[tuple[Batch, list[Run]]] = []
        for index in range(self.index_of(first), len(self.runs)):
            run = self.runs[index]
            if run.first > last:
                break
            if found and found[-1][0] is run.batch:
                found[-1][1].append(run)
            else:
                found.append((run.batch, [run]))
        return found

    def is_whole(self, batch: Batch, run: Run) -> bool:
        """Whether this run is all that is left of its batch."""
        index = self._after(run.first) - 1
        return (index == 0 or self.runs[index - 1].batch is not batch) and (
            index + 1 == len(self.runs) or self.runs[index + 1].batch is not batch
        )

    def split(self, offsets: Sequence[int]) -> None:
        """Splits the runs before each of these offsets, which are in order: there may be as many as
        runs, so that all are split in one pass."""
        runs = self.runs
        if not offsets:
            return
        at = self.index_of(offsets[0])
        result = runs[:at]
        number, count = 0, len(offsets)
        while at < len(runs) and number < count:
            run = runs[at]
            at += 1
            result.append(run)
            while number < count and offsets[number] <= run.last:
                if offsets[number] > run.first:
                    run = run.split_at(offsets[number])
                    result.append(run)
                number += 1
        result += runs[at:]
        self.runs = result

    def within(self, first: int, last: int) -> list[Run]:
        """The runs with these offsets, which are split so that none sticks out."""
        index = self.index_of(first)
        if index < len(self.runs) and self.runs[index].first < first:
            self.runs.insert(index + 1, self.runs[index].split_at(first))
            index += 1
        end = self._after(last)
        if end > index and self.runs[end - 1].last > last:
            self.runs.insert(end, self.runs[end - 1].split_at(last + 1))
        return self.runs[index:end]

    def overlapping(self, first: int, last: int) -> list[Run]:
        """The runs with any of these offsets, as they are."""
        return self.runs[self.index_of(first) : self._after(last)]

    def is_front(self, run: Run) -> bool:
        """Whether nothing in flight is before this run."""
        return self.runs[0] is run

    def take_out(self, first: int, last: int) -> Run:
        """Removes the one run that has these offsets, and returns that part of it."""
        (run,) = self.within(first, last)
        del self.runs[self.index_of(first)]
        return run

    def floor(self, offset: int) -> Run | None:
        """The last run that begins at this offset or before."""
        index = self._after(offset)
        return self.runs[index - 1] if index else None

    def remove_before(self, offset: int) -> None:
        index = self.index_of(offset)
        if index < len(self.runs) and self.runs[index].first < offset:
            self.runs[index].first = offset
        del self.runs[:index]

    def join(self) -> None:
        """Makes one of neighbours that are equal."""
        runs = self.runs
        if len(runs) < 2:
            return
        joined = [runs[0]]
        for run in runs[1:]:
            before = joined[-1]
            if before.equals(run):
                before.last = run.last
            else:
                joined.append(run)
        self.runs = joined
