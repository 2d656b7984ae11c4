"""The failures that a Delta table alone has.

Conditions are Delta's own names (delta-error-classes.json). Pure.
"""

from __future__ import annotations

import re
from typing import Final

from ottla.pipelines.failures.known import Found, Known
from ottla.pipelines.failures.table import COMMIT, CONSTRAINT
from ottla.pipelines.failures.words import not_writable, other_commit

_INCOMPATIBLE: Final = r"incompatible (?:data|decimal) types? (.+) and (.+)"


def _other_columns(found: Found) -> str:
    target, message = found.about.target, found.cause.message
    if "artition columns do not match" in message:
        return f"The table {target} is partitioned by other columns than partition_by says"
    table, _, rows = message.partition("Data schema:")
    there = _tree(table.partition("Table schema:")[2])
    extra = [f"{name} {kind}" for name, kind in _tree(rows).items() if name not in there]
    if not extra:
        return f"The rows do not fit the table {target}: {found.cause.plain}"
    count = "a column" if len(extra) == 1 else f"{len(extra)} columns"
    return (
        f"The rows have {count} that the table {target} lacks: {', '.join(extra)}. Leave it out "
        "with select(), or add it to the table: ALTER TABLE ... ADD COLUMNS, or "
        "schema_changes='add'"
    )


def _tree(text: str) -> dict[str, str]:
    """Return the fields of a schema that is printed as a tree, nested ones with dots.

    Delta prints no bar in front of the top level, one in front of the next, and so on.
    """
    path: list[str] = []
    found = {}
    for line in text.splitlines():
        match = re.match(r"([ |]*)-- (.+?): (\w+)", line)
        if match:
            path = [*path[: match[1].count("|")], match[2]]
            found[".".join(path)] = _sql_type(match[3].capitalize() + "Type")
    return found


_SQL_TYPES: Final = {"Integer": "INT", "Long": "BIGINT", "Short": "SMALLINT", "Byte": "TINYINT"}


def _sql_type(name: str) -> str:
    """Return Spark's `IntegerType` as SQL's INT; types with parts stay as Spark prints them."""
    plain = re.fullmatch(r"(\w+)Type", name)
    return _SQL_TYPES.get(plain[1], plain[1].upper()) if plain else name


def _other_type(found: Found) -> str:
    target = found.about.target
    merged = next((c for c in found.causes if c.condition == "DELTA_FAILED_TO_MERGE_FIELDS"), None)
    field = re.search(r"fields '(.+?)' and '", merged.message) if merged else None
    column = f"The column {field[1]}" if field else "A column"
    types = found.search(_INCOMPATIBLE)
    if types is None:
        return f"{column} has another type than in the table {target}: cast it in the query"
    there, here = (_sql_type(name.strip()) for name in types.groups())
    return (
        f"{column} is {here} in the rows and {there} in the table {target}: "
        "cast it in the query, or write to a new table"
    )


def _narrower_type(found: Found) -> str | None:
    """Return which column of a MERGE has got a type that does not hold each value of the rows."""
    match = re.search(r'Cannot up cast (\S+) from "(.+?)" to "(.+?)"', found.cause.message)
    if match is None:
        return None
    column = match[1].rpartition(".")[2].strip("`")
    return (
        f"The column {column} is {match[2]} in the rows and {match[3]} in the table "
        f"{found.about.target}, which does not hold each of its values: cast it in the query, or "
        "write to a new table"
    )


def _check_violated(found: Found) -> str:
    pattern = r"CHECK constraint (.+?) violated by row with values:\s*(.*)"
    match = re.search(pattern, found.cause.message, re.DOTALL)
    values = re.sub(r"\s*\n?\s*- (\w+) : ", r" \1=", match[2]).strip() if match else ""
    name = match[1] if match else found.cause.plain
    return (
        f"The table {found.about.target} refused a row{' with ' + values if values else ''}: CHECK "
        f"constraint {name}. Filter such rows in the query, or drop the constraint"
    )


def _null_refused(found: Found) -> str:
    column = re.search(r"column: (.+?)\.?\s*$", found.cause.message)
    return (
        f"The table {found.about.target} refused a row: the column {column[1] if column else '?'} "
        "is NOT NULL there and null in the row. Filter such rows in the query, or give a default"
    )


FAILURES: Final = (
    Known(_other_columns, condition="_LEGACY_ERROR_TEMP_DELTA_0007|DELTA_SCHEMA_MISMATCH"),
    Known(_other_type, condition="DELTA_FAILED_TO_MERGE_FIELDS"),
    Known(_other_type, text=_INCOMPATIBLE),
    Known(_narrower_type, condition="CANNOT_UP_CAST_DATATYPE"),
    Known(
        "The table {target} was changed while the query ran, and lacks a column of the rows. Start "
        "again to compare its columns",
        text="DELTA_MERGE_UNRESOLVED_EXPRESSION",
    ),
    Known(
        _check_violated,
        condition="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        retry=CONSTRAINT,
    ),
    Known(_null_refused, condition="DELTA_NOT_NULL_CONSTRAINT_VIOLATED", retry=CONSTRAINT),
    Known(
        "The table {target} takes appended rows alone (delta.appendOnly), and a batch with keys "
        "changes rows. ALTER TABLE ... SET TBLPROPERTIES ('delta.appendOnly' = 'false'), or leave "
        "keys out",
        condition="DELTA_CANNOT_MODIFY_APPEND_ONLY",
    ),
    Known(
        "Another run uses the checkpoint {checkpoint}, and one must end. Stop one of them, then "
        "start again: the batches are in the table once",
        condition="DELTA_CONCURRENT_TRANSACTION",
    ),
    Known(
        other_commit,
        kind=r"^io\.delta\.exceptions\.(ConcurrentWrite|MetadataChanged|ProtocolChanged|"
        r"ConcurrentAppend|ConcurrentDeleteRead|ConcurrentDeleteDelete)Exception$|"
        r"\.CommitFailedException$",
        retry=COMMIT,
    ),
    Known(other_commit, kind=r"io\.delta\.exceptions\.\w+Exception|CommitFailedException"),
    Known(not_writable, condition="DELTA_CANNOT_CREATE_LOG_PATH"),
)
