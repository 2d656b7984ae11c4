"""The tuned upsert: `delta_tuned`'s session, deletion vectors, and `max_by` instead of a window."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming import StreamingQuery

from bench.figures import delta_upsert_plain
from bench.figures.delta_plain import read
from bench.figures.delta_tuned import open_session

__all__ = ["make_table", "open_session", "start"]
PROPERTIES: Final = {"delta.enableDeletionVectors": "true"}


def make_table(spark: SparkSession, folder: Path, rows: int) -> None:
    delta_upsert_plain.make_table(spark, folder, rows, PROPERTIES)


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
    for name, value in PROPERTIES.items():
        created = created.property(name, value)
    created.execute()

    def merge(batch: DataFrame, _: int) -> None:
        newest = F.max_by(F.struct("*"), "offset").alias("row")
        last = batch.groupBy("id").agg(newest).select("row.*")
        target = DeltaTable.forPath(batch.sparkSession, table).alias("t")
        merged = target.merge(last.alias("s"), "t.id = s.id")
        merged.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    writer = rows.writeStream.foreachBatch(merge)
    writer = writer.option("checkpointLocation", str(folder / "state"))
    return writer.trigger(**trigger).start()
