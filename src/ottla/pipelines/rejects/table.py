"""The rejected rows of a table, a folder or a database, counted by reason, and the newest of them.

Spark reads them: it is there wherever a pipeline runs, and it has what the pipeline's storage
needs. No other library of the extras reads Delta.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.rejects.due import REPLAYED, due

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from ottla.pipelines.target.port import Sink

MAX_REASONS: Final = 100

# A value that does not fit is quoted in its row's reason; rows with other values have that reason
# too.
_QUOTED: Final = r"^((?:key|value)\S* is not a [^:]+): [\s\S]*$"
_COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "row", "reason")


@dataclass(frozen=True, slots=True)
class Reason:
    """Rows with one reason, and the times of their oldest and newest record in ms since 1970."""

    reason: str
    rows: int
    first_ms: int | None
    last_ms: int | None


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """One row: where its record is, its raw bytes, and for a constraint the row as JSON."""

    reason: str
    topic: str | None
    partition: int | None
    offset: int | None
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    row: str | None


@dataclass(frozen=True, slots=True)
class RejectedRows:
    """`rows`: all of them. `reasons`: at most MAX_REASONS, the most frequent ones first."""

    table: str
    rows: int
    reasons: tuple[Reason, ...]
    newest: tuple[RejectedRow, ...]


def read_rejected(target: Sink, newest: int, topic: str = "") -> RejectedRows | None:
    """Return what the target `<target>_rejected` holds, with its `newest` rows.

    Those that were sent again since are left out. `topic` is that of rows which name none. None
    where there is no such target.
    """
    frame = target.rows()
    if frame is None:
        return None
    if REPLAYED in frame.columns:
        frame = due(frame, topic)
    reasons = _reasons(frame)
    return RejectedRows(
        target.shown,
        frame.count() if len(reasons) == MAX_REASONS else sum(one.rows for one in reasons),
        tuple(reasons),
        tuple(_newest(frame, newest)) if newest else (),
    )


def _reasons(frame: DataFrame) -> list[Reason]:
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    times = _time_ms(frame)
    counted = (
        frame.groupBy(without_quoted_value("reason").alias("reason"))
        .agg(F.count(F.lit(1)).alias("rows"), F.min(times).alias("f"), F.max(times).alias("l"))
        .orderBy(F.desc("rows"), "reason")
        .limit(MAX_REASONS)
    )
    return [Reason(row["reason"], row["rows"], row["f"], row["l"]) for row in counted.collect()]


def without_quoted_value(name: str) -> Column:
    """Return a column of reasons without the values that some of them quote."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.regexp_replace(name, _QUOTED, "$1")


def _newest(frame: DataFrame, number: int) -> list[RejectedRow]:
    from pyspark.sql import functions as F  # noqa: N812

    times = _time_ms(frame)
    columns = [
        F.col(name) if name in frame.columns else F.lit(None).alias(name)
        for name in _COLUMNS
        if name != "timestamp"
    ]
    order = [F.desc_nulls_last("ms"), "topic", "partition", F.desc("offset")]
    rows = frame.select(*columns, times.alias("ms")).orderBy(*order).limit(number)
    return [
        RejectedRow(
            row["reason"],
            row["topic"],
            row["partition"],
            row["offset"],
            row["ms"],
            _bytes(row["key"]),
            _bytes(row["value"]),
            row["row"],
        )
        for row in rows.collect()
    ]


def _time_ms(frame: DataFrame) -> Any:
    """Return a record's time in ms; rows that a batch frame gave have none."""
    from pyspark.sql import functions as F  # noqa: N812

    if "timestamp" not in frame.columns:
        return F.lit(None).cast("bigint")
    return F.unix_millis("timestamp")


def _bytes(data: Any) -> bytes | None:
    return None if data is None else bytes(data)
