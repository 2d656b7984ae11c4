"""`BatchRunner`: writes each batch of a running query as its delivery promises.

Before the write: the topics are still the same; with `at-most-once` the batch's number is noted,
and a batch that was noted before is written without its rows.
After it: the rejected rows, and those older than the watermark. Spark counts the batch as done
when all of that is.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from ottla.pipelines.checkpoint.changes import more_partitions
from ottla.pipelines.checkpoint.identity import Offsets
from ottla.pipelines.checkpoint.next_batch import Planned, Refuse, decide
from ottla.pipelines.delivery import DeliveryGuarantee
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.locations import shown_location
from ottla.pipelines.rejects.first_batch import check_first_batch
from ottla.pipelines.run.decisions import Decisions, marked_by
from ottla.pipelines.run.far_ahead import FarAhead
from ottla.pipelines.run.kept_state import keep_state
from ottla.pipelines.run.new_schemas import noting_new_schemas
from ottla.pipelines.run.skipped_tombstones import SkippedTombstones
from ottla.pipelines.run.truncations import check_one_partition, truncated
from ottla.pipelines.run.undoing import undoing
from ottla.pipelines.run.unknown_fields import UnknownFieldsWatch
from ottla.pipelines.source.source import read_committed_of
from ottla.pipelines.spark.jvm.execution import EARLIEST, Execution
from ottla.pipelines.target.commit_metadata import CommitMetadata
from ottla.pipelines.target.constraints import fitting, is_marked, refused
from ottla.pipelines.target.expectations import dropped_in, settled, unasked
from ottla.pipelines.target.port import NO_VERSION, Batch
from ottla.pipelines.target.truncation import NOTE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ottla.pipelines.checkpoint.checkpoint import Checkpoint
    from ottla.pipelines.checkpoint.topic_watch import TopicWatch
    from ottla.pipelines.destination import Destination
    from ottla.pipelines.rejected_offsets import Told
    from ottla.pipelines.rejects.decided import Decision
    from ottla.pipelines.rejects.left_out import LeftOutRows
    from ottla.pipelines.rejects.rejects import Rejects
    from ottla.pipelines.run.late_rows import LateRows
    from ottla.pipelines.run.log_watch import LogWatch
    from ottla.pipelines.source.source import Source
    from ottla.pipelines.spark.jvm.files import Files
    from ottla.pipelines.target.port import Sink
    from ottla.pipelines.unknown_fields import Unknown

log: Final = logging.getLogger("ottla.pipelines")

MAX_KEPT: Final = 1_000
_ADAPTIVE: Final = "spark.sql.adaptive.enabled"


@dataclass
class BatchRunner:
    """Called by Spark for each batch, and again for a batch that was cut off.

    `checks_first`: the first batch of a checkpoint is not written where most of it is rejected.
    `after`: the queries that this one continues. `check_new` checks again, before the first batch
    of a new query, that no other query has written to the target since, and `check_first` after it.
    `check_kept` checks, before the first batch of a run, that the checkpoint is still the run's.
    `logs` checks now and then that the topics still have the records that were read.
    `versions`, `offsets` and `told` have what became of the last MAX_KEPT batches: the version that
    holds each (None: it was not written), where it ended, and what it rejected.
    """

    spark: SparkSession
    sink: Sink
    checkpoint: Checkpoint
    delivery: DeliveryGuarantee
    rejects: Rejects | LeftOutRows
    watch: TopicWatch
    cluster: str
    topic_ids: dict[str, str]
    late: LateRows | None = None
    checks_first: bool = False
    query_name: str = ""
    after: tuple[str, ...] = ()
    check_new: Callable[[str], None] | None = None
    check_first: Callable[[str], None] | None = None
    check_kept: Callable[[], None] | None = None
    destination: Destination | None = None
    logs: LogWatch | None = None
    versions: dict[int, int | None] = field(default_factory=dict)
    offsets: dict[int, Offsets] = field(default_factory=dict)
    told: dict[int, Told] = field(default_factory=dict)
    dropped: int = 0
    truncated: int = 0
    unknown: UnknownFieldsWatch = field(default_factory=UnknownFieldsWatch)
    decisions: Decisions = field(default_factory=Decisions)
    _query_id: str = ""
    _promised: int | None = None
    _warned_of_truncated: bool = False
    _tombstones: SkippedTombstones = field(default_factory=SkippedTombstones)
    _far_ahead: FarAhead = field(default_factory=FarAhead)

    def __call__(self, frame: DataFrame, number: int) -> None:
        """Write one batch."""
        if self.check_kept is not None:
            self.check_kept()
            self.check_kept = None
        self.watch.check()
        self.sink.check_running()
        query_id = self.query_id()
        execution = Execution(self.spark, query_id)
        if self.logs is not None:
            self.logs.check(self.rejects.sources, execution)
        ends = execution.ends()
        if self.checks_first and number == 0:
            check_first_batch(self.spark, self.rejects.sources, execution)
        self._check_partitions(execution)
        if self.check_new is not None and number == 0:
            self.check_new(query_id)
        was_begun = False
        if self.delivery is DeliveryGuarantee.AT_MOST_ONCE:
            was_begun = number <= self.checkpoint.noted(query_id)
            if not was_begun:
                self.checkpoint.note(query_id, number)
        metadata = CommitMetadata(
            self.query_name or query_id,
            query_id,
            number,
            self.cluster,
            self.topic_ids,
            ends,
            self.rejects.written_until(execution),
            self.after,
        )
        if self._promised is None:
            self._promised = self.checkpoint.promised(query_id)
        checkpoint = self._shown_checkpoint()
        batch = Batch(
            query_id,
            number,
            metadata.text(),
            self.delivery.doubles_nothing,
            execution.forget_counted,
            checkpoint,
            self._promised,
            self.offsets.get(number - 1),
        )
        if was_begun:
            self._leave_out(frame, execution, batch, ends)
            return
        former = self.decisions.former(self.files, self.sink, query_id, number)
        # Rows that a constraint of the table refuses would make Delta refuse the whole batch.
        marked = is_marked(frame)
        kept = settled(frame)
        rows = fitting(kept) if marked else kept
        undo = functools.partial(self._undo, query_id, number)
        with (
            _adaptive(frame.sparkSession, is_on=self.sink.is_adaptive),
            noting_new_schemas(self.spark, execution, self.rejects.sources, undo),
            undoing(undo, self.sink.failures),
            self._truncated(rows, batch) as (left, marked_batch),
        ):
            version = self.sink.write(left, marked_batch)
        self._promised = number
        # No other query has written to a table whose first version has this batch.
        if self.check_first is not None and number == 0 and version != 1:
            self.check_first(query_id)
        # An earlier run committed this batch, and the sink skipped it: nothing was read.
        skipped = version is None
        if skipped:
            execution.forget_counted()  # a batch with truncations was read before
            self._check_skipped(query_id, number, ends)
            keep_state(frame, execution.plan())
        self._tombstones.look(self.rejects.sources, execution, self.sink)
        if not skipped:
            self.unknown.look(self.rejects.sources, execution)
            # Now: each further reading of the batch is counted, too.
            self.dropped += dropped_in(execution.counted())
            self._look_truncated(marked_batch)
        self._far_ahead.look(execution, self.sink, number)
        # Not each batch has rows for the targets beside.
        batch = replace(batch, promised=None, begins=None)
        if not skipped:
            former = None  # it was written again, as rows are read now
        self._reject(frame, execution, batch, former, skipped=skipped)
        if self.late is not None:
            self.late.write(frame.sparkSession, execution, batch, skipped=skipped)
        self._keep(number, self.sink.version_of(query_id, number) if skipped else version, ends)

    def _reject(
        self,
        frame: DataFrame,
        execution: Execution,
        batch: Batch,
        former: Decision | None,
        *,
        skipped: bool,
    ) -> None:
        """Write the rejected rows of a batch that is in the target."""
        refusing = frame
        if former is not None:
            refusing = marked_by(former, frame, self.files, self.sink, batch.number)
        rows_refused = functools.partial(refused, refusing) if is_marked(refusing) else None
        self.rejects.write(execution, batch, rows_refused, skipped=skipped, former=former)
        self.told[batch.number] = self.rejects.told

    def _truncated(
        self, rows: DataFrame, batch: Batch
    ) -> contextlib.AbstractContextManager[tuple[DataFrame, Batch]]:
        keyed = self.sink.keyed
        return truncated(rows, keyed, batch, self.files, self.sink, self.topic_ids)

    def _look_truncated(self, batch: Batch) -> None:
        """Count the records that an earlier truncation has left out, and warn of the first."""
        self.truncated += batch.truncated
        if batch.truncated and not self._warned_of_truncated:
            self._warned_of_truncated = True
            log.warning(
                "batch %d has %d records that are older than the last truncation of %s, by %s: "
                "they are left out. If that order began again, as after a restore of the database, "
                "stop the query and delete %s in its checkpoint",
                batch.number,
                batch.truncated,
                self.sink.name,
                self.sink.keyed and self.sink.keyed.order_by,
                NOTE.name,
            )

    def _leave_out(
        self, frame: DataFrame, execution: Execution, batch: Batch, ends: Offsets
    ) -> None:
        """Write a batch that was begun before without its rows, unless the target has it.

        A truncation in it takes the older rows of the table, which the batches before have written.
        A run on a copy of the checkpoint then finds the batch in the target, and does not write it.
        """
        former = self.decisions.former(self.files, self.sink, batch.query_id, batch.number)
        held = self.sink.held(batch.query_id).batch
        is_known = held is not None and held >= batch.number
        if not is_known:
            # Before the write: a run after one that is killed there finds the batch in the target.
            self._warn_of_left_out(batch.number, ends)
        keyed = self.sink.keyed
        if keyed is not None and keyed.has_truncations:
            # What its truncation takes was there before the batch, and goes: taking it twice is
            # taking it once.
            rows = unasked(fitting(frame) if is_marked(frame) else frame)
            with self._truncated(rows, batch) as (left, truncating):
                version = self.sink.write(left.limit(0), truncating)
            execution.forget_counted()
        else:
            version = self.sink.write(unasked(frame).limit(0), batch)
        self._promised = batch.number
        has_it = version is None
        if has_it:
            self._check_skipped(batch.query_id, batch.number, ends)
            beside = replace(batch, promised=None, begins=None)
            self._reject(frame, execution, beside, former, skipped=True)
        elif is_known:  # a part of it alone
            self._warn_of_left_out(batch.number, ends)
        keep_state(frame, execution.plan())
        written = self.sink.version_of(batch.query_id, batch.number) if has_it else None
        self._keep(batch.number, written, ends)

    def _warn_of_left_out(self, number: int, ends: Offsets) -> None:
        log.warning(
            "Batch %d was begun by a run that was cut off; at-most-once does not write it again: "
            "its rows up to %s may be missing in %s",
            number,
            ends,
            self.sink.name,
        )

    def _check_partitions(self, execution: Execution) -> None:
        """Refuse a batch with new partitions where a key must stay in its own, or a truncation has
        no order beside them.

        Raises PipelineError.
        """
        keyed = self.sink.keyed
        if keyed is not None and keyed.has_truncations:
            ranges = {one.name: execution.range_of(one.name) for one in self.rejects.sources}
            check_one_partition(keyed, {name: of[0] for name, of in ranges.items() if of})
        if keyed is None or not keyed.forgets_positions:
            return
        for source in self.rejects.sources:
            found = execution.range_of(source.name)
            starts = {} if found is None else found[0]
            known = [partition for partition, first in starts.items() if first != EARLIEST]
            if wrong := more_partitions(source.name, known, starts):
                raise PipelineError(wrong)

    def _check_skipped(self, query_id: str, number: int, ends: Offsets) -> None:
        """Check that the target has this batch, and not another one of the same number.

        Raises PipelineError.
        """
        planned = Planned(self._shown_checkpoint(), number, ends=ends, is_skipped=True)
        held = self.sink.held(query_id)
        if not self.delivery.doubles_nothing:
            held = replace(held, is_twice=False)
        answer = decide(planned, held)
        if isinstance(answer, Refuse):
            raise PipelineError(answer.sentence)

    def _shown_checkpoint(self) -> str:
        return shown_location(self.checkpoint.files.location)

    def _undo(self, query_id: str, number: int) -> None:
        """Forget that a batch has begun: none of its rows is written, unless it has parts."""
        in_parts = self.sink.capabilities.in_parts
        if self.delivery is DeliveryGuarantee.AT_MOST_ONCE and not in_parts:
            self.checkpoint.note(query_id, number - 1)

    def use(self, sink: Sink, sources: tuple[Source, ...]) -> None:
        """Write to this sink from now on, rows of these sources: the query was planned again."""
        self.sink = sink
        self.rejects.use(sink, sources)
        if self.late is not None:
            self.late.sink = sink

    def finish(self) -> None:
        """Write the rejected rows that still wait; called when the query has been stopped."""
        self.rejects.finish()

    def _keep(self, number: int, version: int | None, ends: Offsets) -> None:
        self.versions[number] = None if version == NO_VERSION else version
        self.offsets[number] = ends
        while len(self.versions) > MAX_KEPT:
            del self.versions[min(self.versions)]
        while len(self.offsets) > MAX_KEPT:
            del self.offsets[min(self.offsets)]
        while len(self.told) > MAX_KEPT:
            del self.told[min(self.told)]

    @property
    def files(self) -> Files:
        """The files of the checkpoint, in which Spark keeps the query's offsets."""
        return self.checkpoint.files

    @property
    def table(self) -> str:
        """The table's name, or its whole path."""
        return self.sink.shown

    @property
    def rejected_rows(self) -> int:
        """The rows that this run rejected beside its target, also for a constraint."""
        return self.rejects.count

    @property
    def rejected_reason(self) -> str | None:
        """The most frequent reason of the rows that this run rejected; None: not known."""
        return self.rejects.reason

    @property
    def reads_committed(self) -> frozenset[str]:
        """The topics of which it reads no records of aborted transactions."""
        return read_committed_of(self.rejects.sources)

    @property
    def unknown_fields(self) -> Unknown:
        """The fields of the values that the schemas lack, as far as this run has seen some."""
        return self.unknown.found

    def rejected_in(self, batch: int) -> Told | None:
        """Return what a batch rejected, None where another run wrote it: then nothing is known."""
        return self.told.get(batch, None if self.rejects.may_reject else {})

    def query_id(self) -> str:
        """Return the query's id, empty until Spark has written it in the checkpoint."""
        if not self._query_id:
            self._query_id = self.checkpoint.query_id()
        return self._query_id

    def version_of(self, batch: int) -> int | None:
        """Return the version that holds a batch, from the table's history if need be."""
        if batch not in self.versions:
            self.versions[batch] = self.sink.version_of(self.query_id(), batch)
        return self.versions[batch]


@contextlib.contextmanager
def _adaptive(session: SparkSession, *, is_on: bool | None) -> Iterator[None]:
    """Let Spark plan the write adaptively or not: it switches that off for the stream's own plan.
    None leaves it as it is.

    Since Spark 4.1 it does so only where that plan has state (SPARK-53941). The stream's plan is
    made before the batch is handed over, and again for the next one, so the setting holds for the
    write alone.
    """
    wanted = None if is_on is None else str(is_on).lower()
    if wanted is None or (before := session.conf.get(_ADAPTIVE)) == wanted:
        yield
        return
    session.conf.set(_ADAPTIVE, wanted)
    try:
        yield
    finally:
        session.conf.set(_ADAPTIVE, before)
