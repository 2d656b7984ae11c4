"""Which of the fetched records a member acquires (KIP-932, KIP-1206; Kafka's SharePartition).

In the mode BATCH_OPTIMIZED batches of the log are acquired whole, so that there may be more records
than the member wants; in RECORD_LIMIT there are never more. A record that was delivered often
before may be what stops its consumers: it comes with fewer others, the last time alone.

A batch of the log may have a million records, and each acquisition of some of them leaves one run
more. Kafka keeps a state for each record of such a batch. Here only so many runs are made: beyond
that a run is handed out whole or not at all, but for the first one in flight. Nobody has to wait
for others to take that one, so that the partition goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from ottla.share.in_flight import UNWRITTEN, Batch, InFlight, Run
from ottla.share.record_state import Cause, RecordState

MIN_DELIVERIES_OF_SUSPECT: Final = 2
MIN_LIMIT_FOR_ALONE: Final = 3
"""With a smaller limit of deliveries no record comes alone."""


class AcquireMode(IntEnum):
    """By its number in ShareFetch."""

    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


class LogBatch(NamedTuple):
    """First and last offset of a fetched batch of the log."""

    first: int
    last: int


class Acquired(NamedTuple):
    """Records that the member now has; both offsets are included."""

    first: int
    last: int
    delivery_count: int

    @property
    def size(self) -> int:
        return self.last - self.first + 1


class Wish(NamedTuple):
    """What a member wants of the fetched records."""

    member: str
    mode: AcquireMode
    max_records: int
    batch_size: int
    """Fresh records are handed out in batches of about so many, along those of the log."""


class Terms(NamedTuple):
    """Under what conditions records are handed out."""

    max_deliveries: int
    lock_until_ms: int
    max_runs: int
    """So many are in flight at most before runs are kept whole."""
    has_dead_letters: bool = False

    @property
    def suspect_from(self) -> int:
        """So many deliveries make a record suspect."""
        return max(MIN_DELIVERIES_OF_SUSPECT, -(-self.max_deliveries // 2))


class Acquisition:
    """One member's turn on one partition's fetched records."""

    def __init__(
        self,
        in_flight: InFlight,
        fetched: Sequence[LogBatch],
        last_offset: int,
        wish: Wish,
        terms: Terms,
    ) -> None:
        self._in_flight = in_flight
        self._fetched = fetched
        self._first_offset = fetched[0].first
        self._last_offset = last_offset
        self._wish = wish
        self._terms = terms
        self._left = wish.max_records
        self.acquired: list[Acquired] = []

    def run(self, next_offset: int) -> None:
        """`next_offset`: what is behind everything that is in flight."""
        for batch, runs in self._in_flight.batches(self._first_offset, self._last_offset):
            if self._left <= 0:
                return
            if batch.is_gap:
                self._acquire_gap(runs)
            else:
                self._acquire_again(batch, runs)
        first = max(self._first_offset, next_offset)
        if self._left > 0 and first <= self._last_offset:
            self._acquire_fresh(first, self._last_offset)

    @property
    def _room(self) -> int:
        """How many runs more there may be."""
        return self._terms.max_runs - len(self._in_flight.runs)

    def _may_cut(self, run: Run) -> bool:
        return self._room > 0 or self._in_flight.is_front(run)

    # Records that were in flight.

    def _acquire_again(self, batch: Batch, runs: list[Run]) -> None:
        if not self._archive_used_up(runs):
            return
        is_suspect = self._is_suspect(runs)
        if is_suspect and self.acquired:
            self._left = 0
            return
        run = runs[0]
        is_whole = (
            batch.first >= self._first_offset
            and batch.last <= self._last_offset
            and self._in_flight.is_whole(batch, run)
        )
        is_limited = self._wish.mode is AcquireMode.RECORD_LIMIT and batch.size > self._left
        if not is_whole or is_limited or is_suspect:
            before = self._left
            self._acquire_some(batch)
            if is_suspect and self._left < before:
                self._left = 0
        elif run.is_available:
            self._take(run)

    def _archive_used_up(self, runs: list[Run]) -> bool:
        """Ends records that may not be delivered again since the group's limit was lowered. Kafka
        delivers them once more, above the limit.

        Whether others are available.
        """
        found = False
        for run in runs:
            if run.is_available:
                if run.delivery_count >= self._terms.max_deliveries:
                    ends_as = (
                        RecordState.ARCHIVING
                        if self._terms.has_dead_letters
                        else RecordState.ARCHIVED
                    )
                    run.settle(ends_as, UNWRITTEN, Cause.DELIVERED_TOO_OFTEN)
                else:
                    found = True
        return found

    def _is_suspect(self, runs: list[Run]) -> bool:
        return any(
            run.is_available
            and run.delivery_count >= self._terms.suspect_from
            and run.last >= self._first_offset
            and run.first <= self._last_offset
            for run in runs
        )

    def _acquire_some(self, batch: Batch) -> None:
        """Available records of a batch that is not as it was acquired first."""
        taken = 0
        most: int | None = None
        """Once there is a suspect among them."""
        begun = len(self.acquired)
        first, last = max(batch.first, self._first_offset), min(batch.last, self._last_offset)
        for run in self._in_flight.overlapping(first, last):
            if not run.is_available:
                continue
            begin, end = max(run.first, first), min(run.last, last)
            is_alone = (
                self._terms.max_deliveries >= MIN_LIMIT_FOR_ALONE
                and run.delivery_count == self._terms.max_deliveries - 1
            )
            if is_alone and taken:
                break
            doubt = run.delivery_count - self._terms.suspect_from
            if doubt >= 0 and most is None:
                most = max(1, batch.size >> (doubt + 1))
            size = 1 if is_alone else end - begin + 1
            if self._wish.mode is AcquireMode.RECORD_LIMIT:
                size = min(size, self._left)
            if most is not None:
                size = min(size, most - taken)
            if size <= 0:
                break
            is_cut = is_alone or size < end - begin + 1
            if size < run.size and not self._may_cut(run):
                continue
            for part in self._in_flight.within(begin, begin + size - 1):
                self._take(part)
            taken += size
            if is_cut:
                break
        self.acquired[begun:] = _joined(self.acquired[begun:])

    def _take(self, run: Run) -> None:
        run.acquire(self._wish.member, self._terms.lock_until_ms)
        self.acquired.append(Acquired(run.first, run.last, run.delivery_count))
        self._left -= run.size

    # Records that were not in flight.

    def _acquire_gap(self, runs: list[Run]) -> None:
        """What a leader before this one had handed out, as fresh records: nobody knows the batches
        any more."""
        for run in runs:
            first, last = max(run.first, self._first_offset), min(run.last, self._last_offset)
            if self._left <= 0 or first > last or not run.is_available:
                continue
            if not self._may_cut(run):
                continue
            gap = self._in_flight.take_out(first, last)
            end = self._acquire_fresh(first, last)
            if end < last:
                self._in_flight.add(gap.split_at(end + 1))

    def _acquire_fresh(self, first: int, last: int) -> int:
        """Puts records in flight, of which the member gets those that it wants; returns the last.

        In whole batches of the log if there are too many: no batch is sent in two halves.
        """
        if self._left < last - first + 1:
            last = min(last, self._end_of_log_batch(first + self._left - 1))
        if self._wish.mode is AcquireMode.RECORD_LIMIT:
            run = self._put(first, last)
            if run.size > self._left:
                self._in_flight.add(run.split_at(first + self._left))
            self._take(run)
            return last
        for begin, end in self._along_log_batches(first, last):
            self._take(self._put(begin, end))
        return last

    def _put(self, first: int, last: int) -> Run:
        run = Run(Batch(first, last), first, last, RecordState.AVAILABLE, 0)
        self._in_flight.add(run)
        return run

    def _end_of_log_batch(self, offset: int) -> int:
        for batch in self._fetched:
            if batch.first <= offset <= batch.last:
                return batch.last
        return offset

    def _along_log_batches(self, first: int, last: int) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        begin = first
        room = self._room
        if last - first + 1 > self._wish.batch_size:
            for batch in self._fetched:
                if batch.first > last or len(found) + 1 >= room:
                    break
                if batch.first - begin >= self._wish.batch_size:
                    found.append((begin, batch.first - 1))
                    begin = batch.first
        found.append((begin, last))
        return found


def _joined(acquired: Sequence[Acquired]) -> list[Acquired]:
    """Neighbours with the same delivery count as one."""
    found: list[Acquired] = []
    for each in acquired:
        if (
            found
            and found[-1].last + 1 == each.first
            and found[-1].delivery_count == each.delivery_count
        ):
            found[-1] = found[-1]._replace(last=each.last)
        else:
            found.append(each)
    return found
