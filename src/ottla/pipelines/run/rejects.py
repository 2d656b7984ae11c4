"""Rejected rows: written to `<target>_rejected`, in the same batch and with the same promise.

Spark counts them while it reads a batch, and notes in which blocks of offsets they lie. Only these
blocks are read a second time, for these rows alone: no projection or join of a pipeline loses them.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.run.execution import Execution
from ottla.pipelines.sinks.constraints import METRIC, VIOLATED
from ottla.pipelines.sinks.port import Batch
from ottla.pipelines.source.observed import BLOCKS, READ, ranges_of
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
    reads_all: bool = True  # nothing in the plan makes Spark stop reading a batch early
    count: int = 0
    _place: DeltaSink | None = None

    def write(
        self, execution: Execution, batch: Batch, refused: DataFrame | None, *, skipped: bool
    ) -> None:
        """Write the rejected rows of the batch that the query has just written.

        `refused`: the rows that violate a constraint of the table, None for a table without any.
        `skipped`: the batch was not read, as the sink had it already; nothing was counted then.
        Raises PipelineError when there are more than `max_rows` in this run.
        """
        if not self.sources and refused is None:
            return
        counted = {} if skipped else execution.counted()
        suspects: list[Suspect] = []
        for source in self.sources:
            span = execution.range_of(source.name)
            found = suspect(source, span, counted.get(source.metric), self.reads_all)
            if found is not None:
                suspects.append(found)
        frames = [only_rejected(read_range(self.spark, one), one.source) for one in suspects]
        counts = [one.count for one in suspects]
        violated = counted.get(METRIC, {}).get(VIOLATED)
        if refused is not None and violated != 0:
            frames.append(refused)
            counts.append(violated)
        if not frames:
            return
        frame: DataFrame = reduce(
            lambda one, other: one.unionByName(other, allowMissingColumns=True), frames
        )
        known = [count for count in counts if count is not None]
        number = sum(known) if len(known) == len(counts) else frame.count()
        if not number:
            return
        if self._place is None:
            self._place = self.sink.rejected(frame.schema)
            self._place.make()
        self._place.write(frame, batch)
        self.count += number
        log.warning(
            "%d rows of %s were rejected in batch %d: they are kept in %s",
            number,
            ", ".join(one.source.name for one in suspects) or "the query",
            batch.number,
            self._place.name,
        )
        if self.max_rows is not None and self.count > self.max_rows:
            raise PipelineError(
                f"{self.count} rows were rejected in this run, more than max_rejects="
                f"{self.max_rows}: see the column reason of {self._place.name}"
            )


@dataclass(frozen=True, slots=True)
class Suspect:
    """A part of a topic that has rejected rows, or may have: `count` is None where not known."""

    source: Source
    first: dict[int, int]
    end: dict[int, int]
    count: int | None


def suspect(
    source: Source,
    span: tuple[dict[int, int], dict[int, int]] | None,
    counted: dict[str, Any] | None,
    reads_all: bool,
) -> Suspect | None:
    """Return what is to be read again of a source in this batch, None for nothing.

    Spark's count is right if it read the whole batch: nothing in the plan stops early, or it has
    seen as many rows as the range has offsets (a compacted topic has fewer). The read is then
    narrowed to where the rejected rows lie.
    """
    if span is None:
        return None
    first, end = span
    if counted is None:
        return Suspect(source, first, end, None)
    offsets = sum(end[partition] - max(first[partition], 0) for partition in end)
    if not reads_all and counted[READ] != offsets:
        return Suspect(source, first, end, None)
    if not counted[REJECTED]:
        return None
    ranges = ranges_of(counted[BLOCKS])
    return Suspect(
        source,
        {partition: max(first[partition], ranges[partition][0]) for partition in ranges},
        {partition: min(end[partition], ranges[partition][1]) for partition in ranges},
        int(counted[REJECTED]),
    )


def read_range(spark: SparkSession, part: Suspect) -> DataFrame:
    """Return Kafka's raw rows of a part of a topic."""
    name = part.source.name
    return (
        spark.read.format("kafka")
        .options(**part.source.kafka.for_spark())
        .option("assign", json.dumps({name: sorted(part.end)}))
        .option("startingOffsets", json.dumps({name: part.first}))
        .option("endingOffsets", json.dumps({name: part.end}))
        .option("includeHeaders", True)
        .load()
    )
