"""The records of a dead-letter topic as rejected rows; see `rejects.dead_letters` for its headers.

The topic has each row at least once, and those of several pipelines: the rows of one pipeline are
taken, each once. Records of a version that did not note the time of a record are left out, because
it is part of what a record is known by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.pipelines.rejects.dead_letters import OWN_PREFIX, PREFIX, ROW_HEADER, TIME_HEADER
from ottla.pipelines.rejects.due import COLUMNS, RECORD, REPLAYED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from ottla.pipelines.kafka.settings import KafkaSettings

_POSITION: Final = {"topic": "string", "partition": "int", "offset": "bigint"}


def read_dead_letters(
    spark: SparkSession, kafka: KafkaSettings, dead: str, query: str, topic: str
) -> DataFrame:
    """Return what a dead-letter topic holds of a query, with all of COLUMNS.

    `topic` is the one that the query reads.
    """
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    raw = (
        spark.read.format("kafka")
        .options(**kafka.for_spark())
        .option("subscribe", dead)
        .option("startingOffsets", "earliest")
        .option("endingOffsets", "latest")
        .option("includeHeaders", True)
        .load()
    )

    def header(name: str) -> Column:
        found = F.filter("headers", lambda one: one["key"] == name)
        return F.try_element_at(found, F.lit(-1))["value"].cast("string")

    is_row = header(ROW_HEADER).isNotNull()
    time = F.timestamp_millis(header(TIME_HEADER).cast("bigint"))
    columns = {
        **{name: header(PREFIX + name).try_cast(kind) for name, kind in _POSITION.items()},
        "timestamp": time,
        "headers": F.filter("headers", _is_own),
        "key": F.col("key"),
        "value": F.when(~is_row, F.col("value")),
        "reason": header(f"{PREFIX}exception.message"),
        "row": F.when(is_row, F.col("value").cast("string")),
        REPLAYED: F.lit(None).cast("int"),
    }
    is_known = (is_row | time.isNotNull()) & (header(f"{PREFIX}connector.name") == query)
    rows = raw.where(is_known).select(*(columns[name].alias(name) for name in COLUMNS))
    named = rows.withColumn("topic", F.coalesce("topic", F.lit(topic)))
    return named.where(F.col("topic") == topic).dropDuplicates([*RECORD, "reason", "row"])


def _is_own(header: Column) -> Column:
    """Tell whether a header is one of the record's own."""
    return ~(header["key"].startswith(PREFIX) | header["key"].startswith(OWN_PREFIX))
