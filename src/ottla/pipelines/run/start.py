"""`to_delta`: a stream into a Delta table, each row once.

Each batch is one commit that carries the query's id and the batch's number, so Delta skips a
batch that it has already. A batch that is killed before the commit leaves files that no version
names; one that is killed after it is run again and skipped. Rows that did not parse go to
`<target>_rejected` in the same way, before Spark counts the batch as done.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.errors import PipelineError, explain, require_pyspark
from ottla.pipelines.kafka.brokers import look_up
from ottla.pipelines.run.rejects import write_rejects
from ottla.pipelines.running import QUERIES
from ottla.pipelines.sinks.delta_log import DeltaLog
from ottla.pipelines.sinks.target import Target, find_target
from ottla.pipelines.source.source import Source, sources_of
from ottla.pipelines.spark.files import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

log: Final = logging.getLogger("ottla.pipelines")

_TRIGGERS: Final = ("processingTime", "availableNow", "once")
_KEPT_VERSIONS: Final = 1_000


@dataclass
class Delivery:
    """One query of to_delta: writes the batches and knows the Delta version of each."""

    spark: SparkSession
    target: Target
    checkpoint: Files
    sources: list[Source]
    versions: dict[int, int | None] = field(default_factory=dict)
    _query_id: str = ""

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Write one batch; Spark calls this, and calls it again for a batch that was cut off."""
        query_id = self.query_id()
        table = self.target.log(self.spark)
        before = table.latest()
        self.target.append(frame, query_id, batch)
        version = table.find(query_id, batch, after=before)
        # Not among the new commits: an earlier run committed this batch, and Delta skipped it.
        # Nothing was read then, so nothing was counted either.
        skipped = version is None
        if self.sources:
            write_rejects(self.spark, self.sources, self.target, query_id, batch, skipped=skipped)
        self.versions[batch] = table.find(query_id, batch) if skipped else version
        while len(self.versions) > _KEPT_VERSIONS:
            del self.versions[min(self.versions)]

    @property
    def table(self) -> str:
        """The table's name, or its whole path."""
        return self.target.shown

    def query_id(self) -> str:
        """Return the query's id, empty until Spark has written it in the checkpoint."""
        if not self._query_id:
            metadata = json.loads(self.checkpoint.read("metadata") or "{}")
            self._query_id = str(metadata.get("id", ""))
        return self._query_id

    def version_of(self, batch: int) -> int | None:
        """Return the Delta version that holds a batch, from the table's log if need be."""
        if batch not in self.versions:
            self.versions[batch] = self.target.log(self.spark).find(self.query_id(), batch)
        return self.versions[batch]


def to_delta(
    df: DataFrame,
    target: str | os.PathLike[str],
    *,
    checkpoint: str | os.PathLike[str],
    trigger: Mapping[str, Any] | None = None,
) -> StreamingQuery:
    """Start a query that appends a stream to a Delta table, exactly once.

    Args:
        df: a streaming frame, such as `topic` gives, with any projection or join on it.
        target: a path (it has a slash: `./flights`, `s3a://lake/flights`) or a table's name
            (`flights`, `lake.flights`). It is made if it is not there.
        checkpoint: the folder where the query keeps its place. One for each query, kept as
            long as the table: the two together are what makes it exactly once.
        trigger: Spark's own keyword, `{"availableNow": True}` or
            `{"processingTime": "10 seconds"}`; None starts each batch when the last is done.

    Returns:
        Spark's StreamingQuery, running.

    Raises:
        PipelineError: a wrong argument, a broker that does not answer, a topic that is not
            there, or a checkpoint of another table.
    """
    require_pyspark()
    from pyspark.errors import PySparkException

    _check_frame(df)
    trigger = _checked_trigger(trigger)
    spark = df.sparkSession
    sources = [source for _, source in sources_of(df)]
    for source in sources:
        look_up(source.kafka, [source.name])
    place = find_target(spark, target, df.schema)
    files = _checked_checkpoint(spark, checkpoint, place)
    delivery = Delivery(spark, place, files, [source for source in sources if source.can_reject])
    writer = df.writeStream.foreachBatch(delivery).option("checkpointLocation", files.location)
    name = re.sub(r"\W+", "_", place.short_name)
    if name not in [query.name for query in spark.streams.active]:
        writer = writer.queryName(name)
    if trigger:
        writer = writer.trigger(**trigger)
    if delivery.query_id():
        # A former run's checkpoint: its listeners ask for it while the query starts.
        QUERIES[delivery.query_id()] = delivery
    try:
        query = writer.start()
    except PySparkException as error:
        words = str(error)
        raise PipelineError(explain(words, "") or words.splitlines()[0]) from error
    QUERIES[query.id] = delivery
    return query


def _check_frame(df: DataFrame) -> None:
    from pyspark.sql import DataFrame

    if not isinstance(df, DataFrame):
        raise PipelineError(f"to_delta takes a DataFrame, not {type(df).__name__}")
    if not df.isStreaming:
        raise PipelineError(
            "to_delta takes a streaming frame, such as topic() gives; this one is not. "
            "Type: df.write.format('delta').mode('append').save(...)"
        )


def _checked_trigger(trigger: Mapping[str, Any] | None) -> dict[str, Any]:
    chosen = dict(trigger or {})
    if len(chosen) > 1 or not set(chosen) <= set(_TRIGGERS):
        raise PipelineError(
            f"trigger={trigger!r}: write one of {{'availableNow': True}}, "
            "{'processingTime': '10 seconds'}, {'once': True}"
        )
    return chosen


def _checked_checkpoint(spark: SparkSession, checkpoint: Any, target: Target) -> Files:
    """Return the checkpoint's folder; refuses one that would lose rows or be lost itself."""
    if not checkpoint or not isinstance(checkpoint, str | os.PathLike):
        raise PipelineError(
            "to_delta needs a checkpoint: a folder where the query keeps its place, kept as "
            "long as the table, such as checkpoint='./checkpoints/flights'"
        )
    files = Files(spark, os.fspath(checkpoint))
    inside = files.location.removeprefix(target.location.rstrip("/") + "/")
    if files.location == target.location or (
        inside != files.location and not inside.startswith("_")
    ):
        raise PipelineError(
            f"The checkpoint {checkpoint} lies inside the table {target.name}: Delta's VACUUM "
            "would delete it. Give it a folder of its own, beside the table"
        )
    metadata = files.read("metadata")
    if metadata and any(name.isdigit() for name in files.names("commits")):
        _check_owner(str(json.loads(metadata)["id"]), checkpoint, target.log(spark), target)
    return files


def _check_owner(query_id: str, checkpoint: Any, table: DeltaLog, target: Target) -> None:
    """Refuse a checkpoint whose batches are not in the table: their rows would be missing."""
    if table.latest() < 0 or (table.reaches_back() and table.find(query_id, None) is None):
        raise PipelineError(
            f"The checkpoint {checkpoint} has delivered batches that {target.name} does not "
            "hold: it belongs to another table, or the table was made anew. Give a new "
            "checkpoint to start from the beginning of the topic"
        )
