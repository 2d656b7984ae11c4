"""The tuned way to PostgreSQL: Spark's JDBC writer with large batches, rewritten by the driver."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from bench.figures import delta_tuned, jdbc_plain
from bench.figures.jdbc_plain import count
from components import postgres

__all__ = ["count", "open_session", "start"]
WRITER: Final = {"batchsize": "10000", "reWriteBatchedInserts": "true"}


def open_session(master: str) -> SparkSession:
    return delta_tuned.open_session(master, str(postgres.fetched_driver()))


def start(
    spark: SparkSession,
    address: str,
    topic: str,
    schema: str,
    folder: Path,
    trigger: Mapping[str, Any],
    max_rows: int | None,
    *,
    url: str,
) -> StreamingQuery:
    """Start the job."""
    return jdbc_plain.start(
        *(spark, address, topic, schema, folder, trigger, max_rows), url=url, settings=WRITER
    )
