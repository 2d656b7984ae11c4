"""The upsert that a good engineer writes first: `foreachBatch` with a MERGE by hand.

Spark's and Delta's defaults, as in `delta_plain`. The last row of each key in a batch is found with
a window; a row of the table is replaced.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming import StreamingQuery

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
    created = DeltaTable.createIfNotExists(spark).location(table).addColumns(frame.schema)
    for name, value in (properties or {}).items():
        created = created.property(name, value)
    created.execute()
    frame.write.format("delta").mode("append").save(table)


def start(
    spark: SparkSession,
    address: str,
    topic: str,
    schema: str,
    folder: Path,
    trigger: Mapping[str, Any],
    max_rows: int | None,
) -> StreamingQuery:
    """Start the job; the table is `<folder>/table`."""
    records = read(spark, address, topic, schema, max_rows)
    rows = records.select("value.*", "partition", "offset")
    table = str(folder / "table")
    created = DeltaTable.createIfNotExists(spark).location(table).addColumns(rows.schema)
    created.execute()
    newest_first = Window.partitionBy("id").orderBy(F.col("offset").desc())

    def merge(batch: DataFrame, _: int) -> None:
        last = batch.withColumn("n", F.row_number().over(newest_first)).where("n = 1").drop("n")
        target = DeltaTable.forPath(batch.sparkSession, table).alias("t")
        merged = target.merge(last.alias("s"), "t.id = s.id")
        merged.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    writer = rows.writeStream.foreachBatch(merge)
    writer = writer.option("checkpointLocation", str(folder / "state"))
    return writer.trigger(**trigger).start()
