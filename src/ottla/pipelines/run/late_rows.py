"""Rows older than the watermark: counted, and kept in `<target>_late`.

Spark leaves them out of a deduplication, a join and an aggregation, and only counts them
(`numRowsDroppedByWatermark`). The operator's input is still there when the batch is written: it is
the output of a shuffle, which Spark keeps, so reading it again reads no topic. Of an aggregation
the input has sums and no rows: it is counted alone.

The rows are written with the batch's own number, after the batch. A batch that was written and is
repeated is searched again, and Delta skips what it has.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

from ottla.pipelines.order import WATERMARK
from ottla.pipelines.spark.column_names import quoted
from ottla.pipelines.spark.json_texts import WHOLE_TIMES
from ottla.pipelines.spark.jvm.operators import Operator, operators
from ottla.pipelines.target.constraints import ROW

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from ottla.pipelines.spark.jvm.execution import Execution
    from ottla.pipelines.target.port import Batch, Sink

log: Final = logging.getLogger("ottla.pipelines")

# Operators whose input is rows, and no sums of rows.
_OF_ROWS: Final = (
    "StreamingDeduplicateExec",
    "StreamingDeduplicateWithinWatermarkExec",
    "StreamingSymmetricHashJoinExec",
)
_POSITION: Final = (("partition", "int"), ("offset", "bigint"))


@dataclass
class LateRows:
    """The late rows of one run: `count` of them so far."""

    sink: Sink
    count: int = 0
    _late: Sink | None = None

    def write(
        self, session: SparkSession, execution: Execution, batch: Batch, *, skipped: bool
    ) -> None:
        """Write the late rows of the batch that has just been written.

        `skipped`: the batch was written by an earlier run, so nothing was counted in this one.
        """
        frames: list[DataFrame] = []
        kept, lost = 0, 0
        dropping = (one for one in operators(execution.plan()) if one.drops_late_rows())
        for operator in dropping:
            dropped = operator.dropped()
            found = _frames_of(session, operator) if dropped or skipped else []
            frames += found
            kept, lost = (kept + dropped, lost) if found else (kept, lost + dropped)
        if lost:
            log.warning(
                "batch %d has rows or groups that are older than the watermark: %d. They are not "
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
        if self._late is None:
            self._late = self.sink.late(late_rows.schema)
            self._late.make()
        if self._late.write(late_rows, batch) is None:
            return 0  # an earlier run wrote and counted them
        log.warning(
            "batch %d has rows that are older than the watermark: %d, kept in %s",
            batch.number,
            number,
            self._late.name,
        )
        return number


def _frames_of(session: SparkSession, operator: Operator) -> list[DataFrame]:
    """Return the late rows in each input of an operator; none where the rows are not there."""
    if operator.kind not in _OF_ROWS:
        return []
    watermark_ms = operator.late_watermark_ms()
    if watermark_ms is None:
        return []
    inputs = [child for child in operator.children if child.kind == "ShuffleExchangeExec"]
    found = [_late_of(session, child, watermark_ms) for child in inputs]
    return [frame for frame in found if frame is not None]


def _late_of(session: SparkSession, shuffle: Operator, watermark_ms: int) -> DataFrame | None:
    """Return the rows of an operator's input that are older than the watermark.

    None: the input has no watermark.
    """
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import StructType

    schema = shuffle.schema
    time = next((at for at, field in enumerate(schema.fields) if WATERMARK in field.metadata), None)
    if time is None:
        return None
    names = _unique(schema)
    rows = shuffle.rows(session).toDF(*names)
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
        *(F.col(name) for name, kind in _POSITION if types.get(name) == kind),
        at.alias("event_time"),
        mark.alias("watermark"),
        F.to_json(F.struct(*columns), {"ignoreNullFields": "false", **WHOLE_TIMES}).alias(ROW),
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
