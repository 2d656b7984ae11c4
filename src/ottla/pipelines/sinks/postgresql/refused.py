"""Tables of PostgreSQL that a pipeline does not write, because rows would go or stay in silence.

What the database says by itself, such as a CHECK that a row violates, is not here. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.sinks.postgresql.table import TableColumn, TableName

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from ottla.pipelines.target.keyed_table import KeyedTable

_NESTED: Final = ("struct", "array")
_ORDERED_TEXTS: Final = ("text", "character varying", "character")
"""Of these the database compares the bytes, where it is asked to, as Spark does."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """What stands between an upsert and the rows of a table.

    `rule`: one by which a statement does something else. `is_filtered`: row-level security hides
    rows from this user.
    """

    rule: str | None = None
    is_filtered: bool = False


def unlogged(table: TableName, shown: str) -> str:
    """Return why a table is not written that the database empties after a crash."""
    return (
        f"The table {shown} is UNLOGGED, or has a partition that is: PostgreSQL empties it when it "
        "starts after a crash, and its batches would count as written. Make it a logged one: "
        f"ALTER TABLE {table.sql()} SET LOGGED"
    )


def elsewhere(shown: str) -> str:
    """Return why a table is not written of which a part is in another database."""
    return (
        f"The table {shown} has a partition that is a foreign table: its rows are committed in "
        "another database, and a crash before the commit here would double them. Detach it, or "
        "write to another table"
    )


def alike(shown: str, column: str, keys: Sequence[str | None]) -> str:
    """Return why a batch is not written that has the first of two keys."""
    return (
        f"The keys {keys[0]} and {keys[1]} are two for Spark and one for the table {shown}, whose "
        f"column {column} compares texts otherwise than by their bytes: one would replace the row "
        "of the other. Nothing of this batch is written: make such keys alike in the query, with "
        "lower() for example, or use a table where the column is text"
    )


def folding_index(shown: str, index: str) -> str:
    """Return why a table is not written whose unique index on the key has keys as one that its
    column tells apart."""
    return (
        f"The unique index {index} of the table {shown} has another collation than its column, in "
        "which keys may be equal that are two for the column and for Spark: one would replace the "
        "row of the other. Drop it, and create one in the column's own collation"
    )


def check_order(
    keyed: KeyedTable, rows: StructType, table: Sequence[TableColumn], shown: str
) -> None:
    """Refuse an order that the database has otherwise than Spark. Raises PipelineError.

    Spark finds the last record of a batch, and the database compares it with the row of its key:
    arrays are compared there by their length first, and a `citext` without upper and lower case.
    """
    if keyed.order_by is None:
        return
    kind = next(one.dataType for one in rows.fields if one.name == keyed.order_by)
    if kind.typeName() in _NESTED:
        raise PipelineError(
            f"order_by={keyed.order_by!r} is {kind.simpleString()}, which is JSON in PostgreSQL, "
            "and that compares it otherwise than Spark: name a column with a time, a number or a "
            "text"
        )
    column = next((one for one in table if one.name == keyed.order_by), None)
    if column is None or kind.typeName() != "string" or column.kind in _ORDERED_TEXTS:
        return
    raise PipelineError(
        f"The column {column.name} of the table {shown} is {column.shown}, which orders texts "
        "otherwise than Spark, and order_by names it: make it text, or name another column"
    )


def check_guarded(keyed: KeyedTable, found: Guarded, shown: str) -> None:
    """Refuse a table with keys of which rows would be left out, or kept. Raises PipelineError."""
    if found.rule is not None:
        raise PipelineError(
            f"The table {shown} has the rule {found.rule}, by which a statement does something "
            "else (INSTEAD): rows would be left out, or deleted ones kept. Drop the rule, or write "
            "to another table"
        )
    if found.is_filtered and (keyed.has_tombstones or keyed.has_truncations):
        raise PipelineError(
            f"The table {shown} has row-level security, which hides rows from this user: a "
            "deletion would leave them. Write with a user that owns the table, or one with "
            "BYPASSRLS"
        )
