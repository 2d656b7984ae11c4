"""`Replay`: the rejected rows of one pipeline through it once more.

    select     which rows are due, with the bytes of their records
    evaluate   what the pipeline makes of each: rows that fit, or a reason; all of it is kept
    write      the rows, to the target
    mark       what became of each, to `<target>_rejected`

A kill between any two of these leaves what `note` says, and the next replay ends it first. The run
has the checkpoint meanwhile: the pipeline itself must be stopped.
"""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ottla.pipelines.checkpoint.checkpoint import Checkpoint
from ottla.pipelines.checkpoint.identity import IDENTITY_DOCUMENT, Identity
from ottla.pipelines.checkpoint.lease import Lease
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.brokers import look_up
from ottla.pipelines.rejects.due import COLUMNS, REPLAYED, SENT, complete, due
from ottla.pipelines.rejects.table import without_quoted_value
from ottla.pipelines.replay.dead import read_dead_letters
from ottla.pipelines.replay.fits import (
    MAX_TAKEN_OUT,
    already_written,
    check_columns,
    check_known,
    check_partitions,
    check_rows,
    only_one,
    ordered,
)
from ottla.pipelines.replay.note import FOLDER, NOTE, OUTCOMES, ROWS, SELECTED, Begun
from ottla.pipelines.replay.outcome import MAX_REASONS, Replayed, ReplayedReason
from ottla.pipelines.replay.records import KNOWN_BY, records_of
from ottla.pipelines.run.column_origins import position_of
from ottla.pipelines.run.known_ids import check_ids
from ottla.pipelines.run.log_watch import replaced_records
from ottla.pipelines.run.next_offsets import check_table, identity_of, next_of
from ottla.pipelines.run.plan import SinkOf
from ottla.pipelines.run.specification import Specification
from ottla.pipelines.run.time_zone import check_zone
from ottla.pipelines.run.truncations import truncated
from ottla.pipelines.run.value_settings import check_settings
from ottla.pipelines.source.source import Source, sources_of
from ottla.pipelines.source.topic import only_rejected
from ottla.pipelines.spark.jvm.files import Files
from ottla.pipelines.target.commit_metadata import CommitMetadata, read_metadata
from ottla.pipelines.target.constraints import fitting, is_marked, refused
from ottla.pipelines.target.expectations import expecting, settled
from ottla.pipelines.target.port import Batch
from ottla.pipelines.target.record_position import OFFSET, PARTITION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.pipelines.target.port import Sink


@dataclass
class Replay:
    """One replay. `frame_of` makes what the pipeline makes of a batch of its topic's records.

    `reasons`: only rows whose reason contains one of these texts; empty: all. `dead_letters`: take
    them from the pipeline's topic for rejected rows. `tell` gets a line before each step.
    """

    specification: Specification
    sink_of: SinkOf
    frame_of: Callable[[DataFrame, Source], DataFrame]
    reasons: Sequence[str] = ()
    tell: Callable[[str], None] = field(default=lambda line: None)
    dead_letters: bool = False

    def __post_init__(self) -> None:
        asked = self.specification
        self.spark = asked.frame.sparkSession
        self.checkpoint = Checkpoint(Files(self.spark, os.fspath(asked.checkpoint)))
        self.sink: Sink = self.sink_of(asked)
        self.name = self.sink.name

    def run(self, *, dry_run: bool = False) -> Replayed:
        """Send the rows again; with `dry_run` look what would become of them.

        Raises PipelineError: the pipeline runs, or cannot send rows again; the target or the
        checkpoint is another one.
        """
        self.checkpoint.check()
        position = self.checkpoint.position()
        source, identity = self._check()
        if identity is None:
            return Replayed(f"{self.sink.shown}_rejected")
        if dry_run:
            return self._look(source, identity)
        lease = Lease(self.checkpoint.files)
        lease.acquire()
        lost: list[str] = []
        is_active = [True]
        lease.keep(lambda: is_active[0], lost.append)
        try:
            if self.checkpoint.position() != position:
                raise PipelineError(
                    f"Another run has written to the checkpoint {self.specification.checkpoint} "
                    "while this replay checked it. Start again"
                )
            return self._send(source, identity, lease)
        finally:
            is_active[0] = False
            lease.release()

    def _check(self) -> tuple[Source, Identity | None]:
        """Return what the pipeline reads, and whose checkpoint it is: None where it never ran."""
        asked, sink = self.specification, self.sink
        if not sink.capabilities.keeps_rejects:
            raise PipelineError(f"{self.name} keeps no rejected rows beside it")
        sources = [source for _, source in sources_of(asked.frame)]
        only_one(self.name, [source.name for source in sources])
        check_rows(self.name, asked.frame)
        identity = identity_of(self.checkpoint)
        if identity is None:
            return sources[0], None
        sink.forget()
        check_table(asked, sink, identity)
        for line in check_zone(asked, identity):
            self.tell(line)
        check_settings(asked, identity)
        check_ids(self.checkpoint.files, sources)
        is_replaced = self.checkpoint.next_replaced() > 1
        sink.keyed = ordered(self.name, sink.keyed, is_topic_replaced=is_replaced)
        for line in sink.check():
            self.tell(line)
        # Where the table lacks batches, or another query continues it, a query that reads their
        # records again writes those that were rejected, too.
        next_of(asked, sink, self.checkpoint, identity, len(sources), [])
        return sources[0], identity

    def _look(self, source: Source, identity: Identity) -> Replayed:
        self.sink.has_new_constraints()  # a table of a database is asked for its columns
        rejected, rows = self._due(source)
        if rows is None:
            return Replayed(rejected.shown)
        begun = NOTE.read(self.checkpoint.files)
        if begun is not None:
            self.tell("A replay was cut off. The next one finishes it first")
        selected = self._records(rows, source, identity).persist()
        try:
            failed, made = self._evaluate(selected, source)
            if is_marked(made):
                failed = failed.unionByName(complete(refused(made), source.name))
            outcomes = self._outcomes(selected, failed, 0)
            written = fitting(made).count() if is_marked(made) else made.count()
            counts = rows.count(), selected.count()
            return self._counted(rejected.shown, counts, outcomes, written)
        finally:
            selected.unpersist()

    def _send(self, source: Source, identity: Identity, lease: Lease) -> Replayed:
        finished = None
        self.sink.make()
        begun = NOTE.read(self.checkpoint.files)
        if begun is not None:
            self.tell("A replay was cut off: it is finished first")
            held = self.sink.held(begun.id)
            path = str(self.specification.checkpoint)
            check_known(begun, held, path)
            check_columns(self.sink.keyed, self._read(ROWS).columns, path)
            self._finish(begun, lease)
            finished = begun.rows
        self.tell("Looking for rejected rows")
        rejected, rows = self._due(source)
        if rows is None:
            return Replayed(rejected.shown, finished=finished)
        number = self._next_number(rejected)
        replay_id = self._new_id(rejected, number)
        selected = self._kept(self._records(rows, source, identity), SELECTED)
        every, readable = counts = rows.count(), selected.count()
        self.tell(
            f"Rows to send again: {readable:,}; without a readable record: {every - readable:,}"
        )
        failed, made = self._evaluate(selected, source)
        made = self._kept(made, ROWS)
        if is_marked(made):
            failed = failed.unionByName(complete(refused(made), source.name))
        fits = fitting(made) if is_marked(made) else made
        check_partitions(self.sink.keyed, fits, self.sink.rows())
        outcomes = self._kept(self._outcomes(selected, failed, number), OUTCOMES)
        now_ms = int(time.time() * 1_000)
        begun = Begun(replay_id, number, fits.count(), _changed(outcomes).count(), now_ms)
        found = self._counted(rejected.shown, counts, outcomes, begun.rows, finished=finished)
        if begun.outcomes == 0:
            self._clear()
            return found
        lease.check_kept()
        NOTE.write(self.checkpoint.files, begun)
        self._finish(begun, lease)
        return found

    def _finish(self, begun: Begun, lease: Lease) -> None:
        """Write what a note names; each target skips what it has."""
        made, outcomes = self._read(ROWS), _changed(self._read(OUTCOMES))
        text = CommitMetadata(f"replay of {self.sink.short_name}", begun.id, 0, "", {}, {}).text()
        batch = Batch(begun.id, 0, text, is_replay=True)
        if begun.rows:
            self.tell(f"Rows to write to {self.sink.shown}: {begun.rows:,}")
            lease.check_kept()
            rows = fitting(made) if is_marked(made) else made
            identity = IDENTITY_DOCUMENT.read(self.checkpoint.files)
            ids = {} if identity is None else identity.topics
            files, keyed = self.checkpoint.files, self.sink.keyed
            with truncated(rows, keyed, batch, files, self.sink, ids) as (left, of_it):
                self.sink.write(left, of_it)
        self.tell(f"Marking what became of them: {begun.outcomes:,}")
        lease.check_kept()
        beside = self.sink.rejected(outcomes.schema)
        beside.make()
        beside.write(outcomes, batch)
        self.tell("The replay is complete")
        self._clear()

    def _clear(self) -> None:
        self.checkpoint.files.delete(NOTE.name)
        self.checkpoint.files.delete(FOLDER)

    def _due(self, source: Source) -> tuple[Sink, DataFrame | None]:
        from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
        from pyspark.sql.types import StructType

        rejected = self.sink.rejected(StructType())
        frame = rejected.rows()
        if self.dead_letters:
            frame = self._dead(source, frame)
        if frame is None:
            return rejected, None
        rows = due(frame, source.name)
        if self.reasons:
            wanted = [F.col("reason").contains(text) for text in self.reasons]
            rows = rows.where(F.greatest(*wanted) if len(wanted) > 1 else wanted[0])
        return rejected, rows

    def _dead(self, source: Source, frame: DataFrame | None) -> DataFrame:
        """Return what the dead-letter topic holds, with what became of it in former replays."""
        topic = self.specification.dead_letters
        if topic is None:
            raise PipelineError(
                f"{self.name} has no topic for rejected rows: name it in dead_letters, or send "
                "again those beside the target"
            )
        look_up(source.kafka, [topic])
        query = self.sink.short_name
        dead = read_dead_letters(self.spark, source.kafka, topic, query, source.name)
        if frame is None or REPLAYED not in frame.columns:
            return dead
        return dead.unionByName(complete(frame, source.name).where(f"{REPLAYED} IS NOT NULL"))

    def _next_number(self, rejected: Sink) -> int:
        frame = rejected.rows()
        if frame is None or REPLAYED not in frame.columns:
            return 1
        row = frame.agg({REPLAYED: "max"}).first()
        return int((row[0] if row else None) or 0) + 1

    def _new_id(self, rejected: Sink, number: int) -> str:
        """Return the id of the next replay, by which the target knows its rows.

        Each checkpoint of the pipeline (a copy, a backup, a new one) gives the same id until the
        rejected rows are marked: what one has written another one does not write again. Raises
        PipelineError.
        """
        table_id = rejected.table_id()
        if not table_id:
            return uuid.uuid4().hex  # nothing was ever marked
        for attempt in range(MAX_TAKEN_OUT):
            text = f"{table_id} {number} {attempt}"
            replay_id = hashlib.sha256(text.encode()).hexdigest()[:32]
            held = self.sink.held(replay_id)
            if held.batch is not None and not held.taken_out:
                raise PipelineError(already_written(self.name, rejected.name))
            if not held.taken_out:
                break
        return replay_id

    def _records(self, rows: DataFrame, source: Source, identity: Identity) -> DataFrame:
        topic_id = identity.topics.get(source.name, "")

        def can_read() -> bool:
            position = position_of(self.specification.frame)
            is_placed = position.columns[-2:] == (PARTITION, OFFSET) and not position.is_shared
            ids = {source.name: topic_id}
            return (
                is_placed
                and self._is_only_topic(source.name, topic_id)
                and not replaced_records(self.checkpoint.files, [source], ids).get(source.name)
            )

        return records_of(self.spark, rows, source, topic_id, can_read)

    def _is_only_topic(self, name: str, topic_id: str) -> bool:
        """Tell whether all rejected rows are of this topic, and none is of a former one.

        A topic that was created again has other records at the same offsets.
        """
        if self.checkpoint.next_replaced() > 1:
            return False
        from pyspark.sql.types import StructType

        commits = (*self.sink.metadata(), *self.sink.rejected(StructType()).metadata())
        known = (read_metadata(text) for text in commits)
        return all(one.topic_ids.get(name, topic_id) == topic_id for one in known if one)

    def _evaluate(self, selected: DataFrame, source: Source) -> tuple[DataFrame, DataFrame]:
        """Return the records that do not parse, with the reason, and what is made of the others."""
        self.tell("Computing what the pipeline makes of them")
        raw = selected.select(
            "topic", "partition", "offset", "timestamp", "headers", "key", "value"
        )
        failed = only_rejected(raw, source)
        if not source.can_reject:
            failed = failed.limit(0)
        rows = self.specification.with_marks(self.frame_of(raw, source))
        made = settled(expecting(self.sink.constrained(rows), self.specification.expectations))
        return complete(failed, source.name), made

    def _outcomes(self, selected: DataFrame, failed: DataFrame, number: int) -> DataFrame:
        """Return a row for each record: SENT, or why it failed again; and for each row that the
        target refuses and whose record is not known.

        `failed`: rows that failed, with all of COLUMNS.
        """
        from pyspark.sql import functions as F  # noqa: N812

        position = ["topic", "partition", "offset"]
        again = failed.where(F.col("offset").isNotNull() & F.col("partition").isNotNull())
        names = [name for name in COLUMNS if name not in (*position, "timestamp", REPLAYED)]
        known = selected.select(*position, KNOWN_BY, F.col("reason").alias("former"))
        joined = known.join(again.select(*position, *names), position, "left")
        of_records = joined.select(
            *position,
            F.col(KNOWN_BY).alias("timestamp"),
            *(
                F.coalesce("reason", F.lit(SENT)).alias(name) if name == "reason" else F.col(name)
                for name in names
            ),
            F.lit(number).alias(REPLAYED),
            "former",
        )
        other = failed.where(F.col("offset").isNull() | F.col("partition").isNull())
        other = other.drop(REPLAYED).withColumns(
            {REPLAYED: F.lit(None).cast("int"), "former": F.lit("").cast("string")}
        )
        return of_records.select(*COLUMNS, "former").unionByName(other.select(*COLUMNS, "former"))

    def _counted(
        self,
        table: str,
        counts: tuple[int, int],
        outcomes: DataFrame,
        written: int,
        finished: int | None = None,
    ) -> Replayed:
        """`counts`: of all rows, and of those with a readable record."""
        from pyspark.sql import functions as F  # noqa: N812

        mine = outcomes.where(F.col("offset").isNotNull())
        is_sent = F.col("reason") == SENT
        record = ["topic", "partition", "offset", "timestamp"]
        each = mine.groupBy(*record, without_quoted_value("former").alias("former")).agg(
            F.min(is_sent).alias("is_sent"), F.first("reason").alias("reason")
        )
        found = (
            each.groupBy("former")
            .agg(F.count(F.lit(1)).alias("rows"), F.count_if("is_sent").alias("sent"))
            .orderBy(F.desc("rows"), "former")
            .limit(MAX_REASONS)
            .collect()
        )
        kept = (
            outcomes.where(~is_sent)
            .groupBy(without_quoted_value("reason").alias("reason"))
            .agg(F.count(F.lit(1)).alias("rows"))
            .orderBy(F.desc("rows"), "reason")
            .limit(MAX_REASONS)
            .collect()
        )
        sent = each.where("is_sent").count()
        every, records = counts
        return Replayed(
            table,
            every,
            sent,
            records - sent,
            max(0, every - records),
            written,
            tuple(
                ReplayedReason(row["former"], row["rows"], row["sent"], row["rows"] - row["sent"])
                for row in found
            ),
            tuple((row["reason"], row["rows"]) for row in kept),
            finished,
        )

    def _kept(self, frame: DataFrame, name: str) -> DataFrame:
        """Write a frame into the checkpoint, and return it as it is kept there."""
        frame.write.mode("overwrite").parquet(self._path(name))
        return self._read(name)

    def _read(self, name: str) -> DataFrame:
        return self.spark.read.parquet(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self.checkpoint.files.location}/{name}"


def _changed(outcomes: DataFrame) -> DataFrame:
    """Return the outcomes to be written: a record that fails for its former reason stays as it is.

    A row that names no record is written.
    """
    return outcomes.where("NOT reason <=> former").select(*COLUMNS)
