"""Rejected rows: written to `<target>_rejected`, in the same batch and with the same promise.

Spark counts them while it reads a batch. Only when there are some is the batch's range of
offsets read a second time, for these rows alone: no projection or join of a pipeline loses them.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.run.execution import Execution
from ottla.pipelines.sinks.port import Batch
from ottla.pipelines.source.source import REJECTED, Source
from ottla.pipelines.source.topic import only_rejected

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ottla.pipelines.sinks.delta import DeltaSink

log: Final = logging.getLogger("ottla.pipelines")


@dataclass
class Rejects:
    """The rejected rows of one run: `count` of them so far, at most `max_rows` when it is set."""

    spark: SparkSession
    sink: DeltaSink
    sources: tuple[Source, ...]
    max_rows: int | None = None
    trusted: bool = True  # Spark reads all rows of a batch, so its count of them is right
    count: int = 0

    def write(self, execution: Execution, batch: Batch, *, skipped: bool) -> None:
        """Write the rejected rows of the batch that the query has just written.

        `skipped`: the batch was not read, as the sink had it already; nothing was counted then.
        Raises PipelineError when there are more than `max_rows` in this run.
        """
        if not self.sources:
            return
        counts = execution.counted()
        certain = self.trusted and not skipped
        counted = {source.metric: _counted(counts, source) for source in self.sources}
        suspects = [one for one in self.sources if not certain or counted[one.metric] != 0]
        frames = [
            only_rejected(read_range(self.spark, source, *offsets), source)
            for source in suspects
            if (offsets := execution.range_of(source.name)) is not None
        ]
        if not frames:
            return
        frame: DataFrame = reduce(lambda one, other: one.unionByName(other), frames)
        exact = certain and None not in counted.values()
        found = sum(counted[one.metric] or 0 for one in suspects) if exact else frame.count()
        if not found:
            return
        place = self.sink.rejected(frame.schema)
        place.make()
        place.write(frame, batch)
        self.count += found
        log.warning(
            "%d rows of %s were rejected in batch %d: they are kept in %s",
            found,
            ", ".join(source.name for source in suspects),
            batch.number,
            place.name,
        )
        if self.max_rows is not None and self.count > self.max_rows:
            raise PipelineError(
                f"{self.count} rows were rejected in this run, more than max_rejects="
                f"{self.max_rows}: see the column reason of {place.name}"
            )


def _counted(counts: dict[str, dict[str, object]], source: Source) -> int | None:
    """Return how many rows of a source were rejected, None where nothing was counted."""
    found = counts.get(source.metric, {}).get(REJECTED)
    return None if found is None else int(str(found))


def read_range(
    spark: SparkSession, source: Source, first: dict[int, int], last: dict[int, int]
) -> DataFrame:
    """Return Kafka's raw rows of a topic from the first offsets to before the last."""
    return (
        spark.read.format("kafka")
        .options(**source.kafka.for_spark())
        .option("subscribe", source.name)
        .option("startingOffsets", json.dumps({source.name: first}))
        .option("endingOffsets", json.dumps({source.name: last}))
        .option("includeHeaders", True)
        .load()
    )
