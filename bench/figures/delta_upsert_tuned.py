"""The tuned upsert: `delta_tuned`'s session, deletion vectors, and `max_by` instead of a window."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming import StreamingQuery

from bench.figures import delta_upsert_plain
from bench.figures.delta_tuned import open_session

__all__ = ["make_table", "open_session", "start"]
PROPERTIES: Final = {"delta.enableDeletionVectors": "true"}


def make_table(spark: SparkSession, folder: Path, rows: int) -> None:
    delta_upsert_plain.make_table(spark, folder, rows, PROPERTIES)


def last_by_max(batch: DataFrame) -> DataFrame:
    """The last row of each key."""
    newest = F.max_by(F.struct("*"), "offset").alias("row")
    return batch.groupBy("id").agg(newest).select("row.*")


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
    return delta_upsert_plain.start(
        *(spark, address, topic, schema, folder, trigger, max_rows),
        last=last_by_max,
        properties=PROPERTIES,
    )
