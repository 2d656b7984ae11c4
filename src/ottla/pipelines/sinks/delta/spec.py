"""`[sink]` without other marks: a Delta table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ottla.pipelines.failures.known import Known
from ottla.pipelines.sinks.delta.compaction import COMPACT_AFTER
from ottla.pipelines.sinks.delta.sink import DeltaSink
from ottla.pipelines.sinks.delta.target import find_target
from ottla.pipelines.sinks.delta.to_delta import delta_sink
from ottla.pipelines.spec.option import option
from ottla.pipelines.spec.sink import KeyedOptions, LakeOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.pipelines.run.specification import Specification
    from ottla.pipelines.target.port import Sink


@dataclass(frozen=True, slots=True)
class DeltaSpec(KeyedOptions, LakeOptions):
    """A Delta table, with `to_delta()`'s arguments."""

    title: ClassVar[str] = "`[sink]`: a Delta table"
    formats: ClassVar[tuple[str, ...]] = ("delta",)
    others: ClassVar[str] = "is not for a Delta table: leave it out"
    failures: ClassVar[tuple[Known, ...]] = DeltaSink.failures

    partition_by: tuple[str, ...] = option(
        "the columns that a new table is partitioned by", "names", default=(), example="'carrier'"
    )
    history: bool = option("keep every version of a key", "flag", default=False)
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

    def sink(self, asked: Specification) -> Sink:
        """Return the table for the rows of a frame. Raises PipelineError."""
        return delta_sink(
            asked, compact_after=self.compact_after, deletion_vectors=self.deletion_vectors
        )

    def rejected(self, spark: SparkSession) -> Sink:
        """Return the table `<target>_rejected`. Raises PipelineError."""
        from pyspark.sql.types import StructType

        no_rows = StructType()
        return DeltaSink(spark, find_target(spark, self.target), no_rows).rejected(no_rows)
