"""All versions of each key instead of the last, with `ottla.pipelines`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from bench.figures import delta_upsert_ottla
from bench.figures.delta_ottla import open_session

__all__ = ["open_session", "start"]


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
    return delta_upsert_ottla.start(
        spark, address, topic, schema, folder, trigger, max_rows, history=True
    )
