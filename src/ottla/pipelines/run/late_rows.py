"""Rows later than the watermark: counted, and kept in `<target>_late`.

Spark leaves them out of a deduplication, a join and an aggregation, and only counts them
(`numRowsDroppedByWatermark`). The operator's input is still there when the batch is written: it is
the output of a shuffle, which Spark keeps, so reading it again reads no topic. Of an aggregation
the input has sums and no rows: it is counted alone.

The rows are written with the batch's own number, after the batch. A batch that was written and is
repeated is searched again, and Delta skips what it has.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.order import WATERMARK
from ottla.pipelines.sinks.constraints import ROW
from ottla.pipelines.spark.column_names import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from ottla.pipelines.sinks.port import Batch, TableSink
    from ottla.pipelines.spark.jvm.execution import Execution

log: Final = logging.getLogger("ottla.pipelines")

_DROPPED: Final = "numRowsDroppedByWatermark"
# Operators whose input is rows, and no sums of rows.
_OF_ROWS: Final = (
    "StreamingDeduplicateExec",
    "StreamingDeduplicateWithinWatermarkExec",
    "StreamingSymmetricHashJoinExec",
)
_PLACE: Final = (("partition", "int"), ("offset", "bigint"))


@dataclass
class LateRows:
    """The late rows of one run: `count` of them so far."""

    sink: TableSink
    count: int = 0
    _place: TableSink | None = None

    def write(
        self, session: SparkSession, execution: Execution, batch: Batch, *, skipped: bool
    ) -> None:
        """Write the late rows of the batch that has just been written.

        `skipped`: the batch was written by an earlier run, so nothing was counted in this one.
        """
        frames: list[DataFrame] = []
        kept, lost = 0, 0
        for operator in _operators(execution.plan()):
            dropped = int(operator.metrics().apply(_DROPPED).value())
            found = _frames_of(session, operator) if dropped or skipped else []
            frames += found
            kept, lost = (kept + dropped, lost) if found else (kept, lost + dropped)
        if lost:
            log.warning(
                "batch %d has rows or groups that are later than the watermark: %d. They are not "
                "in %s, and cannot be kept",
                batch.number,
                lost,
                self.sink.name,
            )
        self.count += lost + self._keep(frames, batch, None if skipped else kept)

    def _keep(self, frames: list[DataFrame], batch: Batch, number: int | None) -> int:
        """Write the rows and return their number, which is not known of a skipped batch."""
        if not frames:
            return 0
        late_rows = reduce(lambda one, other: one.unionByName(other, True), frames)
        if number is None:
            number = late_rows.count()
        if not number:
            return 0
        if self._place is None:
            self._place = self.sink.late(late_rows.schema)
            self._place.make()
        if self._place.write(late_rows, batch) is None:
            return 0  # an earlier run wrote and counted them
        log.warning(
            "batch %d has rows that are later than the watermark: %d, kept in %s",
            batch.number,
            number,
            self._place.name,
        )
        return number


def _operators(plan: Any) -> Iterator[Any]:
    """Return the operators of a physical plan that leave out late rows."""
    plans = [plan]
    while plans:
        node = plans.pop()
        if node.metrics().contains(_DROPPED):
            yield node
        plans += _children(node)


def _children(node: Any) -> list[Any]:
    children = node.children()
    return [children.apply(index) for index in range(children.size())]


def _name(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _frames_of(session: SparkSession, operator: Any) -> list[DataFrame]:
    """Return the late rows in each input of an operator; none where the rows are not there."""
    if _name(operator) not in _OF_ROWS:
        return []
    watermark_ms = operator.eventTimeWatermarkForLateEvents()
    if not watermark_ms.isDefined():
        return []
    inputs = [child for child in _children(operator) if _name(child) == "ShuffleExchangeExec"]
    found = [_late_of(session, child, int(watermark_ms.get())) for child in inputs]
    return [frame for frame in found if frame is not None]


def _late_of(session: SparkSession, node: Any, watermark_ms: int) -> DataFrame | None:
    """Return the rows of an operator's input that are not later than the watermark.

    None: the input has no watermark.
    """
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import StructType

    schema = StructType.fromJson(json.loads(node.schema().json()))
    time = next((at for at, field in enumerate(schema.fields) if WATERMARK in field.metadata), None)
    if time is None:
        return None
    java: Any = session._jsparkSession
    rows = DataFrame(java.internalCreateDataFrame(node.execute(), node.schema(), False), session)
    names = _unique(schema)
    rows = rows.toDF(*names)
    at = F.col(quoted(names[time]))
    if isinstance(schema.fields[time].dataType, StructType):
        at = at["end"]  # a window
    at = at.cast("timestamp")
    mark = F.timestamp_micros(F.lit(watermark_ms * 1_000))
    types = {
        name: field.dataType.simpleString()
        for name, field in zip(names, schema.fields, strict=True)
    }
    columns = [quoted(name) for name in names]
    return rows.where(at <= mark).select(
        *(F.col(name) for name, kind in _PLACE if types.get(name) == kind),
        at.alias("event_time"),
        mark.alias("watermark"),
        F.to_json(F.struct(*columns), {"ignoreNullFields": "false"}).alias(ROW),
    )


def _unique(schema: StructType) -> list[str]:
    """Return the names of columns; a plan may have one name twice."""
    names: list[str] = []
    for field in schema.fields:
        name, number = field.name, 1
        while name.lower() in {one.lower() for one in names}:
            number += 1
            name = f"{field.name}_{number}"
        names.append(name)
    return names
