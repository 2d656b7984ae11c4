"""`to_delta`: a stream into a Delta table; see `sinks.delta.sink`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.failures.known import Known
from ottla.pipelines.run.frame import Written
from ottla.pipelines.sinks.delta.compaction import COMPACT_AFTER
from ottla.pipelines.sinks.delta.maintenance import maintain
from ottla.pipelines.sinks.delta.sink import DeltaSink
from ottla.pipelines.sinks.delta.target import find_target
from ottla.pipelines.spark.jvm.required import require_delta
from ottla.pipelines.spec.option import option
from ottla.pipelines.spec.sink import KeyedOptions, LakeOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from ottla.pipelines.run.specification import Specification
    from ottla.pipelines.spec.maintained import Maintained
    from ottla.pipelines.target.port import Sink


@dataclass(frozen=True, slots=True)
class DeltaSpec(KeyedOptions, LakeOptions):
    """A Delta table, with `to_delta()`'s arguments."""

    title: ClassVar[str] = "`[sink]`: a Delta table"
    formats: ClassVar[tuple[str, ...]] = ("delta",)
    others: ClassVar[str] = "is not for a Delta table: leave it out"
    failures: ClassVar[tuple[Known, ...]] = DeltaSink.failures
    has_maintenance: ClassVar[bool] = True

    partition_by: tuple[str, ...] = option(
        "the columns that a new table is partitioned by", "names", default=(), example="'carrier'"
    )
    history: bool = option("keep every version of a key", "flag", default=False)
    track: tuple[str, ...] = option(
        "with `history`: the columns whose change makes a version; others are updated in place",
        "names",
        default=(),
        example="'city'",
    )
    compact_after: int = option(
        "join small files after so many new ones; 0: never",
        "count",
        default=COMPACT_AFTER,
    )
    deletion_vectors: bool | None = option(
        "whether a new table has deletion vectors; by default where it has keys",
        "flag",
        default=None,
    )

    def maintain(
        self, spark: SparkSession, *, keep_hours: float | None, dry_run: bool
    ) -> list[Maintained]:
        """Join small files of the table and of those beside it, and delete unused ones."""
        return maintain(spark, self.target, keep_hours=keep_hours, dry_run=dry_run)

    def sink(self, asked: Specification) -> Sink:
        """Return the table for the rows of a frame. Raises PipelineError."""
        if type(self.compact_after) is not int or self.compact_after < 0:
            raise PipelineError(
                f"compact_after={self.compact_after!r}: write a number of files, or 0 to leave "
                "small files as they are"
            )
        vectors = self.deletion_vectors
        if vectors is not None and type(vectors) is not bool:
            raise PipelineError(f"deletion_vectors={vectors!r}: write True or False")
        frame = asked.frame
        require_delta(frame.sparkSession)
        return DeltaSink(
            frame.sparkSession,
            find_target(frame.sparkSession, asked.target),
            frame.schema,
            asked.schema_changes,
            asked.partition_columns,
            asked.keyed_table,
            compact_after=self.compact_after,
            deletion_vectors=vectors,
            max_ahead=asked.max_ahead,
        )

    def rejected(self, spark: SparkSession) -> Sink:
        """Return the table `<target>_rejected`. Raises PipelineError."""
        from pyspark.sql.types import StructType

        no_rows = StructType()
        return DeltaSink(spark, find_target(spark, self.target), no_rows).rejected(no_rows)


def to_delta(  # noqa: PLR0913
    df: DataFrame | Callable[[], DataFrame],
    target: str | os.PathLike[str],
    *,
    checkpoint: str | os.PathLike[str],
    trigger: Mapping[str, Any] | None = None,
    delivery: str = "exactly-once",
    schema_changes: str = "refuse",
    on_lost: str = "stop",
    on_rejects: str = "stop",
    partition_by: str | tuple[str, ...] | list[str] = (),
    group: str | None = None,
    max_rejects: int | None = None,
    dead_letters: str | None = None,
    expect: Mapping[str, str] | None = None,
    on_unexpected: str = "reject",
    keys: str | tuple[str, ...] | list[str] = (),
    order_by: str | None = None,
    history: bool = False,
    track: str | tuple[str, ...] | list[str] = (),
    ignore_nulls: bool = False,
    deletes: str = "remove",
    max_ahead: str | None = None,
    apply_as_deletes: str | None = None,
    apply_as_truncates: str | None = None,
    mode: str = "append",
    compact_after: int = COMPACT_AFTER,
    deletion_vectors: bool | None = None,
) -> StreamingQuery | Written:
    """Start a query that writes a stream to a Delta table, or write a batch frame to it.

    The rows are appended; with `keys` the table has the last row of each key, or all versions.

    Args:
        df: a streaming frame, such as `topic` gives, with any projection or join on it; or a
            batch frame, which is one commit. A function that returns the streaming frame is called
            again when a topic has data of a schema that was registered after the start.
        target: a path (it has a slash: `./flights`, `s3a://lake/flights`) or a table's name
            (`flights`, `lake.flights`). It is created if it does not exist.
        checkpoint: the folder where the query keeps its progress. One for each query, kept as
            long as the table: both together make the delivery exactly once.
        trigger: Spark's own keyword, `{"availableNow": True}` or
            `{"processingTime": "10 seconds"}`; None starts each batch when the last is done.
        delivery: "exactly-once", "at-least-once" or "at-most-once": what a kill may do.
        schema_changes: "refuse" a frame with columns that the table does not have, or "add" them
            and, in a table with Delta's type widening, widen columns to the types of the rows.
        on_lost: "stop" when records that were not delivered are gone (retention, a topic that
            was created again), or "skip" them.
        on_rejects: "stop" before the first batch of a new checkpoint is written where more than
            half of its records do not parse, or "continue".
        partition_by: the columns that a new table is partitioned by.
        group: the consumer group that gets the query's offsets, for `ottla group describe`.
        max_rejects: how many rows of one run may be rejected before the query fails.
        expect: conditions that each row is expected to fulfil, as SQL by name, such as
            {"short": "delay < 1000"}.
        on_unexpected: "reject" a row that does not fulfil them into `<target>_rejected`, "drop" it
            and count it, or "stop" before its batch is written.
        dead_letters: a topic on the source's cluster that gets the rejected rows too, with their
            key, value and headers, at least once.
        keys: the columns of the key: the last record of a key wins, and a row that is true in the
            column `tombstone` deletes. The frame needs the topic's `partition` and `offset`.
        order_by: the column that orders the records of a key where it can move between
            partitions; a record that is older than its row is ignored.
        history: keep every version of a key, with the columns `valid_from`, `valid_to` and
            `is_current`, by `order_by` or else by the topic's `timestamp`.
        track: for a history: a record makes a new version only where one of these columns has
            another value; its other columns are updated in the version that is there. None: each
            record is a version.
        ignore_nulls: a null in a record keeps the value that its key has, until a deletion.
        deletes: "remove" the row of a deleted key, or "mark" it in the column `is_deleted`, so
            that an older record that comes later is still known as older.
        max_ahead: how far ahead of the clock `order_by` (or `timestamp`, of a history) may be, such
            as "1 hour": a record that is further ahead is rejected, and does not keep its key until
            then. None: a warning.
        apply_as_deletes: which records delete the row of their key, as SQL, such as "op = 'd'",
            beside those that are true in `tombstone`.
        apply_as_truncates: which records truncate the table, as SQL, such as "op = 't'", beside
            those that are true in `truncation` of Debezium's events: the rows that are older go,
            and so do older records that come later. Not for a history.
        mode: "update" for a query that groups rows: the new result of a group replaces the row of
            its key, which is the columns of the GROUP BY.
        compact_after: after so many new files the small ones are joined (Delta's OPTIMIZE), in a
            commit of its own that changes no row; 0: never.
        deletion_vectors: False for a table that readers without support for deletion vectors
            read, True for one that has them; None: a new table has them where it has keys.

    Returns:
        The query, running: a StreamingQuery whose failures are PipelineErrors of one line, and
        that restarts after failures which pass by themselves. For a batch frame what was
        written.

    Raises:
        PipelineError: a wrong argument; brokers, a topic, a table or a checkpoint that do not fit
            together; records that are lost.
    """
    return DeltaSpec.start("to_delta", locals())
