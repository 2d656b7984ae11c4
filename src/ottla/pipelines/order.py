"""Rows that come twice, and the last row of each key.

Kafka delivers a record twice where a producer without idempotence tries again, and an event twice
where a program publishes it twice. `deduplicate` remembers the keys of a time; `latest_by_key`
takes the last row of each key of a batch frame. A stream becomes such a table with
`to_delta(keys=...)`.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.target.keyed_table import TOMBSTONE, find_column, read_keyed_table
from ottla.pipelines.target.upsert_statement import last_records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Spark's mark of a column that has a watermark (EventTimeWatermark.delayKey).
WATERMARK: Final = "spark.watermarkDelayMs"


def deduplicate(
    df: DataFrame, keys: str | Sequence[str], *, within: str, time: str = "timestamp"
) -> DataFrame:
    """Return the first row of each key; a stream remembers a key for the time `within`.

    Args:
        keys: the columns of the key.
        within: how long after the first row another one of its key may come, by `time`, such as
            "1 hour". Rows that are older than the watermark, which is the greatest time so far
            less `within`, cannot be compared: `to_delta` counts them and writes them to
            `<target>_late`. A batch frame has all its rows at once, and ignores it.
        time: the column with the time of a row; the topic's `timestamp` by default. A watermark
            that it has already stays.

    Raises:
        PipelineError: a name that is no column, a time that Spark does not understand.
    """
    from pyspark.errors import PySparkException

    names = [find_column(df.schema, name, "keys").name for name in _listed(keys)]
    field = find_column(df.schema, time, "time")
    if not df.isStreaming:
        return df.dropDuplicates(names)
    try:
        marked = df if WATERMARK in field.metadata else df.withWatermark(field.name, within)
    except PySparkException as error:
        reason = str(error).splitlines()[0]
        raise PipelineError(f"within={within!r}, time={time!r}: {reason}") from error
    return marked.dropDuplicatesWithinWatermark(names)


def latest_by_key(
    df: DataFrame, keys: str | Sequence[str], *, order_by: str | None = None
) -> DataFrame:
    """Return the last row of each key of a batch frame, as `to_delta(keys=...)` keeps it.

    Rows that are true in the column `tombstone` delete their key; the column is left out.

    Raises:
        PipelineError: a streaming frame, a name that is no column, rows without an order.
    """
    if df.isStreaming:
        raise PipelineError(
            "latest_by_key is for batch frames, and this frame is streaming: write it with "
            "to_delta(..., keys=[...]), whose table has the last row of each key"
        )
    keyed = read_keyed_table(df.schema, _listed(keys), order_by=order_by, streaming=False)
    if order_by is None and not keyed.position:
        raise PipelineError(
            "latest_by_key needs the topic's columns partition (int) and offset (bigint), or "
            "order_by, to know which row of a key is the last"
        )
    view = f"ottla_rows_{secrets.token_hex(8)}"
    df.createOrReplaceTempView(view)
    try:
        last = df.sparkSession.sql(last_records(keyed, view))
    finally:
        df.sparkSession.catalog.dropTempView(view)
    return last.where(f"{TOMBSTONE} IS NOT TRUE").drop(TOMBSTONE) if keyed.has_tombstones else last


def _listed(keys: str | Sequence[str]) -> list[str]:
    found = [keys] if isinstance(keys, str) else list(keys)
    if not found:
        raise PipelineError("keys=[]: write the names of the key's columns, such as ['id']")
    return found
