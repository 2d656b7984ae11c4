"""The same job with `ottla.pipelines`, as in its documentation: each row once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from bench.figures.delta_ottla import open_session
from bench.figures.topic_plain import count
from ottla import pipelines

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
) -> StreamingQuery:
    """Start the job: the rows as JSON, with the number as key."""
    limit: dict[str, Any] = {} if max_rows is None else {"max_rows": max_rows}
    rows = pipelines.topic(spark, topic, bootstrap_servers=address, schema=schema, **limit)
    return pipelines.to_topic(
        rows.select("value.*"),
        target,
        bootstrap_servers=address,
        checkpoint=str(folder / "state"),
        key="id",
        trigger=trigger,
    )
