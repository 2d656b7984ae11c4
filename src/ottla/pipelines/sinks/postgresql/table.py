"""A table of PostgreSQL by its name, and what it is made of. Pure.

A name is taken as it is written, upper case too; a dot separates schema and table. A part in double
quotes may have dots, and a quote in it is written twice, as in SQL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.sinks.postgresql.column_types import (
    fits,
    is_rounded,
    length_constraint,
    new_type,
    padding_constraint,
    rounding_constraint,
)
from ottla.pipelines.spark.column_names import quoted
from ottla.pipelines.target.constraints import Constraint

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

MAX_NAME_BYTES: Final = 63
"""PostgreSQL's limit (NAMEDATALEN); it would cut a longer name in silence."""
LONGEST_SUFFIX: Final = "_rejected"

_PART: Final = r'(?:"((?:[^"]|"")+)"|([^".]+))'
_NAME: Final = re.compile(rf"{_PART}(?:\.{_PART})?")


@dataclass(frozen=True, slots=True)
class TableName:
    """A table; `schema` is empty where the connection's own schema is meant."""

    schema: str
    table: str

    def beside(self, suffix: str) -> TableName:
        """Return the table beside this one, such as `<table>_rejected`."""
        return TableName(self.schema, self.table + suffix)

    @property
    def shown(self) -> str:
        """The name for a person."""
        return f"{self.schema}.{self.table}" if self.schema else self.table

    def sql(self, table: str | None = None) -> str:
        """Return the name as SQL takes it; `table`: of another table in the same schema."""
        name = identifier(self.table if table is None else table)
        return f"{identifier(self.schema)}.{name}" if self.schema else name


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table that exists; `length` is that of a `varchar(n)`.

    `kind`: its type without digits or length, and `whole` with them; of a domain that of its base.
    `shown`: the type as the table has it. `filled`: the database fills it where a row lacks it.
    `refuses`: it takes no value of a row. `folds`: its texts may be equal with other bytes.
    """

    name: str
    kind: str
    shown: str
    is_enum: bool = False
    not_null: bool = False
    filled: bool = False
    refuses: bool = False
    length: int | None = None
    whole: str = ""
    folds: bool = False


def identifier(name: str) -> str:
    """Return a name in quotes."""
    return '"' + name.replace('"', '""') + '"'


def read_table_name(name: object) -> TableName:
    """Return the table of a name. Raises PipelineError for a name that is none."""
    if not isinstance(name, str) or not name.strip() or "\0" in name:
        raise PipelineError(
            f"target={name!r}: write a table's name, such as 'flights' or 'lake.flights'"
        )
    match = _NAME.fullmatch(name)
    if match is None and "." in name:
        raise PipelineError(
            f"target={name!r}: put a part with a dot or a quote into double quotes, and write a "
            "quote in it twice, such as 'lake.\"flights.2026\"'"
        )
    parts = [name] if match is None else [_part(match, 1), _part(match, 3)]
    found = [part for part in parts if part]
    for part in found:
        most = MAX_NAME_BYTES - (len(LONGEST_SUFFIX) if part == found[-1] else 0)
        if len(part.encode()) > most:
            raise PipelineError(
                f"target={name!r}: {part!r} has {len(part.encode())} bytes; allowed: {most}, so "
                f"that PostgreSQL's {MAX_NAME_BYTES} are enough for the table {LONGEST_SUFFIX!r} "
                "beside it"
            )
    return TableName(found[0] if len(found) == 2 else "", found[-1])


def _part(match: re.Match[str], first: int) -> str:
    in_quotes, plain = match[first], match[first + 1]
    return in_quotes.replace('""', '"') if in_quotes else plain or ""


def new_columns(schema: StructType) -> list[tuple[str, str]]:
    """Return the columns of a new table: (name, type).

    Raises PipelineError for a column that PostgreSQL cannot have.
    """
    found = []
    for field in schema.fields:
        kind = new_type(field.dataType)
        if kind is None:
            raise PipelineError(
                f"The column {field.name} is {field.dataType.simpleString()}, for which PostgreSQL "
                "has no type: cast it in the query, to STRING for example, or leave it out"
            )
        _check_column_name(field.name)
        found.append((field.name, kind))
    return found


def _check_column_name(name: str) -> None:
    if len(name.encode()) > MAX_NAME_BYTES or not name or "\0" in name:
        raise PipelineError(
            f"The column {name!r} has a name that PostgreSQL cannot have: at most "
            f"{MAX_NAME_BYTES} bytes; give it another one with AS"
        )


def compare(
    shown: str, schema: StructType, table: Sequence[TableColumn], schema_changes: str
) -> list[str]:
    """Return the columns of a frame that a table lacks, where `schema_changes` adds them.

    Raises PipelineError: a column that the table lacks, has with another type, or fills itself; a
    column of the table that must have a value and gets none.
    """
    there: Mapping[str, TableColumn] = {column.name: column for column in table}
    missing = []
    for field in schema.fields:
        column, kind = there.get(field.name), field.dataType.simpleString()
        if column is None:
            near = next((name for name in there if name.lower() == field.name.lower()), None)
            if near is not None or schema_changes == "refuse":
                hint = f"it has {near}: give the column that name" if near else (
                    "select the table's columns, or write schema_changes='add'"
                )  # fmt: skip
                raise PipelineError(
                    f"The frame has the column {field.name} ({kind}), which the table {shown} does "
                    f"not have: {hint}"
                )
            missing.append(field.name)
        elif column.refuses:
            raise PipelineError(
                f"The column {field.name} of the table {shown} is always generated by the "
                "database: leave it out of the frame"
            )
        elif not fits(field.dataType, column.kind, is_enum=column.is_enum):
            raise PipelineError(
                f"The column {field.name} is {kind} in the rows and {column.shown} in the table "
                f"{shown}: cast it in the query, or write to a new table"
            )
        elif is_rounded(field.dataType, column.whole):
            raise PipelineError(
                f"The column {field.name} is {kind} in the rows and {column.shown} in the table "
                f"{shown}, which would round its values: cast it in the query, or write to a new "
                "table"
            )
    names = set(schema.names)
    for column in table:
        if column.not_null and not column.filled and column.name not in names:
            raise PipelineError(
                f"The column {column.name} of the table {shown} is NOT NULL and has no default, "
                "and the frame does not have it: select it too, or give it a default"
            )
    return missing


def table_constraints(
    schema: StructType, table: Sequence[TableColumn], keys: Sequence[str] = ()
) -> list[Constraint]:
    """Return what the rows of a frame must fulfil for the columns of the table."""
    kinds = {field.name: field.dataType for field in schema.fields}
    found = rounding_constraints(schema, table)
    for column in table:
        if column.name not in kinds:
            continue
        if column.not_null:
            reason = f"the column {column.name} is null, but NOT NULL"
            condition = f"{quoted(column.name)} IS NOT NULL"
            found.append(Constraint(condition, reason, is_of_row=True))
        if column.length is not None:
            limit = length_constraint(column.name, kinds[column.name], column.length)
            found += [limit] if limit else []
        if column.kind == "character" and column.name in keys:
            found.append(padding_constraint(column.name))
    return found


def rounding_constraints(schema: StructType, table: Sequence[TableColumn]) -> list[Constraint]:
    """Return what the times of a frame must fulfil, which the table would round in silence."""
    kinds = {field.name: field.dataType for field in schema.fields}
    columns = (one for one in table if one.name in kinds)
    found = (rounding_constraint(one.name, kinds[one.name], one.whole) for one in columns)
    return [one for one in found if one is not None]
