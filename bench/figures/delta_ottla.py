"""The same job with `ottla.pipelines`, as in its documentation."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from ottla import pipelines


def open_session(master: str) -> SparkSession:
    return pipelines.session("ottla-bench", master=master)


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
    limit: dict[str, Any] = {} if max_rows is None else {"max_rows": max_rows}
    rows = pipelines.topic(spark, topic, bootstrap_servers=address, schema=schema, **limit)
    return pipelines.to_delta(
        rows.select("key", "value", "partition", "offset", "timestamp"),
        str(folder / "table"),
        checkpoint=str(folder / "state"),
        trigger=trigger,
    )
