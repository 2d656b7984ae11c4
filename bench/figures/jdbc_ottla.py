"""The same job with `ottla.pipelines`, as in its documentation: each row once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from bench.figures.jdbc_plain import TABLE, count
from components import postgres
from ottla import pipelines

__all__ = ["count", "open_session", "start"]


def open_session(master: str) -> SparkSession:
    conf = {"spark.driver.extraClassPath": str(postgres.fetched_driver())}
    return pipelines.session("ottla-bench", master=master, conf=conf)


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
    limit: dict[str, Any] = {} if max_rows is None else {"max_rows": max_rows}
    rows = pipelines.topic(spark, topic, bootstrap_servers=address, schema=schema, **limit)
    return pipelines.to_postgresql(
        rows.select("value.*", "partition", "offset"),
        TABLE,
        url=url,
        user=postgres.USER,
        password=postgres.PASSWORD,
        checkpoint=str(folder / "state"),
        trigger=trigger,
    )
