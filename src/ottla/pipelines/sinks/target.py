"""Where a stream goes: a path, or a table of the catalog."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.sinks.delta_table import DeltaTable
from ottla.pipelines.spark.files import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_TABLE_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*){0,2}")


@dataclass(frozen=True, slots=True)
class Target:
    """A Delta table: the name the user gave and the folder where it lies.

    The folder of a catalog's table that has not been made is where Spark would put it, empty
    where only the catalog knows.
    """

    name: str
    location: str
    is_table: bool

    @property
    def short_name(self) -> str:
        """The last part of the name: `flights` for `/lake/flights` and `lake.flights`."""
        return re.split(r"[/.]" if self.is_table else "/", self.name.rstrip("/"))[-1]

    @property
    def shown(self) -> str:
        """What a person looks for: the table's name, or the whole path."""
        return self.name if self.is_table else self.location.removeprefix("file:")

    def rejected(self, spark: SparkSession) -> Target:
        """Return the table beside this one for rows that are rejected: `<target>_rejected`."""
        return find_target(spark, self.name.rstrip("/") + "_rejected", path=not self.is_table)

    def made(
        self, spark: SparkSession, schema: StructType, partition_by: tuple[str, ...]
    ) -> Target:
        """Make the table, empty, unless it is there; return it with the folder where it lies.

        Two processes may make it at the same time: the second takes the table of the first.
        Raises PipelineError where it cannot be made.
        """
        from pyspark.errors import PySparkException

        try:
            if self.is_table:
                _make_table(spark, self, schema, partition_by)
            elif not DeltaTable(spark, self.location).exists():
                _empty(spark, schema, partition_by).save(self.location)
        except PySparkException as error:
            if not self._is_there(spark):
                reason = str(error).splitlines()[0]
                raise PipelineError(f"The table {self.name} cannot be made: {reason}") from error
        return find_target(spark, self.name, path=not self.is_table)

    def _is_there(self, spark: SparkSession) -> bool:
        if self.is_table:
            return bool(spark.catalog.tableExists(self.name))
        return DeltaTable(spark, self.location).exists()


def find_target(
    spark: SparkSession, target: str | os.PathLike[str], *, path: bool = False
) -> Target:
    """Return where a target lies; `path`: it is a path though it may have no slash.

    Raises PipelineError for a name that is none, or a table of another format.
    """
    name = os.fspath(target) if isinstance(target, str | os.PathLike) else ""
    if path or "/" in name or isinstance(target, os.PathLike):
        return Target(name, Files(spark, name).location, is_table=False)
    if not _TABLE_NAME.fullmatch(name):
        raise PipelineError(
            f"target={target!r}: write a path with a slash, such as './flights', or a table's "
            "name, such as 'flights' or 'lake.flights'"
        )
    if not spark.catalog.tableExists(name):
        return Target(name, _home(spark, name), is_table=True)
    if spark.catalog.getTable(name).isTemporary:
        raise PipelineError(
            f"{name} is a temporary view of this session, not a table: give the target another "
            "name, or drop the view"
        )
    detail: Any = spark.sql(f"DESCRIBE DETAIL {name}").first()
    if detail["format"] != "delta":
        raise PipelineError(f"The table {name} is {detail['format']}, not Delta")
    return Target(name, Files(spark, detail["location"]).location, is_table=True)


def _home(spark: SparkSession, name: str) -> str:
    """Return the folder that Spark's own catalog gives a new table, empty for other catalogs."""
    from pyspark.errors import PySparkException

    database, _, table = name.rpartition(".")
    if "." in database:
        return ""
    try:
        home = spark.catalog.getDatabase(database or spark.catalog.currentDatabase())
    except PySparkException as error:
        reason = str(error).splitlines()[0]
        raise PipelineError(f"The table {name} cannot be made: {reason}") from error
    return Files(spark, f"{home.locationUri.rstrip('/')}/{table.lower()}").location


def _make_table(
    spark: SparkSession, target: Target, schema: StructType, partition_by: tuple[str, ...]
) -> None:
    if spark.catalog.tableExists(target.name):
        return
    # Without a metastore the catalog forgets its tables when Spark stops, the files stay: a
    # table that lies where this one would lie is this one.
    if target.location and DeltaTable(spark, target.location).exists():
        spark.sql(f"CREATE TABLE {target.name} USING delta LOCATION '{target.location}'")
    else:
        _empty(spark, schema, partition_by).saveAsTable(target.name)


def _empty(spark: SparkSession, schema: StructType, partition_by: tuple[str, ...]) -> Any:
    frame: DataFrame = spark.createDataFrame([], schema)
    return frame.write.format("delta").mode("append").partitionBy(*partition_by)
