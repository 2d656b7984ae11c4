"""Kafka to PostgreSQL as a good engineer writes it first: `foreachBatch` with Spark's JDBC writer.

It appends, and promises nothing about a batch that is cut off.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from bench.figures import delta_plain
from components import postgres

TABLE = "rows"


def open_session(master: str) -> SparkSession:
    return delta_plain.open_session(master, str(postgres.fetched_driver()))


def options(url: str) -> dict[str, str]:
    login = {"url": url, "user": postgres.USER, "password": postgres.PASSWORD}
    return {**login, "driver": "org.postgresql.Driver", "dbtable": TABLE}


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
    settings: Mapping[str, str] = MappingProxyType({}),
) -> StreamingQuery:
    """Start the job."""
    records = delta_plain.read(spark, address, topic, schema, max_rows)
    rows = records.select("value.*", "partition", "offset")

    def append(batch: DataFrame, _: int) -> None:
        batch.write.format("jdbc").options(**options(url), **settings).mode("append").save()

    writer = rows.writeStream.foreachBatch(append)
    return writer.option("checkpointLocation", str(folder / "state")).trigger(**trigger).start()


def count(spark: SparkSession, _address: str, *, url: str) -> int:
    """The rows in the table."""
    return int(spark.read.format("jdbc").options(**options(url)).load().count())
