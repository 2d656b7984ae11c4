"""Records that `order_by` puts after all others: a time far ahead of the clock, or NaN.

Such a record keeps its key: each record that follows is older. A wrong clock, milliseconds read as
seconds or a placeholder such as 9999-12-31 are enough. NaN, which Spark orders after each number,
is always rejected, as null is; a time is where `max_ahead` is given, and is counted otherwise.

The clock is that of the batch, which Spark keeps in the checkpoint: a batch that is written again
rejects the same rows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.spark.column_names import quoted
from ottla.pipelines.target.constraints import Constraint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from ottla.pipelines.target.keyed_table import KeyedTable

METRIC: Final = "ottla.ahead"  # the name of the count in the query's progress
AHEAD: Final = "ahead"
LATEST: Final = "latest"
COUNTED_FROM: Final = "1 hour"

MAX_UNITS: Final = 1_000_000
_UNITS_S: Final = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_LENGTH: Final = re.compile(r"\s*(\d{1,7})\s+([a-z]+?)s?\s*", re.ASCII | re.IGNORECASE)
_NOW: Final = {
    "timestamp": "current_timestamp() + {length}",
    "timestamp_ntz": "localtimestamp() + {length}",
    "date": "CAST(current_timestamp() + {length} AS DATE)",
}
_FLOATS: Final = ("float", "double")


def read_length_s(max_ahead: object) -> int:
    """Return a length of time such as "90 minutes" in seconds. Raises PipelineError."""
    found = _LENGTH.fullmatch(max_ahead) if isinstance(max_ahead, str) else None
    unit = _UNITS_S.get(found[2].lower()) if found else None
    if found is None or unit is None or int(found[1]) > MAX_UNITS:
        raise PipelineError(
            f"max_ahead={max_ahead!r}: write a number and a unit (seconds, minutes, hours, days or "
            "weeks), such as '1 hour'"
        )
    return int(found[1]) * unit


def check_max_ahead(max_ahead: str | None, keyed: KeyedTable, rows: StructType) -> None:
    """Refuse `max_ahead` where no time orders the records. Raises PipelineError."""
    if max_ahead is None:
        return
    if keyed.order_by is None:
        raise PipelineError(
            "max_ahead says how far ahead of the clock order_by may be: write order_by too, or "
            "leave max_ahead out"
        )
    kind = _kind(keyed, rows)
    if kind not in _NOW:
        raise PipelineError(
            f"max_ahead is for an order_by that is a time, and the column {keyed.order_by} is "
            f"{kind}: leave max_ahead out"
        )


def order_constraints(
    max_ahead: str | None, keyed: KeyedTable | None, rows: StructType
) -> tuple[Constraint, ...]:
    """Return what the order of a record must fulfil, beside being there."""
    if keyed is None or keyed.order_by is None:
        return ()
    column, kind = quoted(keyed.order_by), _kind(keyed, rows)
    if kind in _FLOATS:
        reason = f"the column {keyed.order_by}, which orders the records of a key, is NaN"
        return (Constraint(f"{column} IS NULL OR NOT isnan({column})", reason),)
    if max_ahead is None or kind not in _NOW:
        return ()
    return (
        Constraint(
            f"{column} IS NULL OR {column} <= {_limit(kind, max_ahead)}",
            f"the column {keyed.order_by}, which orders the records of a key, is more than "
            f"{max_ahead} ahead of the clock",
        ),
    )


def watched(
    frame: DataFrame, max_ahead: str | None, keyed: KeyedTable | None, rows: StructType
) -> DataFrame:
    """Count the rows that are more than COUNTED_FROM ahead, as METRIC, unless they are rejected."""
    from pyspark.sql import functions as F  # noqa: N812

    if keyed is None or keyed.order_by is None or max_ahead is not None:
        return frame
    kind = _kind(keyed, rows)
    if kind not in _NOW:
        return frame
    column = quoted(keyed.order_by)
    is_ahead = F.expr(f"{column} > {_limit(kind, COUNTED_FROM)}")
    latest = F.max(F.expr(column)).cast("string").alias(LATEST)
    return frame.observe(METRIC, F.count_if(is_ahead).alias(AHEAD), latest)


def _limit(kind: str, length: str) -> str:
    return _NOW[kind].format(length=f"INTERVAL '{read_length_s(length)}' SECOND")


def _kind(keyed: KeyedTable, rows: StructType) -> str:
    return next(
        str(field.dataType.simpleString()) for field in rows.fields if field.name == keyed.order_by
    )
