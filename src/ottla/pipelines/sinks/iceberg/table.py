"""An Iceberg table by its name in a catalog: what it is now, how it is made and changed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.sinks.iceberg.jvm import WRITTEN, LoadedTable, has_iceberg
from ottla.pipelines.spark.column_names import quoted
from ottla.pipelines.spark.versions import SCALA, minor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructType

PACKAGE: Final = f"org.apache.iceberg:iceberg-spark-runtime-4.0_{SCALA}:1.10.0"
"""Iceberg for PySpark 4.0, which was run."""
_CATALOG: Final = "org.apache.iceberg.spark.SparkCatalog"
_OF_TABLE: Final = re.compile("(branch|tag|snapshot_id|at_timestamp)_")
_PUBLISHED_LATER: Final = ("spark.wap.branch", "spark.wap.id")
_NAME: Final = re.compile(r"([A-Za-z_]\w*)((?:\.\w+)+)")


def read_name(target: object) -> str:
    """Return a table's name with its catalog. Raises PipelineError for another text."""
    name = target if isinstance(target, str) else ""
    if not _NAME.fullmatch(name):
        raise PipelineError(
            f"target={target!r}: write the name of an Iceberg table with its catalog, such as "
            "'lake.db.flights'"
        )
    return name


def in_sql(name: str) -> str:
    """Return a table as SQL names it."""
    return ".".join(quoted(part) for part in name.split("."))


def require_catalog(spark: SparkSession, name: str) -> None:
    """Raise PipelineError unless Spark has Iceberg, and the catalog of this table is one of it."""
    if not has_iceberg(spark):
        package = PACKAGE.replace("4.0", minor(spark.version), 1)
        raise PipelineError(
            f"This Spark {spark.version} does not have Iceberg: start it with "
            f"session(..., packages=['{package}'])"
        )
    catalog = name.partition(".")[0]
    setting = f"spark.sql.catalog.{catalog}"
    if spark.conf.get(setting, "") != _CATALOG:
        raise PipelineError(
            f"{catalog} is no catalog of Iceberg in this session: start it with session(..., "
            f"conf={{'{setting}': '{_CATALOG}', '{setting}.type': 'hadoop', "
            f"'{setting}.warehouse': '/data/lake'}}), or with the settings of the catalog that you "
            "have"
        )


def branch_of(name: str) -> tuple[str, str] | None:
    """Return the table and the branch, the tag or the moment that a name may mean; None: no such.

    Iceberg takes the last part for one where the parts before it are a table (SparkCatalog).
    """
    table, _, last = name.rpartition(".")
    return (table, last) if _OF_TABLE.match(last) and table.count(".") > 0 else None


def check_branch(spark: SparkSession, name: str) -> None:
    """Refuse a branch: the snapshots of the table itself say which batches it has."""
    found = branch_of(name)
    if found is not None and spark.catalog.tableExists(found[0]):
        raise PipelineError(
            f"{name} is no table but a branch, a tag or a moment of {found[0]}, and a pipeline "
            f"writes to the table itself, whose snapshots say what it has: write "
            f"target={found[0]!r}, or a table of its own"
        )


def check_published(session: SparkSession, name: str, table: LoadedTable) -> None:
    """Refuse a session whose writes are not in the table until they are published.

    A start would not find such batches, and would write them again.
    """
    for setting in _PUBLISHED_LATER:
        value = session.conf.get(setting, None)
        if value and table.publishes_later:
            raise PipelineError(
                f"The session has {setting}={value}, and the table {name} write.wap.enabled: a "
                "batch would not be in the table until somebody publishes it, and a start would "
                f"not find it. Leave the setting out: spark.conf.unset({setting!r})"
            )


def load(spark: SparkSession, name: str) -> LoadedTable | None:
    """Return a table, None where there is none. Raises PipelineError for a view and a branch."""
    from pyspark.errors import IllegalArgumentException

    check_branch(spark, name)  # asked for one that is not there, Iceberg raises an error of its own
    if not spark.catalog.tableExists(name):
        return None
    try:
        return LoadedTable(spark, name)
    except IllegalArgumentException as error:
        raise PipelineError(f"{name} is no Iceberg table: choose another target") from error


def create(spark: SparkSession, name: str, schema: StructType, partition_by: Sequence[str]) -> None:
    """Create a table, empty, unless it exists. Raises PipelineError where it cannot be created."""
    columns = ", ".join(f"{quoted(one.name)} {ddl(one.dataType)}" for one in schema.fields)
    by = f" PARTITIONED BY ({', '.join(map(quoted, partition_by))})" if partition_by else ""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        spark.sql(f"CREATE TABLE IF NOT EXISTS {in_sql(name)} ({columns}) USING iceberg{by}")
    except (PySparkException, Py4JJavaError) as error:
        java = getattr(error, "java_exception", None)
        text = str(error) if java is None else str(java.getMessage())
        reason = "; ".join(line.strip("- ") for line in text.splitlines()[:2]).strip("; ")
        raise PipelineError(f"The table {name} cannot be created: {reason}") from error


def ddl(kind: DataType) -> str:
    """Return a type as SQL has it, whatever the names of its fields are."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        inner = ", ".join(f"{quoted(one.name)}: {ddl(one.dataType)}" for one in kind.fields)
        return f"STRUCT<{inner}>"
    if isinstance(kind, ArrayType):
        return f"ARRAY<{ddl(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"MAP<{ddl(kind.keyType)}, {ddl(kind.valueType)}>"
    return str(kind.simpleString())


def add_columns(spark: SparkSession, name: str, columns: Iterable[tuple[str, str]]) -> None:
    """Add columns, given with their types; fields inside of columns by their path."""
    listed = ", ".join(f"{_path(path)} {kind}" for path, kind in columns)
    spark.sql(f"ALTER TABLE {in_sql(name)} ADD COLUMNS ({listed})")


def set_written(spark: SparkSession, name: str) -> None:
    """Note in the table that a pipeline writes to it: its snapshots may expire."""
    spark.sql(f"ALTER TABLE {in_sql(name)} SET TBLPROPERTIES ('{WRITTEN}' = 'true')")


def widen_column(spark: SparkSession, name: str, path: str, kind: str) -> None:
    """Give a column a wider type."""
    spark.sql(f"ALTER TABLE {in_sql(name)} ALTER COLUMN {_path(path)} TYPE {kind}")


def _path(path: str) -> str:
    return ".".join(map(quoted, path.split(".")))


def can_widen(table: DataType, rows: DataType) -> bool:
    """Tell whether Iceberg gives a column of a table the type of the rows.

    (Table spec, "Schema evolution": int to long, float to double, decimals to more digits.)
    """
    from pyspark.sql.types import DecimalType

    if isinstance(table, DecimalType) and isinstance(rows, DecimalType):
        return bool(rows.scale == table.scale and rows.precision > table.precision)
    return (table.typeName(), rows.typeName()) in (("integer", "long"), ("float", "double"))
