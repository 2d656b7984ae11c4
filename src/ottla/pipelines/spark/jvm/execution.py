"""What Spark knows of the batch under way: its range of offsets, and what it counted in it.

The progress of a query has the same, but only when the batch is done.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ottla.pipelines.spark.jvm.attributes import java_session
from ottla.pipelines.spark.jvm.operators import Operator
from ottla.pipelines.spark.jvm.plan import in_list

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EARLIEST = -2  # Kafka's number for the first offset of a partition

Offsets = dict[str, dict[int, int]]  # topic -> partition -> next offset


class Execution:
    """Spark's own object of one running query, to be made for each batch.

    What does not change within a batch is asked once: each call of the JVM takes its time in each
    batch, and most of a small batch's are made here.
    """

    def __init__(self, spark: SparkSession, query_id: str) -> None:
        self._spark = spark
        self._counted: dict[str, dict[str, Any]] = {}
        self._starts: dict[str, dict[int, int]] = {}
        self._java: Any = java_session(spark).streams().get(query_id).streamingQuery()

    def ends(self) -> Offsets:
        """Return the offsets at which the batch ends, of each topic."""
        found: Offsets = {}
        for _, _, ends in self._streams:
            for topic, partitions in ends.items():
                known = found.setdefault(topic, {})
                for partition, offset in partitions.items():
                    known[partition] = min(offset, known.get(partition, offset))
        return found

    def range_of(self, topic: str) -> tuple[dict[int, int], dict[int, int]] | None:
        """Return the first and the next offsets of a topic in the batch, None without any.

        A partition that is new in the batch begins at EARLIEST: Spark reads all of it.
        """
        for stream, name, ends in self._streams:
            if name == f"KafkaV2[Subscribe[{topic}]]":
                if topic not in self._starts:
                    start = self._java.committedOffsets().get(stream)
                    first = start.get() if start.isDefined() else stream.initialOffset()
                    self._starts[topic] = _offsets(first).get(topic, {})
                starts = self._starts[topic]
                return {part: starts.get(part, EARLIEST) for part in ends[topic]}, dict(ends[topic])
        return None

    def more_waits(self) -> bool:
        """Tell whether a topic is known to hold records after the end of this batch.

        An earlier run may have planned the batch: then this run has not asked the broker yet, and
        nothing is known.
        """
        from py4j.protocol import Py4JJavaError

        for stream, _, ends in self._streams:
            try:
                latest = stream.reportLatestOffset()
            except Py4JJavaError as error:
                # Spark 4.0 has no other answer for "not asked yet" (KafkaMicroBatchStream).
                if "NullPointerException" not in str(error.java_exception.getClass().getName()):
                    raise
                latest = None
            if latest is None:
                continue
            for topic, partitions in _offsets(latest).items():
                known = ends.get(topic, {})
                if any(known.get(part, 0) < offset for part, offset in partitions.items()):
                    return True
        return False

    @cached_property
    def _streams(self) -> list[tuple[Any, str, Offsets]]:
        """Spark's streams of Kafka topics, each with its name and the offsets at which the batch
        ends.
        """
        found = []
        pairs = self._java.availableOffsets().iterator()
        while pairs.hasNext():
            pair = pairs.next()
            stream = pair._1()
            name = str(stream.toString())
            if name.startswith("KafkaV2["):
                found.append((stream, name, _offsets(pair._2())))
        return found

    def plan(self) -> Operator:
        """Return the physical plan of the batch."""
        return Operator(self._java.lastExecution().executedPlan())

    def forget_counted(self) -> None:
        """Let Spark count again from 0: the rows of the batch are read another time."""
        if self._java.lastExecution() is not None:
            self._java.lastExecution().executedPlan().resetMetrics()

    def counted(self) -> dict[str, dict[str, Any]]:
        """Return what was observed in the batch, by the metric's name; ask when it is written.

        Each value is a call of the JVM, so it is asked once.
        """
        found = self._counted
        if found or (last := self._java.lastExecution()) is None:
            return found
        metrics = last.observedMetrics()
        names = metrics.keysIterator()
        while names.hasNext():
            name = names.next()
            row = metrics.apply(name)
            columns = [field["name"] for field in json.loads(row.schema().json())["fields"]]
            found[str(name)] = {column: _value(row.get(i)) for i, column in enumerate(columns)}
        return found


@dataclass(frozen=True, slots=True)
class Pairs:
    """A sequence of rows of an int and a bigint, which are asked when they are read."""

    _java: Any

    def __iter__(self) -> Iterator[tuple[int, int]]:
        for row in in_list(self._java):
            yield int(row.getInt(0)), int(row.getLong(1))


def _value(value: Any) -> Any:
    from py4j.java_gateway import JavaObject

    return Pairs(value) if isinstance(value, JavaObject) else value


def _offsets(java: Any) -> Offsets:
    """Return the offsets of Kafka's source; JSON has the partitions as text."""
    return {
        topic: {int(partition): offset for partition, offset in partitions.items()}
        for topic, partitions in json.loads(java.json()).items()
    }
