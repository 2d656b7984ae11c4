"""Records that say that the table was truncated at its source: what is older than them goes.

A truncation has no key. It has a place in the order of the records, and all of a table that lies
before it goes, whatever its key. Without `order_by` that is all that was read before it; for that
the topic must have one partition (`run.truncations`). With `order_by` older records of other
partitions may be read after it: they must not come back, so the last truncation is noted.

`<checkpoint>/ottla-truncated.json`, one JSON object, replaced as a whole:

    {"version": 1, "order": "{\\"<column>\\": <value>}", "columns": ["<column>"]}

The order is JSON within JSON, in Spark's own words: a decimal has more digits than Python's floats
keep. It is written before the batch that has the truncation. A batch that is cut off in between is
read again with the same truncation, and noting it twice is noting it once. A crash leaves the
former text or the new one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.checkpoint.document import Document, Folder
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.spark.column_names import quoted, text
from ottla.pipelines.target.keyed_table import TRUNCATION, KeyedTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

# Spark writes milliseconds by default, and an order has microseconds.
_FORMATS: Final = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


@dataclass(frozen=True, slots=True)
class Truncation:
    """The place of a truncation in the order of a table's records.

    `columns`: those of the order, each with its type. `order`: their values, as a JSON object.
    """

    columns: tuple[tuple[str, str], ...]
    order: str

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(name for name, _ in self.columns)

    @property
    def sql(self) -> str:
        """The place as SQL, which compares with `order_of` a row."""
        fields = ", ".join(f"{quoted(name)}: {kind}" for name, kind in self.columns)
        return f"from_json({text(self.order)}, {text(f'struct<{fields}>')}, {_formats()})"


def _build(noted: tuple[tuple[str, ...], str]) -> dict[str, Any]:
    names, order = noted
    return {"order": order, "columns": list(names)}


def _parse(document: dict[str, Any]) -> tuple[tuple[str, ...], str]:
    names, order = tuple(map(str, document["columns"])), document["order"]
    first, *_ = names
    if first not in dict(json.loads(order)):
        raise ValueError(f"without {first} the place is before all records")
    return names, order


NOTE: Final = Document(
    "ottla-truncated.json",
    _parse,
    _build,
    instead="delete it: records that are older than the last truncation, and come later, are then "
    "kept",
)
"""The names of the columns, and the values, of the last truncation."""


def order_of(keyed: KeyedTable, row: str = "") -> str:
    """Return the place of a row in the order of the records, as SQL. `row`: its alias."""
    alias = f"{row}." if row else ""
    names = ", ".join(f"{alias}{quoted(name)}" for name in keyed.order)
    return f"struct({names})"


def last_truncation(rows: DataFrame, keyed: KeyedTable) -> Truncation | None:
    """Return the last truncation among the rows of a batch, None without one. It reads all rows.

    Raises PipelineError where its place cannot be kept as JSON.
    """
    last = rows.where(TRUNCATION).selectExpr(f"max({order_of(keyed)}) AS place")
    row = last.selectExpr(f"to_json(place, {_formats()}) AS order").first()
    if row is None or row["order"] is None:
        return None
    found = _read(rows.schema, keyed, row["order"])
    kept = last.selectExpr(f"{found.sql} <=> place AS is_same").first()
    if kept is None or not kept["is_same"]:
        raise PipelineError(
            f"The place of a truncation, {found.order}, is not the same when it is read again: "
            "choose another column in order_by, such as a number"
        )
    return found


def noted(folder: Folder, rows: StructType, keyed: KeyedTable) -> Truncation | None:
    """Return the last truncation that a checkpoint notes, by the columns of now; None without one.

    Raises PipelineError where the note is damaged, or has a place by other columns.
    """
    found = NOTE.read(folder)
    if found is None:
        return None
    names, order = found
    if names != keyed.order:
        raise PipelineError(
            f"The last truncation is noted by {', '.join(names)}, and the records are now ordered "
            f"by {', '.join(keyed.order)}: which of them are older is not known. Order them as "
            f"before, or delete {folder.location}/{NOTE.name}: older records that come later are "
            "then kept"
        )
    return _read(rows, keyed, order)


def note(folder: Folder, truncation: Truncation) -> None:
    """Note the last truncation in a checkpoint."""
    NOTE.write(folder, (truncation.names, truncation.order))


def _read(rows: StructType, keyed: KeyedTable, order: str) -> Truncation:
    types = {one.name: one.dataType.simpleString() for one in rows.fields}
    return Truncation(tuple((name, types[name]) for name in keyed.order), order)


def later(spark: SparkSession, one: Truncation | None, other: Truncation | None) -> Truncation:
    """Return the later of two truncations by the same columns, of which one is there."""
    if one is None or other is None:
        found = one or other
        assert found is not None, "one of both is there"
        return found
    row = spark.range(1).selectExpr(f"{one.sql} >= {other.sql} AS is_later").first()
    return one if row is not None and row["is_later"] else other


def after(rows: DataFrame, keyed: KeyedTable, truncation: Truncation | None) -> DataFrame:
    """Return of the rows of a batch the records that a truncation leaves."""
    kept = rows.where(f"NOT coalesce({TRUNCATION}, false)")
    if truncation is not None:
        kept = kept.where(f"{order_of(keyed)} > {truncation.sql}")
    return kept.drop(TRUNCATION)


def _formats() -> str:
    pairs = ", ".join(f"{text(name)}, {text(value)}" for name, value in _FORMATS.items())
    return f"map({pairs})"
