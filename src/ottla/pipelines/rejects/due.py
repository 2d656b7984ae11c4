"""Which rejected rows are still to be sent again.

`<target>_rejected` is only added to. A replay adds to it, in one commit, what became of its rows:

    replayed   the number of the replay, null in a row that a batch rejected
    reason     SENT for a record that is in the target now; the new reason of one that failed again

A record is known by its topic, partition, offset and timestamp (a topic that was created again has
the same offsets). Its last word is that of the greatest `replayed`; a row that names no offset has
no record, and stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SENT: Final = "sent again"
REPLAYED: Final = "replayed"
RECORD: Final = ("topic", "partition", "offset", "timestamp")
"""The columns that say of which record a rejected row is."""

HEADERS: Final = "array<struct<key string, value binary>>"
COLUMNS: Final = {
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "headers": HEADERS,
    "key": "binary",
    "value": "binary",
    "reason": "string",
    "row": "string",
    REPLAYED: "int",
}
"""All that rejected rows may have, and their types."""


def complete(frame: DataFrame, topic: str) -> DataFrame:
    """Return rejected rows with all of COLUMNS; `topic` is that of rows which name none."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}

    def column(name: str, kind: str) -> Column:
        if name not in types:
            found = F.lit(None).cast(kind)
        elif name == "headers" and types[name] == "string":
            found = F.from_json(name, kind)  # a database keeps them as JSON
        else:
            found = F.col(name).cast(kind)
        return F.coalesce(found, F.lit(topic)) if name == "topic" else found

    return frame.select(*(column(name, kind).alias(name) for name, kind in COLUMNS.items()))


def due(rejected: DataFrame, topic: str) -> DataFrame:
    """Return of rejected rows, with all of COLUMNS, those that are still to be sent again."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    rows = complete(rejected, topic)
    if REPLAYED not in rejected.columns:
        return rows
    by_record = Window.partitionBy(*RECORD)
    last = F.max(F.coalesce(REPLAYED, F.lit(0))).over(by_record)
    is_last = F.coalesce(REPLAYED, F.lit(0)) == last
    kept = rows.withColumn("_ottla_last", F.col("offset").isNull() | is_last)
    return kept.where(F.col("_ottla_last") & (F.col("reason") != SENT)).drop("_ottla_last")
