"""The "plain" job, which a good engineer writes first: from a topic into Delta by hand.

Spark's and Delta's defaults: packages through Ivy, 200 shuffle partitions,
`spark.databricks.delta.snapshotPartitions` 50, `from_json` on the value, `writeStream` with the
format `delta`. It sets only what it cannot run without: Delta's extension and catalog.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming import StreamingQuery

from ottla.pipelines.spark.jars import wanted_packages
from ottla.pipelines.spark.start import find_installed


def open_session(
    master: str, class_path: str = "", settings: Mapping[str, str] | None = None
) -> SparkSession:
    return (
        SparkSession.builder.appName("plain")
        .master(master)
        .config("spark.driver.extraClassPath", class_path)
        .config("spark.jars.packages", ",".join(wanted_packages(find_installed(), [], [])))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        .config(map=dict(settings or {}))
        .getOrCreate()
    )


def read(
    spark: SparkSession, address: str, topic: str, schema: str, max_rows: int | None
) -> DataFrame:
    """The records of a topic, with the parsed JSON in `value`."""
    reader = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", address)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
    )
    if max_rows is not None:
        reader = reader.option("maxOffsetsPerTrigger", max_rows)
    value = F.from_json(F.col("value").cast("string"), schema)
    return reader.load().withColumn("value", value)


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
    rows = records.select("key", "value", "partition", "offset", "timestamp")
    writer = rows.writeStream.format("delta").option("checkpointLocation", str(folder / "state"))
    if trigger:
        writer = writer.trigger(**trigger)
    return writer.start(str(folder / "table"))
