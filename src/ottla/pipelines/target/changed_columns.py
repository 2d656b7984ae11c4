"""Whether the rows of a pipeline fit into a table that is there, and which columns they change in
it: for tables that add and widen columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.target.narrower_types import added_columns, narrower

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

CanWiden = Callable[["DataType", "DataType"], bool]
"""Whether a column of the first type, that of the table, may get the second, that of the rows."""


class ChangedColumns(NamedTuple):
    """The columns that a table gets (name, type), and those that get another type (name, type in
    the table, type of the rows).
    """

    added: list[tuple[str, str]]
    widened: list[tuple[str, str, str]]

    def lines(self, table: str) -> list[str]:
        """Return a line for each column. `table` is the table's name."""
        return [
            f"The column {name} of the table {table}, {held}, becomes {kind}"
            for name, held, kind in self.widened
        ] + [f"The table {table} gets the column {name} ({kind})" for name, kind in self.added]


def changed_columns(
    rows: StructType,
    there: StructType,
    table: str,
    *,
    adds: bool,
    can_widen: CanWiden,
    could_widen: CanWiden,
    to_widen: str,
) -> ChangedColumns:
    """Compare the columns of the rows with those that are there in a table of this name.

    `adds`: the pipeline may change the table. `could_widen` is `can_widen` for a table where the
    user has written `to_widen`. Raises PipelineError for columns that do not fit.
    """
    widened = []
    for name, kind, held in narrower(rows, there):
        wide, narrow = kind.simpleString(), held.simpleString()
        if adds and can_widen(held, kind):
            widened.append((name, narrow, wide))
            continue
        ways = "cast it in the query, or write to a new table"
        if could_widen(held, kind):
            ways = f"cast it in the query, or have the table widen it: {to_widen}"
        raise PipelineError(
            f"The column {name} is {wide} in the rows and {narrow} in the table {table}, which "
            f"does not hold each of its values: {ways}"
        )
    added = added_columns(rows, there)
    if added and not adds:
        name, kind_added = added[0]
        raise PipelineError(
            f"The frame has the column {name} ({kind_added}), which the table {table} does not "
            "have: select the table's columns, or write schema_changes='add'"
        )
    return ChangedColumns(added, widened)


def check_partition_by(partition_by: Sequence[str], schema: StructType) -> None:
    """Raise PipelineError where the rows lack a column."""
    unknown = [name for name in partition_by if name not in schema.names]
    if unknown:
        raise PipelineError(
            f"partition_by={unknown[0]!r} is not a column of the frame: it has "
            f"{', '.join(schema.names)}"
        )


def check_partitioned(partition_by: Sequence[str], there: Sequence[str], table: str) -> None:
    """Raise PipelineError where a table of this name is partitioned otherwise than is asked for."""
    if partition_by and tuple(partition_by) != tuple(there):
        has = ", ".join(there) or "no column"
        raise PipelineError(
            f"The table {table} is partitioned by {has}, not by {', '.join(partition_by)}: leave "
            "out partition_by, or choose another target"
        )
