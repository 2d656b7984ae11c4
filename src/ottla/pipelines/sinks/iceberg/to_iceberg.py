"""`to_iceberg`: a stream into a table of Apache Iceberg; see `sinks.iceberg.sink`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ottla.pipelines.failures.known import Known
from ottla.pipelines.run.frame import Written
from ottla.pipelines.sinks.iceberg.sink import IcebergSink
from ottla.pipelines.sinks.iceberg.table import read_name, require_catalog
from ottla.pipelines.spec.option import option
from ottla.pipelines.spec.sink import KeyedOptions, check

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from ottla.pipelines.run.specification import Specification
    from ottla.pipelines.spec.fields import Fields
    from ottla.pipelines.spec.sink import Reading
    from ottla.pipelines.target.port import Sink


@dataclass(frozen=True, slots=True)
class IcebergSpec(KeyedOptions):
    """A table of Iceberg, with `to_iceberg()`'s arguments."""

    title: ClassVar[str] = '`[sink]` with `format = "iceberg"`: a table of Apache Iceberg'
    formats: ClassVar[tuple[str, ...]] = ("iceberg",)
    others: ClassVar[str] = "is not for a table of Iceberg: leave it out"
    failures: ClassVar[tuple[Known, ...]] = IcebergSink.failures

    target: str = option(
        "the table's name with its catalog", example="lake.db.flights", required=True
    )
    partition_by: tuple[str, ...] = option(
        "the columns that a new table is partitioned by", "names", default=(), example="'carrier'"
    )

    @classmethod
    def read(cls, fields: Fields, given: dict[str, Any], about: Reading) -> Self:
        """Return what a file gives."""
        if given["target"]:
            check(fields, "target", lambda: read_name(given["target"]))
        return cls(**given)

    def sink(self, asked: Specification) -> Sink:
        """Return the table for the rows of a frame. Raises PipelineError."""
        frame, name = asked.frame, read_name(asked.target)
        require_catalog(frame.sparkSession, name)
        return IcebergSink(
            frame.sparkSession,
            name,
            frame.schema,
            asked.schema_changes,
            asked.partition_columns,
            asked.keyed_table,
            asked.max_ahead,
        )

    def rejected(self, spark: SparkSession) -> Sink:
        """Return the table `<target>_rejected`. Raises PipelineError."""
        from pyspark.sql.types import StructType

        return IcebergSink(spark, self.target, StructType()).rejected(StructType())


def to_iceberg(  # noqa: PLR0913
    df: DataFrame | Callable[[], DataFrame],
    target: str,
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
    ignore_nulls: bool = False,
    deletes: str = "remove",
    max_ahead: str | None = None,
    apply_as_deletes: str | None = None,
    apply_as_truncates: str | None = None,
    mode: str = "append",
) -> StreamingQuery | Written:
    """Start a query that writes a stream to an Iceberg table, or write a batch frame to it.

    The rows are appended; with `keys` the table has the last row of each key. Spark needs Iceberg's
    jar and the settings of a catalog: `session(..., packages=..., conf=...)`.

    Args:
        df: a streaming frame, such as `topic` gives, or a function that returns one, as for
            `to_delta`; or a batch frame, which is one commit.
        target: the table's name with its catalog, such as `lake.db.flights`. It is created if it
            does not exist, in a namespace that exists.
        schema_changes: "refuse" a frame with columns that the table does not have, or "add" them
            and widen columns to the types of the rows: INT to BIGINT, FLOAT to DOUBLE, decimals.
        partition_by: the columns that a new table is partitioned by. For Iceberg's hidden
            partitions (`days(at)`) create the table yourself.
        keys, order_by, ignore_nulls, deletes, max_ahead, mode: as for `to_delta`.
        apply_as_deletes, apply_as_truncates: as for `to_delta`.
        checkpoint, trigger, delivery, on_lost, on_rejects, group, max_rejects, dead_letters: as for
            `to_delta`.
        expect, on_unexpected: as for `to_delta`.

    Returns:
        The query, running: a StreamingQuery whose failures are PipelineErrors of one line, and
        that restarts after failures which pass by themselves. For a batch frame what was written.

    Raises:
        PipelineError: a wrong argument; a session without Iceberg or without the catalog; brokers,
            a topic, a table or a checkpoint that do not fit together; records that are lost.
    """
    return IcebergSpec.start("to_iceberg", locals())
