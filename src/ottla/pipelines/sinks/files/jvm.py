"""Spark's own sink for files, as `df.writeStream.format("parquet")` makes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.spark.json_texts import WHOLE_TIMES
from ottla.pipelines.spark.jvm.attributes import java_class, java_frame, java_session
from ottla.pipelines.spark.jvm.classes import first_class

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

_EXECUTION: Final = "org.apache.spark.sql.execution"
_SINKS: Final = (
    f"{_EXECUTION}.streaming.FileStreamSink",
    f"{_EXECUTION}.streaming.sinks.FileStreamSink",  # from Spark 4.1 on
)
_CLASSES: Final = {
    "parquet": f"{_EXECUTION}.datasources.parquet.ParquetFileFormat",
    "json": f"{_EXECUTION}.datasources.json.JsonFileFormat",
}


class SparkFileSink:
    """The sink for one format of files."""

    def __init__(self, spark: SparkSession, file_format: str) -> None:
        self._spark = spark
        self._format = file_format

    def can_hold(self, kind: DataType) -> bool:
        """Tell whether files of the format can have columns of a type."""
        java = java_session(self._spark).parseDataType(kind.json())
        return bool(self._made_format().supportDataType(java))

    def add_batch(
        self, location: str, partition_by: Sequence[str], number: int, frame: DataFrame
    ) -> None:
        """Write a batch and list its files under a number, unless the folder has that number."""
        sink = first_class(self._spark, _SINKS)
        assert sink is not None
        lists = java_class(self._spark, "org.apache.spark.api.python.PythonUtils")
        java_class(self._spark, sink)(
            java_session(self._spark),
            location,
            self._made_format(),
            lists.toSeq(list(partition_by)),
            lists.toScalaMap(WHOLE_TIMES),
        ).addBatch(number, java_frame(frame))

    def _made_format(self) -> Any:
        return java_class(self._spark, _CLASSES[self._format])()
