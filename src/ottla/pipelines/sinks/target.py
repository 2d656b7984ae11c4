"""Where a stream goes: a path, or a table of the catalog that is made if it is not there."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.sinks.delta_log import DeltaLog
from ottla.pipelines.spark.files import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_TABLE_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*){0,2}")


@dataclass
class Target:
    """A Delta table: the name the user gave and the folder where it lies."""

    name: str
    location: str
    is_table: bool
    _log: list[DeltaLog] = field(default_factory=list, repr=False)

    @property
    def short_name(self) -> str:
        """The last part of the name: `flights` for `/lake/flights` and `lake.flights`."""
        return re.split(r"[/.]" if self.is_table else "/", self.name.rstrip("/"))[-1]

    @property
    def shown(self) -> str:
        """What a person looks for: the table's name, or the whole path."""
        return self.name if self.is_table else self.location.removeprefix("file:")

    def log(self, spark: SparkSession) -> DeltaLog:
        """Return the table's log; the same each time, for it remembers the latest version."""
        if not self._log:
            self._log.append(DeltaLog(spark, self.location))
        return self._log[0]

    def append(self, frame: DataFrame, query_id: str, batch: int) -> None:
        """Append a batch of a query, unless the table holds that batch already."""
        (
            frame.write.format("delta")
            .mode("append")
            .option("txnAppId", query_id)
            .option("txnVersion", batch)
            .save(self.location)
        )

    def rejected_name(self) -> str:
        """The table of the rows that do not parse: `<target>_rejected`."""
        return self.name.rstrip("/") + "_rejected"


def find_target(spark: SparkSession, target: str | os.PathLike[str], schema: StructType) -> Target:
    """Return where a target lies; makes a table of the catalog, empty, if it is not there.

    Raises PipelineError for a name that is none, or a place that holds something else.
    """
    name = os.fspath(target) if isinstance(target, str | os.PathLike) else ""
    is_path = "/" in name or isinstance(target, os.PathLike)
    if not is_path and not _TABLE_NAME.fullmatch(name):
        raise PipelineError(
            f"target={target!r}: write a path with a slash, such as './flights', or a table's "
            "name, such as 'flights' or 'lake.flights'"
        )
    location = Files(spark, name).location if is_path else _table_location(spark, name, schema)
    found = Target(name, location, is_table=not is_path)
    if found.log(spark).holds_other_files():
        raise PipelineError(f"{name} holds files that are no Delta table: choose another target")
    return found


def _table_location(spark: SparkSession, name: str, schema: StructType) -> str:
    if not spark.catalog.tableExists(name):
        _make_table(spark, name, schema)
    detail: Any = spark.sql(f"DESCRIBE DETAIL {name}").first()
    if detail["format"] != "delta":
        raise PipelineError(f"The table {name} is {detail['format']}, not Delta")
    return Files(spark, detail["location"]).location


def _make_table(spark: SparkSession, name: str, schema: StructType) -> None:
    from pyspark.errors import PySparkException

    database, _, table = name.rpartition(".")
    try:
        if database.count(".") == 0:
            # Without a metastore the catalog forgets its tables when Spark stops, the files stay:
            # a table that lies where this one would lie is this one.
            home = spark.catalog.getDatabase(database or spark.catalog.currentDatabase())
            folder = f"{home.locationUri.rstrip('/')}/{table.lower()}"
            if DeltaLog(spark, folder).is_delta():
                spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{folder}'")
                return
        spark.createDataFrame([], schema).write.format("delta").saveAsTable(name)
    except PySparkException as error:
        reason = str(error).splitlines()[0]
        raise PipelineError(f"The table {name} cannot be made: {reason}") from error
