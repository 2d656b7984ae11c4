"""One partition as a share group sees it: which record is whose, and what comes next (KIP-932).

    start offset              everything before it is over
    start .. next offset      in flight: available, acquired, acknowledged or archived; what of it
                              is not in the log any more is in no run
    next offset               the group has not acquired anything from here on

What a member says of its records is written before it holds: `begin_write` collects everything that
is to be written, `end_write` makes it hold or takes it back. One write is under way at a time, so
that none overtakes another. That a record was acquired is not written: the next leader finds a gap,
and hands it out again (at least once). A lock that is over, a release, and a limit that is reached
hold at once, and are written again until they are.

In a group with dead letters (KIP-1191) a record is first ARCHIVING, and ARCHIVED once its dead
letter is written or cannot be: `take_letters` and `end_letter`. That it is ARCHIVING is written
before its dead letter is, so that the next leader writes the dead letter if this one does not.

Kafka's SharePartition. Left out: the window of gaps, for the gaps are runs here; the count of
deliveries that are complete is counted when it is asked for. A start offset that this leader has
chosen is written at once: Kafka writes it with the first record that ends, and a leader before that
chooses again, behind what came meanwhile if the group begins at the latest record.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.share.acquisition import Acquired, Acquisition, LogBatch, Terms, Wish
from ottla.share.in_flight import BEING_WRITTEN, UNWRITTEN, WRITTEN, Batch, InFlight, Run
from ottla.share.note import Note, What
from ottla.share.record_state import STATE_AFTER, TERMINAL, AckType, Cause, RecordState
from ottla.share.state_batch import StateBatch, add_joined

_last_of = attrgetter("last")

MAX_RUNS: Final = 10_000
"""Runs of one state in flight: each write looks at all of them, and stores them in one record. A
batch of the log may have a million records, of which a member says something else of each."""
SAID: Final = {
    AckType.GAP: What.MISSING,
    AckType.ACCEPT: What.ACCEPTED,
    AckType.RELEASE: What.RELEASED,
    AckType.REJECT: What.REJECTED,
    AckType.RENEW: What.RENEWED,
}
_ALL_TYPES: Final = bytes(AckType)
_TYPE_OF: Final = tuple(AckType)
_SAME_TYPES: Final = re.compile(b"|".join(b"\\x%02x+" % kind for kind in AckType))
MAX_RUNS_ACQUIRED: Final = MAX_RUNS // 2
"""Beyond that, acquisitions make no more: the rest is for what members say of what they have."""


class ShareSettings(NamedTuple):
    """Of a group, in the order of use."""

    max_in_flight: int = 2_000
    """share.partition.max.record.locks"""
    max_deliveries: int = 5
    """share.delivery.count.limit"""
    lock_ms: int = 30_000
    """share.record.lock.duration.ms"""
    can_renew: bool = True
    """share.renew.acknowledge.enable"""
    max_runs: int = MAX_RUNS_ACQUIRED
    """No setting: so many runs are made by acquisitions."""
    has_dead_letters: bool = False
    """errors.deadletterqueue.topic.name is set, and share.version is 2"""


class StoredState(NamedTuple):
    """What the share coordinator has of a share partition."""

    state_epoch: int
    start_offset: int
    batches: Sequence[StateBatch]


class AckBatch(NamedTuple):
    """What a member says of the records from `first` to `last`: one type for all, or one each."""

    first: int
    last: int
    types: Sequence[int]


class Write(NamedTuple):
    """What the share coordinator is to write."""

    start_offset: int
    delivery_complete_count: int
    batches: Sequence[StateBatch]


class Letter(NamedTuple):
    """Records whose dead letters are to be written; both offsets are included."""

    first: int
    last: int
    delivery_count: int
    cause: Cause


class Where(NamedTuple):
    """Where one record is. `state` None: over, if it is before the start, else in no run."""

    state: RecordState | None
    delivery_count: int = 0
    member: str = ""
    lock_until_ms: int | None = None


class _Decision(NamedTuple):
    """What is to be done with some records of one run that is in flight, once all of a request is
    valid."""

    first: int
    last: int
    type: AckType


class SharePartition:
    """The in-flight records of one group and partition; times are in ms of one steady clock."""

    def __init__(self, stored: StoredState, *, is_start_new: bool = False) -> None:
        """`is_start_new`: nothing is stored of the start offset yet. Raises ValueError if the
        stored batches are in no order, or before the start.
        """
        self.state_epoch = stored.state_epoch
        self.start_offset = stored.start_offset
        self.next_offset = stored.start_offset
        self._in_flight = InFlight()
        self._may_have_available = False
        """False: the next records come from the next offset on, without a search."""
        self._is_start_new = is_start_new
        self._is_start_in_write = False
        self._is_writing = False
        self._notes: list[Note] = []
        self._load(stored.batches)
        self._advance()

    def _load(self, batches: Iterable[StateBatch]) -> None:
        for batch in batches:
            if not self.next_offset <= batch.first <= batch.last:
                raise ValueError(
                    f"stored batch {batch.first} to {batch.last} behind offset {self.next_offset}"
                )
            if batch.first > self.next_offset:
                first, last = self.next_offset, batch.first - 1
                gap = Run(Batch(first, last, is_gap=True), first, last, RecordState.AVAILABLE, 0)
                self._in_flight.add(gap)
            run = Run(
                Batch(batch.first, batch.last),
                batch.first,
                batch.last,
                batch.state,
                batch.delivery_count,
            )
            self._in_flight.add(run)
            self.next_offset = batch.last + 1
            self._may_have_available = True

    # What there is.

    @property
    def in_flight_count(self) -> int:
        """The offsets that may be locked: between the start and the next offset."""
        return self.next_offset - self.start_offset

    @property
    def runs(self) -> Sequence[Run]:
        """The records in flight, in order; not to be changed."""
        return self._in_flight.runs

    def where(self, offset: int) -> Where:
        """What a member said holds here once it is written."""
        for run in self._in_flight.overlapping(offset, offset):
            if run.ending is not None:
                ending = run.ending
                count = run.delivery_count
                return Where(RecordState.ACQUIRED, count, ending.member, ending.lock_until_ms)
            until_ms = run.lock_until_ms if run.is_acquired else None
            return Where(run.state, run.delivery_count, run.member, until_ms)
        return Where(None)

    def take_notes(self) -> Sequence[Note]:
        """What happened since this was asked last, in order."""
        notes, self._notes = self._notes, []
        return notes

    def _note(self, what: What, run: Run, who: str = "") -> None:
        self._notes.append(Note(what, run.first, run.last, who, run.delivery_count))

    def next_fetch_offset(self) -> int:
        """From where the log is read for the next member."""
        if self._may_have_available:
            for run in self._in_flight:
                if run.is_available:
                    return run.first
            self._may_have_available = False
        return self.next_offset

    def can_acquire(self, settings: ShareSettings) -> bool:
        """Whether a member can get records, if the log has them."""
        return (
            self.next_fetch_offset() != self.next_offset
            or self.in_flight_count < settings.max_in_flight
        )

    def next_lock_end_ms(self) -> int | None:
        """When the next lock is over; None if nothing is locked."""
        ends = (
            run.lock_until_ms for run in self._in_flight if run.is_acquired and run.ending is None
        )
        return min(ends, default=None)

    # Members get records.

    def acquire(
        self,
        wish: Wish,
        fetch_offset: int,
        fetched: Sequence[LogBatch],
        settings: ShareSettings,
        now_ms: int,
        aborted: Sequence[LogBatch] = (),
    ) -> list[Acquired]:
        """Hands out records that were read from `fetch_offset` on.

        `aborted`: batches of aborted transactions, which a reader of committed records never gets.
        The log starts or was compacted behind what it does not return any more.
        """
        if not fetched or wish.max_records <= 0 or fetched[-1].last < self.start_offset:
            return []
        last_offset = fetched[-1].last
        max_records = min(wish.max_records, settings.max_in_flight - self.in_flight_count)
        if max_records <= 0:
            # As many are in flight as may be: only those of them that were given back.
            if fetch_offset >= self.next_offset:
                return []
            max_records = min(wish.max_records, self.next_offset - fetch_offset)
            last_offset = min(last_offset, self.next_offset - 1)
        self._archive_missing(fetch_offset, fetched[0].first)
        if not self._in_flight:
            self.start_offset = max(self.start_offset, fetched[0].first)
            self.next_offset = max(self.next_offset, fetched[0].first)
        acquisition = Acquisition(
            self._in_flight,
            fetched,
            last_offset,
            wish._replace(max_records=max_records),
            Terms(
                settings.max_deliveries,
                now_ms + settings.lock_ms,
                settings.max_runs,
                settings.has_dead_letters,
            ),
        )
        acquisition.run(self.next_offset)
        if self._in_flight:
            self.next_offset = max(self.next_offset, self._in_flight.runs[-1].last + 1)
        self._may_have_available = True
        acquired = (
            self._without_aborted(acquisition.acquired, aborted)
            if aborted
            else (acquisition.acquired)
        )
        self._advance()
        self._notes += [
            Note(What.ACQUIRED, each.first, each.last, wish.member, each.delivery_count)
            for each in acquired
        ]
        return acquired

    def _archive_missing(self, first: int, first_after: int) -> None:
        """The log was read from `first` on and has nothing before `first_after`."""
        if first < first_after and self._in_flight:
            for run in self._in_flight.within(first, first_after - 1):
                if run.is_available:
                    run.settle(RecordState.ARCHIVED, WRITTEN)

    def _without_aborted(
        self, acquired: Iterable[Acquired], aborted: Sequence[LogBatch]
    ) -> list[Acquired]:
        """Nothing of them is written: the next leader finds them in the same way."""
        left: list[Acquired] = []
        for each in acquired:
            first = each.first
            for index in range(bisect_left(aborted, first, key=_last_of), len(aborted)):
                batch = aborted[index]
                if batch.first > each.last:
                    break
                begin, end = max(batch.first, first), min(batch.last, each.last)
                for run in self._in_flight.within(begin, end):
                    run.settle(RecordState.ARCHIVED, WRITTEN)
                if begin > first:
                    left.append(each._replace(first=first, last=begin - 1))
                first = end + 1
            if first <= each.last:
                left.append(each._replace(first=first))
        return left

    # Members say what became of them.

    def acknowledge(
        self,
        member: str,
        batches: Sequence[AckBatch],
        settings: ShareSettings,
        now_ms: int,
    ) -> None:
        """Ends deliveries, or makes locks longer; all of the batches, or none.

        What ends is to be written. Raises ApiError: INVALID_REQUEST, INVALID_RECORD_STATE.
        """
        decisions: list[_Decision] = []
        more = 0
        last = -1
        for said in batches:
            batch = _checked(said, last)
            last = batch.last
            if batch.last >= self.start_offset:
                room = MAX_RUNS - len(self._in_flight.runs) - more
                found, added = self._decisions(member, batch, settings, room)
                decisions += found
                more += added
        if more and len(self._in_flight.runs) + more > MAX_RUNS:
            raise _too_many_runs()
        self._in_flight.split([at for each in decisions for at in (each.first, each.last + 1)])
        runs = self._in_flight.runs
        index = self._in_flight.index_of(decisions[0].first) if decisions else 0
        for each in decisions:
            while runs[index].first < each.first:
                index += 1
            self._decided(runs[index], each.type, member, settings, now_ms)

    def _decided(
        self, run: Run, kind: AckType, member: str, settings: ShareSettings, now_ms: int
    ) -> None:
        self._note(SAID[kind], run, member)
        if kind is AckType.RENEW:
            run.lock_until_ms = now_ms + settings.lock_ms
            return
        state, cause = _after(kind, run, settings)
        run.end(state, cause)
        if kind is AckType.RELEASE and state is not RecordState.AVAILABLE:
            self._note(What.TOO_OFTEN, run)

    def _decisions(
        self, member: str, batch: AckBatch, settings: ShareSettings, room: int
    ) -> tuple[list[_Decision], int]:
        """And how many runs there are more after them. More than `room` are refused."""
        self._check_known(batch)
        found: list[_Decision] = []
        more = 0
        runs = self._in_flight.runs
        for index in range(self._in_flight.index_of(batch.first), len(runs)):
            run = runs[index]
            first, last = max(run.first, batch.first), min(run.last, batch.last)
            if first > last:
                break
            if not run.is_acquired or run.ending is not None:
                raise ApiError(
                    ErrorCode.invalid_record_state,
                    f"Offset {first} cannot be acknowledged: it is not acquired.",
                )
            if run.member != member:
                raise ApiError(
                    ErrorCode.invalid_record_state,
                    f"Offset {first} cannot be acknowledged: another member has acquired it.",
                )
            pieces = _by_type(batch, first, last, room - more)
            found += pieces
            more += len(pieces) - 1 + (first > run.first) + (last < run.last)
        if not settings.can_renew and any(each.type is AckType.RENEW for each in found):
            raise ApiError(
                ErrorCode.invalid_record_state,
                "Locks of this group are not renewed: share.renew.acknowledge.enable is false.",
            )
        return found, more

    def _check_known(self, batch: AckBatch) -> None:
        """Raises ApiError if the batch has records that are not in flight."""
        if self._in_flight.floor(max(batch.first, self.start_offset)) is None:
            raise ApiError(
                ErrorCode.invalid_record_state, "The records of the batch are not acquired."
            )
        end = self._in_flight.floor(batch.last)
        assert end is not None
        if end.last < batch.last:
            raise ApiError(
                ErrorCode.invalid_request,
                f"Offsets {batch.first} to {batch.last} are behind the acquired records.",
            )

    # Locks end by themselves.

    def expire_locks(self, settings: ShareSettings, now_ms: int) -> bool:
        """Takes back what was locked until now. Whether there is something to write."""
        return self._end_locks(lambda run: run.lock_until_ms <= now_ms, settings, What.LOCK_ENDED)

    def release(self, member: str, settings: ShareSettings) -> bool:
        """Takes back everything that a member has: its session has ended. Whether there is
        something to write."""
        return self._end_locks(lambda run: run.member == member, settings, What.MEMBER_LEFT)

    def _end_locks(
        self, is_meant: Callable[[Run], bool], settings: ShareSettings, what: What
    ) -> bool:
        found = False
        for run in self._in_flight:
            if run.is_acquired and run.ending is None and is_meant(run):
                self._note(what, run, run.member)
                state, cause = _after(AckType.RELEASE, run, settings)
                run.settle(state, UNWRITTEN, cause)
                if state is not RecordState.AVAILABLE:
                    self._note(What.TOO_OFTEN, run)
                found = self._may_have_available = True
        if found:
            self._in_flight.join()
        return found

    # Dead letters.

    @property
    def has_letters(self) -> bool:
        """A dead letter is to be written, or is under way."""
        return any(run.state is RecordState.ARCHIVING for run in self._in_flight)

    def take_letters(self, settings: ShareSettings) -> list[Letter]:
        """The dead letters that are to be written now, in order; each is ended by `end_letter`."""
        found = []
        for run in self._in_flight:
            if run.needs_letter:
                run.has_letter = True
                cause = run.cause
                if cause is None:  # of a leader before this one
                    is_last = run.delivery_count >= settings.max_deliveries
                    cause = Cause.DELIVERED_TOO_OFTEN if is_last else Cause.REJECTED
                found.append(Letter(run.first, run.last, run.delivery_count, cause))
        return found

    def end_letter(self, letter: Letter, topic: str = "", given_up_from: int | None = None) -> None:
        """It is written, or cannot be: the records are archived, which is to be written. The log
        may begin behind them by now. `given_up_from`: the letters from this offset on are not
        written."""
        first, last, count, _ = letter
        split = last + 1 if given_up_from is None else min(max(first, given_up_from), last + 1)
        if first < split:
            self._notes.append(Note(What.LETTER_WRITTEN, first, split - 1, topic, count))
        if split <= last:
            self._notes.append(Note(What.LETTER_GIVEN_UP, split, last, topic, count))
        for run in self._in_flight.within(letter.first, letter.last):
            if run.has_letter:
                run.settle(RecordState.ARCHIVED, UNWRITTEN)
        self._in_flight.join()

    # The log moves.

    def move_start(self, offset: int) -> None:
        """The log begins at this offset now; what members have before it, they have no more."""
        if offset <= self.start_offset:
            return
        self.start_offset = offset
        self.next_offset = max(self.next_offset, offset)
        self._in_flight.remove_before(offset)
        self._advance()

    def _advance(self) -> None:
        """Moves the start behind everything that is over."""
        runs = self._in_flight.runs
        index = 0
        while index < len(runs) and runs[index].is_over:
            index += 1
        if index:
            del runs[:index]
            self.start_offset = runs[0].first if runs else self.next_offset

    # Writing.

    @property
    def has_unwritten(self) -> bool:
        """Something changed that the next write takes along."""
        return self._is_start_new or any(
            run.written == UNWRITTEN or (run.ending is not None and not run.ending.is_in_write)
            for run in self._in_flight
        )

    def begin_write(self) -> Write:
        """Everything that is to be written, maybe nothing; `end_write` follows."""
        assert not self._is_writing, "one write at a time"
        self._is_writing = True
        self._is_start_in_write, self._is_start_new = self._is_start_new, False
        batches: list[StateBatch] = []
        for run in self._in_flight:
            if run.ending is not None:
                run.ending.is_in_write = True
            elif run.written == UNWRITTEN:
                run.written = BEING_WRITTEN
            else:
                continue
            if run.is_acquired:
                # Acquired again before its release was written.
                state, count = RecordState.AVAILABLE, run.delivery_count - 1
            else:
                state, count = run.state, run.delivery_count
            add_joined(batches, StateBatch(run.first, run.last, state, count))
        return Write(self.start_offset, self._complete_count(), batches)

    def end_write(self, *, is_written: bool) -> None:
        """The write has ended: what members said in it holds, or is taken back."""
        assert self._is_writing
        self._is_writing = False
        self._is_start_new = self._is_start_new or (self._is_start_in_write and not is_written)
        for run in self._in_flight:
            if run.written == BEING_WRITTEN:
                run.written = WRITTEN if is_written else UNWRITTEN
            if run.ending is not None and run.ending.is_in_write:
                if is_written:
                    run.ending = None
                    run.written = WRITTEN
                else:
                    self._note(What.NOT_STORED, run, run.ending.member)
                    run.take_back()
        self._may_have_available = True
        self._in_flight.join()
        self._advance()

    def _complete_count(self) -> int:
        """Of records from the start on (KIP-1226)."""
        return sum(run.size for run in self._in_flight if run.state in TERMINAL)


def _after(kind: AckType, run: Run, settings: ShareSettings) -> tuple[RecordState, Cause | None]:
    """Given back for the last time, a record is archived."""
    state, cause = STATE_AFTER[kind], None
    if kind is AckType.REJECT:
        cause = Cause.REJECTED
    elif state is RecordState.AVAILABLE and run.delivery_count >= settings.max_deliveries:
        state, cause = RecordState.ARCHIVED, Cause.DELIVERED_TOO_OFTEN
    if cause is None or not settings.has_dead_letters:
        return state, None
    return RecordState.ARCHIVING, cause


def _checked(batch: AckBatch, after: int) -> AckBatch:
    """The same with its types as bytes, which are searched quickly: there may be a million. Raises
    ApiError: INVALID_REQUEST.
    """
    if not after < batch.first <= batch.last:
        raise ApiError(
            ErrorCode.invalid_request, f"Offsets {batch.first} to {batch.last} are in no order."
        )
    if len(batch.types) not in (1, batch.last - batch.first + 1):
        raise ApiError(
            ErrorCode.invalid_request,
            f"{len(batch.types)} types for offsets {batch.first} to {batch.last}: give one type, "
            "or one for each offset.",
        )
    try:
        types = bytes(batch.types)
    except ValueError:  # a negative one
        types = b"\xff"
    if types.translate(None, _ALL_TYPES):
        wrong = next(each for each in batch.types if each not in _ALL_TYPES)
        raise ApiError(ErrorCode.invalid_request, f"Invalid acknowledge type: {wrong}")
    return batch._replace(types=types)


def _by_type(batch: AckBatch, first: int, last: int, room: int) -> list[_Decision]:
    """One for each run of offsets of one type. Raises ApiError if one run in flight would become
    more than `room` runs more.
    """
    types = batch.types
    assert isinstance(types, bytes)
    if len(types) == 1:
        return [_Decision(first, last, AckType(types[0]))]
    found: list[_Decision] = []
    for same in _SAME_TYPES.finditer(types, first - batch.first, last + 1 - batch.first):
        if found and len(found) > room:
            raise _too_many_runs()
        begin, end = same.span()
        found.append(_Decision(batch.first + begin, batch.first + end - 1, _TYPE_OF[types[begin]]))
    return found


def _too_many_runs() -> ApiError:
    return ApiError(
        ErrorCode.invalid_request,
        f"More than {MAX_RUNS:,} runs of records in different states would be in flight: "
        "acknowledge the first records first, in smaller requests.",
    )
