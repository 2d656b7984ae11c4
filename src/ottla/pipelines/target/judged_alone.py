"""The constraints of a table that a record cannot be held to alone, with `ignore_nulls`. Pure.

A record is judged in the plan of the stream, before its nulls are filled from the row of its key.
So NOT NULL would reject a record that only says nothing of that column. A CHECK of two columns may
hold for the record and not for the row that it gives, and Delta then refuses the batch, each time.
Both are refused at the start. A constraint holds for a record alone where all its columns are of
the record itself: the key, the order, and columns that are never null in the rows, with all fields
of theirs, each of which is filled by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.spark.column_names import quoted
from ottla.pipelines.target.folded_statement import fixed

if TYPE_CHECKING:
    from pyspark.sql.types import StructField, StructType

    from ottla.pipelines.target.constraints import Constraint
    from ottla.pipelines.target.keyed_table import KeyedTable


def check_judged_alone(
    keyed: KeyedTable | None, constraints: Iterable[Constraint], rows: StructType, name: str
) -> None:
    """Refuse constraints that hold for the row of a key, where a record may be null.

    `constraints`: those of the table `name`. `rows`: the columns of the frame. Raises
    PipelineError.
    """
    if keyed is None or not keyed.ignore_nulls:
        return
    own = fixed(keyed)
    filled = [one.name for one in rows.fields if _may_lack(one) and one.name in keyed.columns]
    filled = [column for column in filled if column not in own]
    there = set(_there(rows))
    for one in constraints:
        found = [column for column in filled if _names(one.condition, column)]
        if one.is_of_row and found and one.condition not in there:
            raise PipelineError(
                f"The table {name} asks {one.condition} of each row, and with ignore_nulls=True a "
                f"record may be null in {found[0]} where the row of its key has a value: it would "
                "be rejected for what it does not say, or its whole batch refused. Take this "
                "constraint out of the table, or leave out ignore_nulls"
            )


def _may_lack(field: StructField) -> bool:
    """Tell whether a record may be null in a column or, of a struct, in one of its fields."""
    return field.nullable or any(map(_may_lack, _fields(field.dataType)))


def _there(rows: StructType, parents: tuple[str, ...] = ()) -> Iterator[str]:
    """Return that each column and field is not null which is none in any record."""
    for field in rows.fields:
        if not field.nullable:
            path = (*parents, field.name)
            yield f"{'.'.join(map(quoted, path))} IS NOT NULL"
            if _fields(field.dataType):
                yield from _there(field.dataType, path)


def _fields(kind: Any) -> list[StructField]:
    return list(kind.fields) if kind.typeName() == "struct" else []


def _names(condition: str, column: str) -> bool:
    """Tell whether a condition may name a column: a text in it that reads the same counts, too."""
    pattern = rf"(?<!\w){re.escape(column)}(?!\w)"
    return re.search(pattern, condition, re.IGNORECASE) is not None
