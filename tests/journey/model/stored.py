"""A partition with a real log, of which everything is known: each record's key, transaction and
fate, and what a pipeline made of it. The shipped cleaner compacts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from ottla.journey.facts import ALL_GROUPS, Facts, Position
from ottla.journey.key_elsewhere import KeyElsewhere
from ottla.log.compaction import plan_compaction
from ottla.log.config import LogConfig
from ottla.log.log import Log
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.log.retention import remove_expired
from ottla.log.verification import NOT_REQUIRED
from ottla.records.build import build_batch
from ottla.records.control import ControlType, write_end_marker
from ottla.records.header import BatchHeader, iterate_headers
from ottla.records.iterate import iterate_records
from ottla.records.record import Record
from ottla.timelines.recorder import TimelineRecorder
from ottla.timelines.step import Before, By
from ottla.tracing.gather_facts import Around, gather
from ottla.tracing.group_coordinators import FoundGroups
from ottla.tracing.key_search import find_elsewhere
from ottla.tracing.transaction_coordinators import Coordinated

START_MS: Final = 1_700_000_000_000
GROUP: Final = "pipes"
KEPT: Final = "t_rejected"
WHY: Final = "no JSON"


@dataclass(eq=False)
class Transaction:
    """`outcome`: None while it is open; `marker`: the offset of its marker."""

    producer_id: int
    first_offset: int
    outcome: ControlType | None = None
    marker: int = -1


@dataclass(eq=False)
class Deed:
    """What a record did to the table, and what became of its row."""

    did: str
    of: Kept | None = None
    then: str = "gone"
    by: Kept | None = None


@dataclass(eq=False)
class Kept:
    """A record, and what happened to it. `rank`: the value of the column that may order rows."""

    offset: int
    key: bytes | None
    is_tombstone: bool
    timestamp_ms: int
    transaction: Transaction | None = None
    is_control: bool = False
    deeds: dict[int, Deed] = field(default_factory=dict)
    """By the batch of the pipeline that had it, without those that it rejected."""
    batches: list[int] = field(default_factory=list)
    """The batches that read it."""
    rejected: bool = False
    partition: int = 0
    rank: int = 0

    @property
    def outcome(self) -> str:
        """As the journey calls it; "" outside transactions."""
        if self.transaction is None:
            return ""
        known = {None: "open", ControlType.commit: "committed", ControlType.abort: "aborted"}
        return known[self.transaction.outcome]


def rank_of(partition: int, offset: int) -> int:
    """Values in no order of time."""
    return (offset * 7 + partition * 3) % 11


class Clock:
    def __init__(self) -> None:
        self.ms = START_MS

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


@dataclass(frozen=True)
class Sink:
    """Where the pipeline delivers to, and which records it reads."""

    rows: str
    order: str
    deletes: str
    reads_committed: bool

    def said(self, version: int) -> str:
        return (
            f'{{"kind":"delta","place":"/t","version":{version},"rows":"{self.rows}",'
            f'"order":"{self.order}","deletes":"{self.deletes}","key":"message"}}'
        )


class Table:
    """What the pipeline writes to, of all of its partitions."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.rows: dict[bytes, Kept] = {}
        """A record for each key that has a row, or one that is marked deleted."""
        self.versions: dict[bytes, list[Kept]] = {}
        """The records of each key that were delivered to a history."""

    def merge(self, batch: int, read: list[Kept]) -> None:
        """As the table's statement does it: the last of each key in the batch, if it is newer."""
        by_key: dict[bytes, list[Kept]] = {}
        for record in read:
            assert record.key is not None
            if record.is_tombstone and self.sink.deletes == "skip":
                record.deeds[batch] = Deed("skipped")
            else:
                by_key.setdefault(record.key, []).append(record)
        if self.sink.rows == "history":
            for key, some in by_key.items():
                self.versions.setdefault(key, []).extend(some)
            return
        for key, some in by_key.items():
            last = max(some, key=self._order)
            for record in some:
                if record is not last:
                    how = "deleted" if last.is_tombstone else "superseded"
                    record.deeds[batch] = Deed("replaced", None, how, last)
            self._merge_one(batch, key, last)

    def deed_of(self, record: Kept) -> Deed | None:
        """What the record did to the table, as far as it is known now."""
        if self.sink.rows == "upsert" or (record.is_tombstone and self.sink.deletes == "skip"):
            return record.deeds.get(record.batches[0])
        every = self.versions.get(record.key or b"", [])
        if record not in every:
            return None
        ordered = sorted(every, key=self._order)
        at = ordered.index(record)
        before = ordered[at - 1] if at else None
        if record.is_tombstone:
            has_row = before is not None and not before.is_tombstone
            return Deed("closed", before) if has_row else Deed("opened")
        after = ordered[at + 1] if at + 1 < len(ordered) else None
        if after is None:
            return Deed("opened", None, "current")
        return Deed("opened", None, "deleted" if after.is_tombstone else "superseded", after)

    def _order(self, record: Kept) -> tuple[int, int, int]:
        stamp = {"timestamp": record.timestamp_ms, "column": record.rank}.get(self.sink.order, 0)
        return stamp, record.partition, record.offset

    def _merge_one(self, batch: int, key: bytes, last: Kept) -> None:
        row = self.rows.get(key)
        if row is not None and self._order(row) > self._order(last):
            last.deeds[batch] = Deed("older", row)
            return
        is_live = row is not None and not row.is_tombstone
        if row is not None:
            before = row.deeds[max(row.deeds)]
            before.then = "deleted" if last.is_tombstone else "superseded"
            before.by = last
        of = row if is_live else None
        if last.is_tombstone:
            marks = self.sink.deletes == "mark"
            did = "deleted" if is_live else "marked" if marks else "nothing"
            last.deeds[batch] = Deed(did, of)
            self.rows.pop(key, None)
            if marks:
                self.rows[key] = last
            return
        last.deeds[batch] = Deed("updated" if is_live else "inserted", of, "current")
        self.rows[key] = last


class Stored:
    """The partition and its pipeline; several partitions share a clock and a table."""

    def __init__(
        self,
        folder: Path,
        config: LogConfig,
        sink: Sink,
        partition: int = 0,
        others: Sequence[Stored] = (),
    ) -> None:
        self.partition, self.others = partition, list(others)
        for other in others:
            other.others.append(self)
        self.sink = sink
        self.clock: Clock = others[0].clock if others else Clock()
        self.table: Table = others[0].table if others else Table(sink)
        own = str(folder / f"t-{partition}")
        self.log: Log = open_log(own, config, OpenFiles(16), now_ms=self.clock.ms)
        self.recorder = TimelineRecorder(self.clock)
        self.timeline = self.recorder.open(self.log, high_watermark=0, now_ms=self.clock.ms)
        self.records: list[Kept] = []
        """By offset."""
        self.ends: list[int] = []
        """Of its batches."""
        self.sequence = 0
        """The next one of the idempotent producer."""
        self.open: dict[int, Transaction] = {}
        self.ended: list[Transaction] = []
        self.high = 0
        self._seen: Any = None
        self._there: dict[int, Record] = {}
        self.clean_offset: int | None = None
        self.delivered_to = self.batch = 0
        self.metadata = ""
        self.committed: Before | None = None

    # The log.

    def append(
        self,
        records: list[tuple[bytes | None, bool]],
        producer_id: int = -1,
        *,
        is_plain: bool = False,
    ) -> None:
        """Keys, and whether each record is a tombstone; with a producer id in a transaction, or
        only idempotent.
        """
        now_ms, base = self.clock.ms, self.log.end_offset
        built = [Record(0, now_ms, key, None if gone else b"v" * 40) for key, gone in records]
        transaction = None
        if is_plain:
            sequence, self.sequence = self.sequence, self.sequence + len(built)
            batch = build_batch(
                built, producer_id=producer_id, producer_epoch=0, base_sequence=sequence
            )
        elif producer_id >= 0:
            transaction = self.open.setdefault(producer_id, Transaction(producer_id, base))
            batch = build_batch(
                built, producer_id=producer_id, producer_epoch=0, is_transactional=True
            )
        else:
            batch = build_batch(built)
        self._write(batch, is_plain=is_plain)
        for number, (key, gone) in enumerate(records):
            record = Kept(base + number, key, gone, now_ms, transaction)
            record.partition, record.rank = self.partition, rank_of(self.partition, record.offset)
            self.records.append(record)

    def end(self, producer_id: int, outcome: ControlType) -> None:
        transaction = self.open.pop(producer_id)
        transaction.outcome, transaction.marker = outcome, self.log.end_offset
        self.ended.append(transaction)
        self._write(write_end_marker(outcome, producer_id, 0, 0, self.clock.ms))
        marker = Kept(transaction.marker, None, False, self.clock.ms, transaction, is_control=True)
        self.records.append(marker)

    def _write(self, batch: bytes, *, is_plain: bool = False) -> None:
        headers: list[BatchHeader] = list(iterate_headers(batch))
        base = self.log.end_offset
        self.log.append(
            batch,
            headers,
            leader_epoch=0,
            now_ms=self.clock.ms,
            is_own=not is_plain,
            guard=NOT_REQUIRED,
        )
        self.ends.append(self.log.end_offset)
        (header,) = headers
        self.timeline.appended(
            base,
            self.log.end_offset - 1,
            self.clock.ms,
            "a",
            header.producer_id,
            not header.is_transactional,
        )

    def raise_high(self, offset: int) -> None:
        self.high = max(self.high, offset)
        self.log.high_watermark_moved(self.high)
        self.timeline.high_watermark(self.high, self.clock.ms)

    @property
    def stable(self) -> int:
        """The last stable offset: before what is open, or ended by a marker that is not there on
        all replicas.
        """
        undecided = [one.first_offset for one in self.open.values()]
        undecided += [one.first_offset for one in self.ended if one.marker >= self.high]
        return max(min([self.high, *undecided]), self.log.start_offset)

    def present(self) -> dict[int, Record]:
        """What can be read, by the files themselves."""
        sizes = [(one.base_offset, one.size_bytes) for one in self.log.segments]
        state = (self.log.start_offset, self.clean_offset, sizes)
        if state != self._seen:
            self._seen, self._there = state, self._read()
        return self._there

    def _read(self) -> dict[int, Record]:
        found: dict[int, Record] = {}
        for segment in self.log.segments:
            data = (
                Path(segment.path).read_bytes()[: segment.size_bytes] if segment.has_files else b""
            )
            at = 0
            for header in iterate_headers(data):
                batch = memoryview(data)[at : at + header.size_bytes]
                at += header.size_bytes
                for record in iterate_records(batch, header):
                    found[record.offset] = record
        start = self.log.start_offset
        return {offset: record for offset, record in found.items() if offset >= start}

    def clean(self) -> bool:
        """Whether there was anything to clean."""
        plan = plan_compaction(
            self.log,
            clean_offset=self.clean_offset,
            now_ms=self.clock.ms,
            high_watermark=self.high,
        )
        if plan is None:
            return False
        plan.run()
        for removal in plan.apply():
            removal.run()
        self.clean_offset = plan.clean_offset
        return True

    def delete_before(self, offset: int) -> None:
        self.log.advance_start(offset)
        self.timeline.started_at(offset, self.clock.ms, "DeleteRecords")
        removal = remove_expired(self.log, now_ms=self.clock.ms, high_watermark=self.high)
        if removal is not None:
            removal.run()

    # The pipeline.

    def deliver(self, reject: set[int]) -> None:
        """One batch of all that it may read; of these it rejects some."""
        begin, end = self.next_batch()
        if begin < end:
            batch = self.batch
            self.table.merge(batch, self.read_batch(batch, begin, end, reject))

    def next_batch(self) -> tuple[int, int]:
        """The offsets that a batch would read now."""
        begin = max(self.delivered_to, self.log.start_offset)
        return begin, max(begin, self.stable if self.sink.reads_committed else self.high)

    def read_batch(self, batch: int, begin: int, end: int, reject: set[int]) -> list[Kept]:
        """Reads them and commits; the records that are not rejected."""
        there = self.present()
        self.batch = batch + 1
        read = [
            record
            for record in self.records[begin:end]
            if record.offset in there and not record.is_control
            if not (self.sink.reads_committed and record.outcome == "aborted")
        ]
        for record in read:
            record.batches.append(batch)
            record.rejected = record.offset in reject or record.key is None
        refused = [record.offset for record in read if record.rejected]
        self._commit(batch, begin, end, refused)
        self.delivered_to = end
        return [record for record in read if not record.rejected]

    def deed_of(self, record: Kept) -> Deed | None:
        """What the record did to the table."""
        return self.table.deed_of(record)

    def _commit(self, batch: int, begin: int, end: int, refused: list[int]) -> None:
        rejects = ""
        if refused:
            ranges = ",".join(f"[{offset},{offset + 1},0]" for offset in refused)
            rejects = f',"rejects":{{"kept":"{KEPT}","reasons":["{WHY}"],"ranges":[{ranges}]}}'
        isolation = ',"isolation":"read_committed"' if self.sink.reads_committed else ""
        told = (
            f'{{"ottla.pipeline":1,"query":"q","from":{begin},"batch":{batch},'
            f'"sink":{self.sink.said(batch + 1)}{rejects}{isolation}}}'
        )
        before = self.committed or Before(-1, "")
        self.timeline.committed(GROUP, end, told, self.clock.ms, before, By.MEMBER)
        self.committed, self.metadata = Before(end, told), told

    # What is asked.

    async def facts(self, offset: int) -> Facts:
        partition: Any = SimpleNamespace(
            topic="t",
            index=self.partition,
            log=self.log,
            timeline=self.timeline,
            high_watermark=self.high,
            leader=SimpleNamespace(followers={}),
        )

        async def groups(_: int) -> FoundGroups:
            positions = {}
            if self.committed is not None:
                positions[GROUP] = Position(
                    self.committed.offset, self.committed.metadata, -1, self.clock.ms, 1
                )
            return FoundGroups(positions, (), ALL_GROUPS)

        async def transactions(_: Any, __: Any) -> Coordinated:
            return Coordinated({}, ())

        async def elsewhere(key: bytes) -> KeyElsewhere:
            partitions: Any = [
                SimpleNamespace(index=other.partition, log=other.log) for other in self.others
            ]
            return await find_elsewhere(partitions, key, ())

        async def steps(_: int, __: Any) -> tuple[()]:
            return ()

        count = 1 + len(self.others)
        around = Around(1, count, 1, self.recorder, groups, transactions, steps, elsewhere)
        return await gather(partition, offset, around, lambda: self.clock.ms)
