"""The same upsert with `ottla.pipelines`, as in its documentation."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from bench.figures import delta_upsert_plain
from bench.figures.delta_ottla import open_session
from ottla import pipelines

__all__ = ["make_table", "open_session", "start"]


def make_table(spark: SparkSession, folder: Path, rows: int) -> None:
    """Write the table of `delta_upsert_plain` with the properties that `to_delta` gives."""
    delta_upsert_plain.make_table(spark, folder, rows, {"delta.enableDeletionVectors": "true"})


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
