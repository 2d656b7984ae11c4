"""Rejected rows: written to `<target>_rejected`, with the same promise as their batch.

Spark counts them while it reads a batch, and notes in which blocks of offsets they lie. Only these
blocks are read a second time, for these rows alone: no projection or join of a pipeline loses them.

A commit takes longer than the rows are worth. While the topic is known to hold more records, the
rejected rows of several batches wait for one commit: they are noted in the checkpoint, and each
batch's `userMetadata` says from which offsets on they are not written yet. The last batch of what
the topic holds writes them all.

Each start of Spark's query writes what the note names, also a restart in the same process: Spark
repeats the batch that failed, and the note has the rejected rows of the batches before it.

The brokers are told with each batch which offsets it rejected (`told`): of rows that wait only
where they lie, and with the batch that writes them which ones they are.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ottla.pipelines.checkpoint.identity import Offsets
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.rejected_offsets import Told, joined
from ottla.pipelines.rejects.dead_letters import DeadLetters
from ottla.pipelines.rejects.pending import Part, PendingReject, read_pending, write_pending
from ottla.pipelines.rejects.read_again import find_part, read_schemas, readable, rejected_frames
from ottla.pipelines.rejects.told import Seen, anywhere, seen_in, somewhere, told
from ottla.pipelines.source.source import Source
from ottla.pipelines.spark.jvm.execution import Execution
from ottla.pipelines.target.constraints import METRIC, VIOLATED
from ottla.pipelines.target.expectations import rejected_in as unexpected_in
from ottla.pipelines.target.port import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ottla.pipelines.kafka.brokers import TopicState
    from ottla.pipelines.rejects.decided import Decision
    from ottla.pipelines.spark.jvm.files import Files
    from ottla.pipelines.target.port import Sink

log: Final = logging.getLogger("ottla.pipelines")

MAX_WAITING_BATCHES: Final = 32
MAX_WAIT_S: Final = 60.0
NOTHING: Final = Seen(0, {}, None)

RowsOf: TypeAlias = "Callable[[], DataFrame]"
"""Gives rows when they are wanted: their plan takes longer than a small batch may."""


@dataclass
class Waiting:
    """Rejected rows of one or more batches that are not written.

    `starts`: where the first of these batches begins. `counted`: how many of the rows are in the
    count of the run. `is_noted`: the note in the checkpoint has them, but for those of a last
    batch that must not wait.
    """

    first_batch: int
    last: Batch
    starts: Offsets
    since_s: float
    batches: int = 0
    parts: list[Part] = field(default_factory=list)
    counted: int = 0
    is_noted: bool = False


@dataclass
class Rejects:
    """The rejected rows of one run: `count` of them so far, at most `max_rows` when it is set.

    `reason` is the most frequent one of those that were written first, None before. `told` is what
    the commits of the last batch say.

    `files` is the checkpoint. `sources` are the sources of the query, `topic_ids` the ids of
    their topics.
    """

    spark: SparkSession
    sink: Sink
    files: Files
    sources: tuple[Source, ...]
    topic_ids: Mapping[str, str]
    max_rows: int | None = None
    reads_all: bool = True  # nothing in the plan makes Spark stop reading a batch early
    dead_letters: DeadLetters | None = None
    clock: Callable[[], float] = time.monotonic
    count: int = 0
    reason: str | None = None
    told: Told = field(default_factory=dict)
    _earlier: Told = field(default_factory=dict)  # of a note, for the commits of the next batch
    _target: Sink | None = None
    _waiting: Waiting | None = None

    def use(self, sink: Sink, sources: tuple[Source, ...]) -> None:
        """Take the rows of these sources from now on: the query was planned again."""
        self.sink, self.sources = sink, sources

    @property
    def may_reject(self) -> bool:
        """Whether any rows of this run can be rejected; those that a CHECK refuses aside."""
        return bool(self._rejecting) or self.sink.keyed is not None

    @property
    def _rejecting(self) -> list[Source]:
        return [source for source in self.sources if source.can_reject]

    def written_until(self, execution: Execution) -> Offsets:
        """Return the offsets up to which all rejected rows of each topic are written."""
        if self._waiting is not None:
            return self._waiting.starts
        return self._starts(execution)

    def _starts(self, execution: Execution) -> Offsets:
        found: Offsets = {}
        for source in self._rejecting:
            if span := execution.range_of(source.name):
                found[source.name] = span[0]
        return found

    def write(
        self,
        execution: Execution,
        batch: Batch,
        refused: RowsOf | None,
        *,
        skipped: bool,
        former: Decision | None = None,
    ) -> None:
        """Write or note the rejected rows of the batch that the query has just written.

        `refused` gives the rows that violate a constraint of the table, which may have none.
        `skipped`: the batch was not read, as the sink had it already; nothing was counted then.
        `former`: by what the run decided that wrote it, where that is not how rows are read now.
        Raises PipelineError when there are more than `max_rows` in this run.
        """
        self.told, self._earlier = self._earlier, {}
        if not self.sources and refused is None:
            return
        counted = {} if skipped else execution.counted()
        rejecting = self._rejecting if former is None else self._as_in(former)
        parts = self._find_parts(rejecting, execution, counted)
        violated = _violated(counted)
        if violated == 0:
            refused = None
        if parts or self._waiting is not None:
            self._add(execution, batch, parts)
        is_over = self.max_rows is not None and self.count > self.max_rows
        if refused is None and not is_over and self._may_wait(execution, parts):
            self._note(parts)
            self.told = joined(self.told, somewhere(parts, self._kept))
            return
        self._flush(batch, refused, violated, execution)
        if self.max_rows is not None and self.count > self.max_rows:
            assert self._target is not None, "rows were counted, so they were written"
            raise PipelineError(
                f"rows rejected in this run: {self.count}, more than max_rejects="
                f"{self.max_rows}. See the column reason of {self._target.name}"
            )

    def finish(self) -> None:
        """Write what waits: the query has been stopped."""
        if self._waiting is not None:
            self._flush(self._waiting.last, None, None, None)

    def recover(self, look_up: Callable[[], Mapping[str, TopicState]]) -> None:
        """Write what the note names; called before each start of Spark's query.

        `look_up` asks the brokers for the state of the query's topics: a restart may come hours
        after the first start. What waits in memory is dropped: the note has the rows of the
        batches that Spark counts as done, and Spark repeats the others. Raises PipelineError
        where the brokers do not answer.
        """
        dropped, self._waiting = self._waiting, None
        left = read_pending(self.files)
        number = 0
        if left:
            topics = look_up()
            number = sum(self._write_left(due, topics) for due in left)
            write_pending(self.files, [])
        if dropped is not None:
            self.count += number - dropped.counted

    def _as_in(self, former: Decision) -> list[Source]:
        """Return the sources as they were read then."""
        return [
            replace(
                source,
                schemas=read_schemas(former.sources[source.name]["schemas"]),
                unknown_fields=former.sources[source.name]["unknown_fields"],
                source_format=former.sources[source.name]["format"],
            )
            for source in self.sources
            if source.name in former.sources
        ]

    def _find_parts(
        self,
        rejecting: Iterable[Source],
        execution: Execution,
        counted: Mapping[str, dict[str, Any]],
    ) -> list[Part]:
        parts = []
        for source in rejecting:
            span = execution.range_of(source.name)
            found = find_part(
                source,
                self.topic_ids.get(source.name, ""),
                span,
                counted.get(source.metric),
                reads_all=self.reads_all,
            )
            if found is not None:
                parts.append(found)
        return parts

    def _add(self, execution: Execution, batch: Batch, parts: list[Part]) -> None:
        if self._waiting is None:
            starts = self._starts(execution)
            self._waiting = Waiting(batch.number, batch, starts, self.clock())
        known = _known(parts)
        self._waiting.last = batch
        self._waiting.batches += 1
        self._waiting.parts += parts
        self._waiting.counted += known
        self.count += known

    def _may_wait(self, execution: Execution, parts: list[Part]) -> bool:
        waiting = self._waiting
        return waiting is None or (
            all(part.count is not None for part in parts)
            and waiting.batches < MAX_WAITING_BATCHES
            and self.clock() - waiting.since_s < MAX_WAIT_S
            and execution.more_waits()
        )

    def _note(self, parts: list[Part]) -> None:
        """Note all that waits, if the last batch added `parts` to it."""
        if not parts:
            return
        waiting = self._waiting
        assert waiting is not None, "the parts wait"
        last = waiting.last
        due = PendingReject(
            last.query_id, last.number, last.once, last.metadata, tuple(waiting.parts)
        )
        write_pending(self.files, [due])
        waiting.is_noted = True

    def _flush(
        self,
        batch: Batch,
        refused: RowsOf | None,
        violated: int | None,
        execution: Execution | None,
    ) -> None:
        """Write what waits and the rows that a constraint refuses, in one commit.

        `execution` is that of the batch; None: the query has ended, and makes no more commits.
        """
        waiting = self._waiting
        parts = waiting.parts if waiting else []
        frames, seen = self._frames(parts), NOTHING
        if frames:
            seen = self._seen_of(frames, parts)
        if refused is not None:
            frames.append(refused())
            names = [source.name for source in self.sources]
            topic = names[0] if len(names) == 1 else None
            seen = seen.and_also(seen_in(frames[-1], violated, topic))
        if not frames:
            return
        number = seen.number
        if number:
            self._commit(_union(frames), batch)
            if execution is not None:
                waited = parts if waiting and waiting.batches > 1 else []
                self._tell(seen, waited, execution)
            first = waiting.first_batch if waiting else batch.number
            where = f"batch {batch.number}"
            if first != batch.number:
                where = f"batches {first} to {batch.number}"
            self.reason = self.reason or seen.reason
            log.warning(
                "%d %s of %s rejected in %s, kept in %s; most of them: %s",
                number,
                "row" if number == 1 else "rows",
                ", ".join(dict.fromkeys(part.topic for part in parts)) or "the query",
                where,
                self._rejected().name,
                self.reason,
            )
        self._waiting = None
        self.count += number - (waiting.counted if waiting else 0)
        if waiting is not None and waiting.is_noted:
            write_pending(self.files, [])

    def _tell(self, seen: Seen, waited: list[Part], execution: Execution) -> None:
        """Tell which of the offsets are those of the rows that were written just now."""
        if seen.ranges is None:
            names = [source.name for source in self.sources]
            spans = {name: span for name in names if (span := execution.range_of(name))}
            self.told = joined(self.told, told(anywhere(self.sources, spans), self._kept))
        else:
            self.told = joined(self.told, told(seen.ranges, self._kept, waited))

    @property
    def _kept(self) -> str:
        return f"{self.sink.short_name}_rejected"

    def _commit(self, frame: DataFrame, batch: Batch) -> None:
        if self._target is None:
            self._target = self.sink.rejected(frame.schema)
            self._target.make()
        if self.dead_letters is not None:
            self.dead_letters.write(frame, self.sink.short_name)
        self._target.write(frame, batch)

    def _rejected(self) -> Sink:
        assert self._target is not None
        return self._target

    def _write_left(self, due: PendingReject, topics: Mapping[str, TopicState]) -> int:
        """Write the rows of a note and return their number, 0 where they are written already."""
        # Asked first: what the broker has removed since then is not lost.
        if self.sink.rejected_hold(due.query_id, due.batch):
            return 0
        parts = [
            part
            for part in (readable(part, topics.get(part.topic)) for part in due.parts)
            if part is not None
        ]
        if not parts:
            return 0
        frames = self._frames(parts)
        seen = self._seen_of(frames, parts)
        number = seen.number
        if number:
            batch = Batch(due.query_id, due.batch, due.metadata, due.once)
            self._commit(_union(frames), batch)
            if seen.ranges is not None:
                self._earlier = joined(self._earlier, told(seen.ranges, self._kept, parts))
            log.warning(
                "%d rejected rows of earlier batches, which were not written, are kept in %s",
                number,
                self._rejected().name,
            )
        return number

    def _seen_of(self, frames: list[DataFrame], parts: list[Part]) -> Seen:
        """Return what these ranges still show; log how many rejected rows of them are gone."""
        is_known = all(part.count is not None for part in parts)
        seen = seen_in(_union(frames), _known(parts) if is_known else None, None)
        gone = _known(parts) - seen.number  # what is not known counts as 0
        if gone > 0:
            log.warning(
                "%d rejected rows of %s are lost: the topic no longer holds their records "
                "(compaction or retention removed them) where they were to be written",
                gone,
                ", ".join(dict.fromkeys(part.topic for part in parts)),
            )
        return seen

    def _frames(self, parts: Iterable[Part]) -> list[DataFrame]:
        kafka = {source.name: source.kafka for source in self.sources}
        return rejected_frames(self.spark, kafka, parts)


def _violated(counted: Mapping[str, dict[str, Any]]) -> int | None:
    """Return how many rows the target or an expectation refuses, None where it is not known."""
    of_target, unexpected = counted.get(METRIC, {}).get(VIOLATED), unexpected_in(counted)
    if of_target is None and unexpected is None:
        return None
    return int(of_target or 0) + (unexpected or 0)


def _known(parts: Iterable[Part]) -> int:
    """Return how many rows are rejected in these parts, as far as it is known."""
    return sum(part.count or 0 for part in parts)


def _union(frames: list[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)
