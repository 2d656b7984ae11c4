"""Rows that do not parse: written to `<target>_rejected`, exactly once like the others.

Spark counts them while it reads a batch. Only when there are some is the batch's range of
offsets read a second time, for these rows alone: whatever projection or join a pipeline makes,
nothing gets lost in it.
"""

from __future__ import annotations

import json
import logging
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.sinks.target import Target, find_target
from ottla.pipelines.source.source import Source
from ottla.pipelines.source.topic import only_rejected

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log: Final = logging.getLogger("ottla.pipelines")


def write_rejects(
    spark: SparkSession,
    sources: list[Source],
    target: Target,
    query_id: str,
    batch: int,
    *,
    skipped: bool,
) -> None:
    """Write the rejected rows of the batch that the query has just written.

    `skipped`: the batch was not read, as Delta had it already; then nothing was counted.
    """
    execution: Any = _execution(spark, query_id)
    counts = _counts(execution)
    suspects = [source for source in sources if skipped or counts.get(source.metric) != 0]
    frames = [
        only_rejected(_read_range(spark, source, *offsets), source)
        for source in suspects
        if (offsets := _offsets(execution, source)) is not None
    ]
    if not frames:
        return
    frame: DataFrame = reduce(lambda one, other: one.unionByName(other), frames)
    if skipped and frame.isEmpty():
        return
    place = find_target(spark, target.rejected_name(), frame.schema)
    place.append(frame, query_id, batch)
    count = sum(counts.get(source.metric) or 0 for source in suspects)
    names = ", ".join(source.name for source in suspects)
    log.warning(
        "%s of %s did not parse in batch %d: kept in %s",
        "Some rows" if skipped or not count else f"{count} rows",
        names,
        batch,
        place.name,
    )


def _execution(spark: SparkSession, query_id: str) -> Any:
    """Return Spark's own object of the running query: it alone knows a batch under way."""
    query: Any = spark._jsparkSession.streams().get(query_id)
    return query.streamingQuery()


def _counts(execution: Any) -> dict[str, int]:
    metrics = execution.lastExecution().observedMetrics()
    found = {}
    names = metrics.keysIterator()
    while names.hasNext():
        name = names.next()
        found[str(name)] = int(metrics.apply(name).getLong(0))
    return found


def _offsets(execution: Any, source: Source) -> tuple[str, str] | None:
    """Return the first and the last offsets of the batch under way as Spark writes them."""
    ends = execution.availableOffsets().iterator()
    while ends.hasNext():
        pair = ends.next()
        stream = pair._1()
        if stream.toString() == f"KafkaV2[Subscribe[{source.name}]]":
            start = execution.committedOffsets().get(stream)
            first = start.get() if start.isDefined() else stream.initialOffset()
            return _as_range(first.json(), pair._2().json(), source.name)
    return None


def _as_range(first: str, last: str, name: str) -> tuple[str, str]:
    """Give a partition that is new in this batch a start: Spark reads it from its beginning."""
    starts, ends = json.loads(first)[name], json.loads(last)[name]
    earliest = -2
    starts = {partition: starts.get(partition, earliest) for partition in ends}
    return json.dumps({name: starts}), json.dumps({name: ends})


def _read_range(spark: SparkSession, source: Source, first: str, last: str) -> DataFrame:
    return (
        spark.read.format("kafka")
        .options(**source.kafka.for_spark())
        .option("subscribe", source.name)
        .option("startingOffsets", first)
        .option("endingOffsets", last)
        .option("includeHeaders", True)
        .load()
    )
