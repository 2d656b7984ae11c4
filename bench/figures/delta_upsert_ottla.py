"""The same upsert with `ottla.pipelines`, as in its documentation."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from bench.figures.delta_ottla import open_session
from ottla import pipelines

__all__ = ["open_session", "start"]


def start(
    spark: SparkSession,
    address: str,
    topic: str,
    schema: str,
    folder: Path,
    trigger: Mapping[str, Any],
    max_rows: int | None,
    **how: Any,
) -> StreamingQuery:
    """Start the job; the table is `<folder>/table`. `how`: more arguments of `to_delta`."""
    limit: dict[str, Any] = {} if max_rows is None else {"max_rows": max_rows}
    rows = pipelines.topic(spark, topic, bootstrap_servers=address, schema=schema, **limit)
    columns = ["value.*", "partition", "offset", *(["timestamp"] if how else [])]
    return pipelines.to_delta(
        rows.select(*columns),
        str(folder / "table"),
        checkpoint=str(folder / "state"),
        trigger=trigger,
        keys=["id"],
        **how,
    )
