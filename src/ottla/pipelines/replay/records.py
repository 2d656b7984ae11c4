"""The records of rejected rows, as the topic had them.

A row that did not parse has its bytes beside its reason. One that a constraint of the target
refused has the row alone: its record is read from the topic again, where it still is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from ottla.pipelines.kafka.brokers import look_up
from ottla.pipelines.rejects.due import REPLAYED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ottla.pipelines.source.source import Source

KNOWN_BY: Final = "known_by"
"""The timestamp by which a rejected row is known; that of its record may be another column."""
_RAW: Final = ("topic", "partition", "offset", "timestamp", "headers", "key", "value")


def records_of(
    spark: SparkSession,
    due: DataFrame,
    source: Source,
    topic_id: str,
    can_read: Callable[[], bool],
) -> DataFrame:
    """Return the records of due rows, one row each, with `reason`, REPLAYED and KNOWN_BY.

    `can_read`, asked where there are rows without bytes: these are of one record each, which says
    its own partition and offset in the topic `topic_id`. Where it does not, and where the broker no
    longer holds the record, the row is left out. Raises PipelineError.
    """
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    named = due.where(F.col("offset").isNotNull() & F.col("partition").isNotNull())
    has_bytes = F.col("row").isNull() & F.col("timestamp").isNotNull()
    known = named.withColumn(KNOWN_BY, F.col("timestamp"))
    with_bytes = known.where(has_bytes).select(*_RAW, "reason", REPLAYED, KNOWN_BY)
    position = ["topic", "partition", "offset"]
    # Of a topic that was created again two records may have one offset: one of them waits.
    with_bytes = with_bytes.dropDuplicates(position)
    lost = known.where(~has_bytes).select(
        "topic", "partition", "offset", "reason", REPLAYED, KNOWN_BY
    )
    spans = {
        int(row[0]): (int(row[1]), int(row[2]) + 1)
        for row in lost.where(F.col("topic") == source.name)
        .groupBy("partition")
        .agg(F.min("offset"), F.max("offset"))
        .collect()
    }
    held = _held(source, topic_id, spans) if spans and can_read() else {}
    if not held:
        return with_bytes
    raw = _read(spark, source, held).select(*_RAW)
    found = raw.join(lost.dropDuplicates(position), position)
    every = with_bytes.unionByName(found.select(*with_bytes.columns))
    return every.dropDuplicates(position)


def _held(
    source: Source, topic_id: str, spans: Mapping[int, tuple[int, int]]
) -> dict[int, tuple[int, int]]:
    """Return of ranges of offsets what the broker still holds; nothing of another topic."""
    topic = look_up(source.kafka, [source.name]).topics[source.name]
    if topic.topic_id != topic_id:
        return {}
    held = {
        partition: (max(first, topic.earliest[partition]), min(end, topic.latest[partition]))
        for partition, (first, end) in spans.items()
        if partition in topic.latest
    }
    return {partition: (first, end) for partition, (first, end) in held.items() if first < end}


def _read(spark: SparkSession, source: Source, ranges: Mapping[int, tuple[int, int]]) -> DataFrame:
    first = {str(partition): span[0] for partition, span in ranges.items()}
    end = {str(partition): span[1] for partition, span in ranges.items()}
    return (
        spark.read.format("kafka")
        .options(**source.kafka.for_spark())
        .option("assign", json.dumps({source.name: sorted(ranges)}))
        .option("startingOffsets", json.dumps({source.name: first}))
        .option("endingOffsets", json.dumps({source.name: end}))
        .option("includeHeaders", True)
        .load()
    )
