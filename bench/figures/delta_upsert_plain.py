"""The upsert that a good engineer writes first: `foreachBatch` with a MERGE by hand.

Spark's and Delta's defaults, as in `delta_plain`. The last row of each key in a batch is found with
a window; a row of the table is replaced.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.types import StructType

from bench.figures.delta_plain import open_session, read

__all__ = ["make_table", "open_session", "start"]
COLUMNS = (
    *("id", "concat('row ', id % 1000) AS name", "id / 7.0D AS amount"),
    *("repeat('x', 200) AS note", "CAST(id % 2 AS INT) AS partition", "id AS offset"),
)


def make_table(
    spark: SparkSession, folder: Path, rows: int, properties: Mapping[str, str] | None = None
) -> None:
    """Write a table with the keys 0 to `rows` - 1, such as the job leaves it."""
    frame = spark.range(rows).selectExpr(*COLUMNS)
    table = str(folder / "table")
    create(spark, table, frame.schema, properties or {})
    frame.write.format("delta").mode("append").save(table)


def last_by_window(batch: DataFrame) -> DataFrame:
    """The last row of each key."""
    newest_first = Window.partitionBy("id").orderBy(F.col("offset").desc())
    return batch.withColumn("n", F.row_number().over(newest_first)).where("n = 1").drop("n")


def start(
    spark: SparkSession,
    address: str,
    topic: str,
    schema: str,
    folder: Path,
    trigger: Mapping[str, Any],
    max_rows: int | None,
    *,
    last: Callable[[DataFrame], DataFrame] = last_by_window,
    properties: Mapping[str, str] = MappingProxyType({}),
) -> StreamingQuery:
    """Start the job; the table is `<folder>/table`. `last` finds the last row of each key, and
    `properties` are those of the table.
    """
    records = read(spark, address, topic, schema, max_rows)
    rows = records.select("value.*", "partition", "offset")
    table = str(folder / "table")
    create(spark, table, rows.schema, properties)

    def merge(batch: DataFrame, _: int) -> None:
        target = DeltaTable.forPath(batch.sparkSession, table).alias("t")
        merged = target.merge(last(batch).alias("s"), "t.id = s.id")
        merged.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    writer = rows.writeStream.foreachBatch(merge)
    writer = writer.option("checkpointLocation", str(folder / "state"))
    return writer.trigger(**trigger).start()


def create(
    spark: SparkSession, table: str, schema: StructType, properties: Mapping[str, str]
) -> None:
    created = DeltaTable.createIfNotExists(spark).location(table).addColumns(schema)
    for name, value in properties.items():
        created = created.property(name, value)
    created.execute()
