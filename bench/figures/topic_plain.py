"""From topic to topic as a good engineer writes it first: Spark's own Kafka sink.

Spark's and its producer's defaults: acks=all, idempotent, at least once.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming import StreamingQuery

from bench.figures.delta_plain import open_session, read

__all__ = ["count", "open_session", "start"]


def start(
    spark: SparkSession,
    address: str,
    topic: str,
    schema: str,
    folder: Path,
    trigger: Mapping[str, Any],
    max_rows: int | None,
    *,
    target: str,
    producer: Mapping[str, str] = MappingProxyType({}),
) -> StreamingQuery:
    """Start the job: the rows as JSON, with the number as key."""
    rows = read(spark, address, topic, schema, max_rows).select("value.*")
    value = F.to_json(F.struct("*")).alias("value")
    writer = rows.select(F.col("id").cast("string").alias("key"), value).writeStream
    writer = writer.format("kafka").option("kafka.bootstrap.servers", address)
    writer = (
        writer.options(**producer)
        .option("topic", target)
        .option("checkpointLocation", str(folder / "state"))
    )
    return writer.trigger(**trigger).start()


def count(spark: SparkSession, address: str, *, target: str) -> int:
    """The committed records in the topic."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", address)
    reader = reader.option("kafka.isolation.level", "read_committed").option("subscribe", target)
    return int(reader.load().count())
