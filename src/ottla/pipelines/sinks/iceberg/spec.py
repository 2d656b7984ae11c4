"""`[sink]` with `format = "iceberg"`: a table of Apache Iceberg."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ottla.pipelines.failures.known import Known
from ottla.pipelines.sinks.iceberg.sink import IcebergSink
from ottla.pipelines.sinks.iceberg.table import read_name
from ottla.pipelines.sinks.iceberg.to_iceberg import iceberg_sink
from ottla.pipelines.spec.option import option
from ottla.pipelines.spec.sink import KeyedOptions, check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
        return iceberg_sink(asked)

    def rejected(self, spark: SparkSession) -> Sink:
        """Return the table `<target>_rejected`. Raises PipelineError."""
        from pyspark.sql.types import StructType

        return IcebergSink(spark, self.target, StructType()).rejected(StructType())
