"""`to_files`: a stream into a folder of Parquet or JSON files; see `sinks.files.sink`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.run.frame import Written
from ottla.pipelines.sinks.files.sink import FORMATS, FilesSink
from ottla.pipelines.spec.option import option
from ottla.pipelines.spec.sink import LakeOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from ottla.pipelines.run.specification import Specification
    from ottla.pipelines.target.port import Sink


@dataclass(frozen=True, slots=True)
class FilesSpec(LakeOptions):
    """A folder of files, with `to_files()`'s arguments."""

    title: ClassVar[str] = "`[sink]` with `format`: files"
    formats: ClassVar[tuple[str, ...]] = FORMATS
    needs_path: ClassVar[bool] = True
    others: ClassVar[str] = "is not for files, which are appended: leave it out"

    format: str = option("the format of the files", default="", choices=FORMATS)
    partition_by: tuple[str, ...] = option(
        "the columns that a new folder is partitioned by", "names", default=(), example="'carrier'"
    )

    def sink(self, asked: Specification) -> Sink:
        """Return the folder for the rows of a frame. Raises PipelineError."""
        if self.format not in FORMATS:
            listed = " or ".join(map(repr, FORMATS))
            raise PipelineError(f"format={self.format!r}: write {listed}")
        target = asked.target
        name = os.fspath(target) if isinstance(target, str | os.PathLike) else ""
        if not name.strip():
            raise PipelineError(f"target={target!r}: write a folder, such as './lake/flights'")
        frame = asked.frame
        return FilesSink(
            frame.sparkSession,
            name,
            frame.schema,
            self.format,
            asked.partition_columns,
            asked.schema_changes,
        )

    def rejected(self, spark: SparkSession) -> Sink:
        """Return the folder `<target>_rejected`."""
        from pyspark.sql.types import StructType

        return FilesSink(spark, self.target, StructType(), self.format).rejected(StructType())


def to_files(  # noqa: PLR0913
    df: DataFrame | Callable[[], DataFrame],
    target: str | os.PathLike[str],
    *,
    checkpoint: str | os.PathLike[str],
    format: str = "parquet",
    partition_by: str | tuple[str, ...] | list[str] = (),
    trigger: Mapping[str, Any] | None = None,
    delivery: str = "exactly-once",
    schema_changes: str = "refuse",
    on_lost: str = "stop",
    on_rejects: str = "stop",
    group: str | None = None,
    max_rejects: int | None = None,
    dead_letters: str | None = None,
    expect: Mapping[str, str] | None = None,
    on_unexpected: str = "reject",
) -> StreamingQuery | Written:
    """Start a query that writes a stream to files, or write a batch frame to them.

    Exactly once holds for Spark, and for others that read the list in `_spark_metadata`. A reader
    that lists the folder may also find the files of a batch that was cut off.

    Args:
        df: a streaming frame, such as `topic` gives, or a function that returns one, as for
            `to_delta`; or a batch frame.
        target: a folder, local or with its scheme (`s3a://lake/flights`, `hdfs://...`). It is
            created if it does not exist, and belongs to one checkpoint.
        format: "parquet" or "json" (an object on each line).
        partition_by: the columns by which the files lie in folders: `carrier=UA/part-....parquet`.
        schema_changes: "refuse" a frame with columns that the folder does not have, or "add" them.
        checkpoint, trigger, delivery, on_lost, on_rejects, group, max_rejects, dead_letters: as for
            `to_delta`.
        expect, on_unexpected: as for `to_delta`.

    Returns:
        The query, running: a StreamingQuery whose failures are PipelineErrors of one line, and
        that restarts after failures which pass by themselves. For a batch frame what was written.

    Raises:
        PipelineError: a wrong argument; brokers, a topic, a folder or a checkpoint that do not fit
            together; records that are lost.
    """
    return FilesSpec.start("to_files", locals())
