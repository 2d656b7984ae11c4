"""What one log must be: everything that happened to it, and what a crash may leave of it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from tests.log.model.batches import Batch
from tests.log.model.lineage import Lineage
from tests.log.model.violation import ensure


@dataclass(slots=True)
class Doubt:
    """What may be found after an operation that did not end.

    The log is a run of `batches` that ends at `least_end` or later. Batches that end at or before
    `may_start_at` may be gone from the front. Or it is empty at one of the offsets `empty_at`.
    """

    batches: Sequence[Batch]
    least_end: int
    may_start_at: int = -1
    empty_at: frozenset[int] = frozenset()
    exact_end: int = -1
    """The end if it is certain, even after a cut in a gap."""
    latest_end: int = 0
    """Where the active segment began: it may be above a gap at the log's end."""
    is_cleaned: bool = False
    """Compaction may have removed or rewritten batches; `check_cleaned` says which."""
    has_holes: bool = False
    """After a power failure the end of one segment may be gone, and the next one is there. Where
    a segment lost whole batches nothing shows it, because compaction leaves gaps, too. Apache
    Kafka's LogLoader does not see it, either."""


@dataclass(slots=True)
class LogModel:
    """One log. Offsets are as in `Log`."""

    stored: list[Batch] = field(default_factory=list)
    """The batches in the files, also those below the start."""
    lineage: Lineage = field(default_factory=Lineage)
    start: int = 0
    end: int = 0
    high_watermark: int = 0
    leader_epoch: int = 0
    epochs: list[tuple[int, int]] = field(default_factory=list)
    epochs_from: int = 0
    """Batches before it may have no epoch: a crash made the start go back. Kafka, too, moves the
    first epoch's start at once, and the checkpointed start of the log later."""
    is_leader: bool = True
    dropped: dict[int, int] = field(default_factory=dict)
    """Producers that were dropped as silent, and where the log ended then."""
    was_compacted: bool = False
    loaded_end: int = 0
    """The end when the producers were read last: of the transactions that ended before, a
    restart does not know whether their markers are committed."""

    def begin_epoch(self, *, is_leader: bool) -> None:
        self.leader_epoch += 1
        self.is_leader = is_leader
        if is_leader:
            self._trim_epochs()
            self.epochs.append((self.leader_epoch, self.end))

    def append(self, batches: Iterable[Batch], *, as_follower: bool) -> None:
        if as_follower:
            self._trim_epochs()
        for batch in batches:
            epoch = batch.header.leader_epoch
            if not self.epochs or epoch > self.epochs[-1][0]:
                self.epochs = [each for each in self.epochs if each[1] < batch.base]
                self.epochs.append((epoch, batch.base))
            self.stored.append(batch)
            self.lineage.append(batch)
            self.end = batch.next

    def fork(self) -> LogModel:
        """A copy, to look ahead with."""
        return replace(
            self,
            stored=list(self.stored),
            lineage=self.lineage.fork(),
            epochs=list(self.epochs),
        )

    def cut(self, end_offset: int) -> None:
        """The log ends at `end_offset`, which no batch contains."""
        self.stored = [batch for batch in self.stored if batch.next <= end_offset]
        self.lineage.cut(end_offset)
        self.end = end_offset
        self.start = min(self.start, end_offset)
        self.high_watermark = min(self.high_watermark, end_offset)
        self.loaded_end = end_offset
        self.epochs_from = min(self.epochs_from, end_offset)
        self._trim_epochs()

    def restart(self, offset: int) -> None:
        """The log is empty, and begins at `offset`."""
        self.stored, self.lineage = [], Lineage(offset)
        self.start = self.end = self.high_watermark = self.loaded_end = offset
        self.epochs = []
        self.dropped = {}

    def start_moved(self, offset: int) -> None:
        self.start, self.epochs_from = offset, max(self.epochs_from, offset)
        before = [epoch for epoch, start in self.epochs if start <= offset]
        if before:
            self.epochs = [(before[-1], offset), *(e for e in self.epochs if e[1] > offset)]

    def files_removed(self, first_base: int) -> None:
        """The files begin with the segment of that offset now."""
        self.stored = [batch for batch in self.stored if batch.base >= first_base]

    def _trim_epochs(self) -> None:
        self.epochs = [each for each in self.epochs if each[1] < self.end]

    @property
    def expired(self) -> set[int]:
        """The dropped producers that have written nothing since: what is known of them is open."""
        return {
            producer_id
            for producer_id, end in self.dropped.items()
            if not self.lineage.has_batch_from(producer_id, end)
        }

    def has_batch(self, last: int) -> bool:
        """Whether the batch with that last offset can still be read."""
        first = self.first_from(last)
        return last >= self.start and first is not None and first.last == last

    def first_from(self, offset: int) -> Batch | None:
        """The first stored batch that ends at `offset` or later: what a fetch of it begins with."""
        number = bisect_right(self.stored, offset - 1, key=lambda batch: batch.last)
        return self.stored[number] if number < len(self.stored) else None

    def doubt(self) -> Doubt:
        """What a killed process leaves: all of it."""
        return Doubt(list(self.stored), self.end)

    def resolve(self, doubt: Doubt, found: list[Batch], start: int, end: int) -> None:
        """Take what was found for what there is now. Raises Violation if it cannot be."""
        if not found and start == end and end in doubt.empty_at:
            if end != self.end:
                self.restart(end)
            self.stored, self.start = [], end
            return
        possible = list(doubt.batches)
        numbers = self._places(doubt, possible, found)
        first, last = (numbers[0], numbers[-1]) if numbers else (len(possible), -1)
        if not doubt.is_cleaned:
            for batch in possible[:first] if numbers else possible:
                gone = batch.last < doubt.may_start_at or batch.next > doubt.least_end
                ensure(gone, f"{batch} is gone from the log's front")
            for batch in possible[last + 1 :] if numbers else ():
                ensure(batch.next > doubt.least_end, f"{batch} is gone from the log's end")
        latest = max(self.end, doubt.latest_end, possible[-1].next if possible else 0)
        ensure(end <= latest, f"the log ends at {end}; it never had more than {latest}")
        exact = doubt.exact_end
        ensure(exact in (-1, end), f"the log ends at {end} instead of {exact}")
        if found:
            ensure(end >= found[-1].next, f"the log ends at {end}, before {found[-1]}")
        added = [batch for batch in possible if batch.base >= self.end and batch.next <= end]
        self.append(added, as_follower=True)
        self.cut(end)
        if doubt.has_holes:
            self._leave_out(doubt, found)
        self.stored = found

    def _leave_out(self, doubt: Doubt, found: list[Batch]) -> None:
        """Forget the batches that a power failure lost before others."""
        end, epochs_from = self.end, self.epochs_from
        there = {batch.base for batch in found}
        lost = [b for b in self.stored if b.base not in there and b.next > doubt.least_end]
        if lost:
            self.cut(lost[0].base)
            self.append([b for b in found if b.base >= lost[0].base], as_follower=True)
            self.end, self.epochs_from = end, epochs_from

    def _places(self, doubt: Doubt, possible: list[Batch], found: list[Batch]) -> list[int]:
        places = {batch.base: number for number, batch in enumerate(possible)}
        numbers: list[int] = []
        for batch in found:
            number = places.get(batch.base, -1)
            ensure(number >= 0, f"{batch} was never appended here")
            same = batch.data == possible[number].data or doubt.is_cleaned
            ensure(same, f"{batch} has other bytes than {possible[number]}")
            ensure(not numbers or number > numbers[-1], f"{batch} is there twice")
            follows = not numbers or doubt.is_cleaned or number == numbers[-1] + 1
            may_miss = doubt.has_holes and possible[number - 1].next > doubt.least_end
            ensure(follows or may_miss, f"batches are missing before {batch}")
            numbers.append(number)
        return numbers
