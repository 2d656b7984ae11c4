"""Spark's own sink for files, as `df.writeStream.format("parquet")` makes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

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
        java: Any = self._spark._jsparkSession
        return bool(self._made_format().supportDataType(java.parseDataType(kind.json())))

    def add_batch(
        self, location: str, partition_by: Sequence[str], number: int, frame: DataFrame
    ) -> None:
        """Write a batch and list its files under a number, unless the folder has that number."""
        jvm: Any = self._spark._jvm
        found = (_find_class(self._spark, name) for name in _SINKS)
        made = next(one for one in found if one is not None)
        made(
            self._spark._jsparkSession,
            location,
            self._made_format(),
            jvm.PythonUtils.toSeq(list(partition_by)),
            jvm.PythonUtils.toScalaMap({}),
        ).addBatch(number, frame._jdf)

    def _made_format(self) -> Any:
        return _class(self._spark, _CLASSES[self._format])()


def _class(spark: SparkSession, name: str) -> Any:
    found: Any = spark._jvm
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _find_class(spark: SparkSession, name: str) -> Any:
    """Return a class of the JVM, None where this Spark does not have it."""
    from py4j.protocol import Py4JJavaError

    jvm: Any = spark._jvm
    loader = jvm.Thread.currentThread().getContextClassLoader()
    try:
        jvm.java.lang.Class.forName(name, False, loader)
    except Py4JJavaError as error:
        if "ClassNotFoundException" not in str(error):
            raise
        return None
    return _class(spark, name)
