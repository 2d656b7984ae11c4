"""Where a stream goes: a path, or a table of the catalog."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.locations import shown_location
from ottla.pipelines.spark.jvm.delta_log import create_table
from ottla.pipelines.spark.jvm.files import Files
from ottla.pipelines.target.delta_table import DeltaTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_TABLE_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*){0,2}")


@dataclass(frozen=True, slots=True)
class Target:
    """A Delta table: the name that the user gave, and its folder.

    For a catalog's table that does not exist yet, the folder is where Spark would create it; it
    is empty where only the catalog knows.
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
        return self.name if self.is_table else shown_location(self.location)

    def rejected(self, spark: SparkSession) -> Target:
        """Return the table beside this one for rows that are rejected: `<target>_rejected`."""
        return self._beside(spark, "_rejected")

    def late(self, spark: SparkSession) -> Target:
        """Return the table beside this one for rows older than the watermark: `<target>_late`."""
        return self._beside(spark, "_late")

    def _beside(self, spark: SparkSession, suffix: str) -> Target:
        return find_target(spark, self.name.rstrip("/") + suffix, path=not self.is_table)

    def made(
        self,
        spark: SparkSession,
        schema: StructType,
        partition_by: tuple[str, ...],
        properties: Mapping[str, str] | None = None,
    ) -> Target:
        """Create the table, empty, unless it exists; return it with its folder.

        Two processes may create it at the same time: the second uses the table of the first.
        Raises PipelineError where it cannot be created.
        """
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        try:
            if self.is_table:
                _make_table(spark, self, schema, partition_by, properties or {})
            elif not DeltaTable(spark, self.location).exists():
                create_table(
                    spark, self.location, schema, partition_by, properties or {}, is_name=False
                )
        except (PySparkException, Py4JJavaError) as error:
            if not self._is_there(spark):
                if isinstance(error, Py4JJavaError):
                    raise  # the caller finds the sentence in the chain of causes
                reason = str(error).splitlines()[0]
                raise PipelineError(f"The table {self.name} cannot be created: {reason}") from error
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
        raise PipelineError(f"The table {name} cannot be created: {reason}") from error
    return Files(spark, f"{home.locationUri.rstrip('/')}/{table.lower()}").location


def _make_table(
    spark: SparkSession,
    target: Target,
    schema: StructType,
    partition_by: tuple[str, ...],
    properties: Mapping[str, str],
) -> None:
    if spark.catalog.tableExists(target.name):
        return
    # Without a metastore the catalog forgets its tables when Spark stops, the files stay: a
    # table that lies where this one would lie is this one.
    if target.location and DeltaTable(spark, target.location).exists():
        spark.sql(f"CREATE TABLE {target.name} USING delta LOCATION '{target.location}'")
    else:
        create_table(spark, target.name, schema, partition_by, properties, is_name=True)
