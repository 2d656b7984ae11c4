"""A share partition against a model that keeps each record by itself, over crashes of its leader.

Whatever members, locks, writes that fail and new leaders do: an acknowledged record is never
delivered again, none is lost, and no delivery count is above the limit. With dead letters
(KIP-1191) each record that is rejected or delivered too often has one before it is archived.
"""

from dataclasses import dataclass, replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ottla.protocol.errors import ApiError
from ottla.share.acquisition import AcquireMode, LogBatch, Wish
from ottla.share.record_state import RecordState
from ottla.share.share_partition import (
    AckBatch,
    Letter,
    SharePartition,
    ShareSettings,
    StoredState,
)
from ottla.share.state_batch import StateBatch, combined

MEMBERS = ("a", "b", "c")
LOCK_MS = 100
MOST = 12
LIMIT = 4


@dataclass
class Known:
    """What the model knows of one record."""

    state: str = "fresh"
    count: int = 0
    member: str = ""
    lock_until: int = 0


class Machine(RuleBasedStateMachine):
    @initialize(
        sizes=st.lists(st.integers(1, 6), min_size=3, max_size=12),
        max_runs=st.sampled_from((1, 4, 1_000)),
        has_dead_letters=st.booleans(),
    )
    def begin(self, sizes: list[int], max_runs: int, has_dead_letters: bool = False) -> None:
        ends = [sum(sizes[: number + 1]) for number in range(len(sizes))]
        self.log = [LogBatch(end - size, end - 1) for size, end in zip(sizes, ends, strict=True)]
        self.log_start = 0
        self.settings = ShareSettings(MOST, LIMIT, LOCK_MS, True, max_runs, has_dead_letters)
        self.stored = StoredState(0, 0, ())
        self.partition = SharePartition(self.stored)
        self.known = {offset: Known() for offset in range(ends[-1])}
        self.saying: dict[int, str] = {}
        """Offsets whose end is not written, and what is after it."""
        self.writing: dict[int, str] | None = None
        self.write: StoredState | None = None
        self.now = 0
        self.letters: list[Letter] = []
        """Under way."""
        self.dead: set[int] = set()
        """Offsets with a dead letter."""
        self.excused: set[int] = set()
        """A member said that they are accepted, or no records; that may hold without an answer."""

    # What happens.

    @rule(
        member=st.sampled_from(MEMBERS),
        most=st.integers(1, 15),
        size=st.integers(1, 8),
        mode=st.sampled_from(AcquireMode),
        batches=st.integers(1, 4),
    )
    def acquire(self, member: str, most: int, size: int, mode: AcquireMode, batches: int) -> None:
        offset = self.partition.next_fetch_offset()
        read = [each for each in self.log if each.last >= max(offset, self.log_start)][:batches]
        can = self.partition.can_acquire(self.settings)
        before, runs = self.partition.in_flight_count, list(self.partition.runs)
        wish = Wish(member, mode, most, size)
        found = self.partition.acquire(wish, offset, read, self.settings, self.now)
        taken = [offset for each in found for offset in range(each.first, each.last + 1)]
        assert taken == sorted(set(taken))
        assert not taken or can
        if mode is AcquireMode.RECORD_LIMIT:
            assert len(taken) <= most
        is_front = bool(runs) and runs[0].is_available
        if read and can and (is_front or (before < MOST and len(runs) < self.settings.max_runs)):
            assert taken, "a member that can get records gets some"
        for each in found:
            for offset in range(each.first, each.last + 1):
                record = self.known[offset]
                assert record.state in ("fresh", "available"), (offset, record)
                assert each.delivery_count == record.count + 1 <= self.settings.max_deliveries
                self.known[offset] = Known("acquired", record.count + 1, member, self.now + LOCK_MS)

    @rule(
        member=st.sampled_from(MEMBERS),
        first=st.integers(0, 60),
        size=st.integers(1, 8),
        types=st.lists(st.integers(0, 4), min_size=8, max_size=8),
        is_one=st.booleans(),
    )
    def acknowledge(
        self, member: str, first: int, size: int, types: list[int], is_one: bool
    ) -> None:
        offsets = range(first, first + size)
        meant = {offset: types[0 if is_one else offset - first] for offset in offsets}
        meant = {key: value for key, value in meant.items() if key >= self.partition.start_offset}
        allowed = all(
            offset in self.known
            and self.known[offset].state == "acquired"
            and self.known[offset].member == member
            and offset not in self.saying
            and offset not in (self.writing or {})
            for offset in meant
        )
        batch = AckBatch(first, first + size - 1, types[:1] if is_one else types[:size])
        try:
            self.partition.acknowledge(member, [batch], self.settings, self.now)
        except ApiError:
            assert not allowed
            return
        assert allowed
        for offset, kind in meant.items():
            if kind == 4:
                self.known[offset].lock_until = self.now + LOCK_MS
            else:
                self.saying[offset] = ("over", "over", "available", "over")[kind]
                if kind == 1:
                    self.saying[offset] = "accepted"
                if kind < 2:
                    self.excused.add(offset)

    @rule(ms=st.integers(1, LOCK_MS))
    def wait(self, ms: int) -> None:
        self.now += ms
        self.partition.expire_locks(self.settings, self.now)
        self._give_back(lambda record: record.lock_until <= self.now)

    @rule(member=st.sampled_from(MEMBERS))
    def leave(self, member: str) -> None:
        self.partition.release(member, self.settings)
        self._give_back(lambda record: record.member == member)

    def _give_back(self, is_meant: object) -> None:
        assert callable(is_meant)
        for offset, record in self.known.items():
            is_being_said = offset in self.saying or offset in (self.writing or {})
            if record.state == "acquired" and not is_being_said and is_meant(record):
                self._to(offset, "available")

    def _to(self, offset: int, state: str) -> None:
        record = self.known[offset]
        if state == "available" and record.count >= self.settings.max_deliveries:
            state = "over"
        self.known[offset] = replace(record, state=state, member="")

    # Writes.

    @precondition(lambda self: self.writing is None)
    @rule()
    def begin_write(self) -> None:
        write = self.partition.begin_write()
        self.writing, self.saying = self.saying, {}
        batches = combined([*self.stored.batches, *write.batches], write.start_offset)
        self.write = StoredState(0, write.start_offset, batches)
        complete = sum(
            offset >= write.start_offset
            and (self.writing.get(offset) or record.state) in ("over", "accepted")
            for offset, record in self.known.items()
        )
        assert complete >= write.delivery_complete_count

    @precondition(lambda self: self.writing is not None)
    @rule(is_written=st.booleans(), is_stored=st.booleans())
    def end_write(self, is_written: bool, is_stored: bool) -> None:
        """A write that was answered with an error may be stored all the same."""
        assert self.writing is not None
        assert self.write is not None
        if is_written or is_stored:
            self.stored = self.write
        self.partition.end_write(is_written=is_written)
        if is_written:
            for offset, state in self.writing.items():
                if self.known[offset].state != "accepted":
                    self._to(offset, state)
        self.writing = None

    # Dead letters.

    @rule()
    def take_letters(self) -> None:
        taken = self.partition.take_letters(self.settings)
        for letter in taken:
            assert self.settings.has_dead_letters
            for offset in range(letter.first, letter.last + 1):
                stored = self._stored(offset)
                is_known = offset < self.stored.start_offset or (stored and stored.state >= 3)
                assert is_known or self.known[offset].state == "gone", (offset, stored)
        self.letters += taken

    @precondition(lambda self: self.letters)
    @rule()
    def end_letter(self) -> None:
        letter = self.letters.pop(0)
        self.dead |= set(range(letter.first, letter.last + 1))
        self.partition.end_letter(letter)

    # The leader, and the log.

    @rule()
    def fail_over(self) -> None:
        if self.writing is not None and self.write is not None:
            self.stored = self.write  # it got there
        self.partition = SharePartition(self.stored)
        self.saying, self.writing, self.letters = {}, None, []
        for offset, record in self.known.items():
            if record.state in ("accepted", "gone"):
                continue
            batch = self._stored(offset)
            if offset < self.stored.start_offset or (batch and batch.state != 0):
                self.known[offset] = replace(record, state="over", member="")
            else:
                self.known[offset] = Known("available", batch.delivery_count if batch else 0)
        self.partition.move_start(self.log_start)

    def _stored(self, offset: int) -> StateBatch | None:
        found = [each for each in self.stored.batches if each.first <= offset <= each.last]
        return found[0] if found else None

    @rule(by=st.integers(1, 5))
    def delete_records(self, by: int) -> None:
        self.log_start = min(self.log_start + by, len(self.known))
        self.partition.move_start(self.log_start)
        for offset in range(self.log_start):
            if self.known[offset].state != "accepted":
                self.known[offset].state = "gone"
            self.saying.pop(offset, None)
            if self.writing:
                self.writing.pop(offset, None)

    # What always holds.

    @invariant()
    def runs_are_what_the_model_knows(self) -> None:
        if not hasattr(self, "partition"):
            return
        at = self.partition.start_offset
        for run in self.partition.runs:
            assert at <= run.first <= run.last
            at = run.last + 1
            for offset in range(run.first, run.last + 1):
                record = self.known[offset]
                if run.state is RecordState.ARCHIVING:
                    assert self.settings.has_dead_letters
                state = self.saying.get(offset) or (self.writing or {}).get(offset)
                if state == "available" and record.count >= self.settings.max_deliveries:
                    state = "over"
                state = state or record.state
                expected = {"AVAILABLE": ("available", "fresh"), "ACQUIRED": ("acquired",)}
                ended = ("over", "accepted", "gone")
                assert state in expected.get(run.state.name, ended), (offset, run.state, record)
                assert run.delivery_count <= self.settings.max_deliveries
        assert at <= self.partition.next_offset

    @invariant()
    def nothing_is_lost(self) -> None:
        if not hasattr(self, "partition"):
            return
        in_flight = {
            offset for run in self.partition.runs for offset in range(run.first, run.last + 1)
        }
        for offset, record in self.known.items():
            if offset >= self.partition.next_offset:
                assert record.state in ("fresh", "available", "gone", "accepted"), (offset, record)
            elif offset not in in_flight:
                assert record.state in ("over", "accepted", "gone"), (offset, record)
                if self.settings.has_dead_letters and record.state == "over":
                    assert offset in self.dead or offset in self.excused, offset
