"""The SQL of `ignore_nulls` in PostgreSQL: a null of a record keeps what its key had before. Pure.

By the rules of `target.folded_statement`: the rows of the table go into the order of the records of
the batch, each as one more record of its key, and of each column the last value counts that is not
null and came after the last deletion. The result is a temporary table with one row for each key.

A struct is a JSON object in the table, in which a field that is null is missing. Each of its fields
keeps what it had, and so does one that the rows lack.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.pipelines.sinks.postgresql.statements import (
    BINARY_ORDER,
    DELETES,
    FOLDED,
    TEMPORARY,
    listed,
    same_key,
    text,
)
from ottla.pipelines.sinks.postgresql.table import TableName, identifier
from ottla.pipelines.target.folded_statement import fixed
from ottla.pipelines.target.keyed_table import IS_DELETED, KeyedTable, Part

_NEW: Final = "ottla_is_new"
_POINT: Final = "ottla_is_point"
_PLACE: Final = "ottla_place"
_DIED: Final = "ottla_died"
_LAST: Final = "ottla_last"
_COUNTS: Final = f"({_PLACE} > {_DIED} OR ({_POINT} AND {_PLACE} = {_LAST}))"
"""A record counts that came after the last deletion; where that is the last record, it alone."""

_EMPTY: Final = "CAST('{}' AS jsonb)"


def lock_rows(name: TableName, keyed: KeyedTable) -> str:
    """Return the query that locks the rows of the batch's keys until the transaction ends."""
    return (
        f"SELECT count(*) FROM (SELECT 1 FROM {name.sql()} AS t WHERE {_is_touched(keyed)} "
        "FOR UPDATE) AS touched"
    )


def fold_rows(name: TableName, keyed: KeyedTable, kinds: Mapping[str, str], texts: set[str]) -> str:
    """Return the statement that makes the row of each key.

    `kinds`: the type of each column of the table that the rows have. `texts`: the columns that
    Spark compares by their bytes.
    """
    columns = list(kinds)
    keys = listed(keyed.keys)
    deleted = f"coalesce(t.{identifier(IS_DELETED)}, false)" if keyed.deletes == "mark" else "false"
    # Without `order_by` a partition is read in order, and what is in the table was read before.
    order = [f"{identifier(one)}{BINARY_ORDER if one in texts else ''}" for one in keyed.order]
    rank = [_NEW, *order] if keyed.order_by is None else [*order, _NEW]
    by_place = ", ".join(f"{one} NULLS FIRST" for one in rank)
    of_table = ", ".join(f"t.{identifier(one)}" for one in columns)
    folded = ", ".join(
        identifier(one)
        if one in keyed.keys
        else f"{_value(keyed, one, kinds[one])} AS {identifier(one)}"
        for one in columns
    )
    return f"""
CREATE TEMPORARY TABLE {identifier(FOLDED)} ON COMMIT DROP AS
WITH records AS (
  SELECT {listed(columns)}, coalesce({identifier(DELETES)}, false) AS {_POINT}, true AS {_NEW}
  FROM {TEMPORARY}
  UNION ALL
  SELECT {of_table}, {deleted}, false FROM {name.sql()} AS t WHERE {_is_touched(keyed)}
), placed AS (
  SELECT *, row_number() OVER (PARTITION BY {keys} ORDER BY {by_place}) AS {_PLACE} FROM records
), lives AS (
  SELECT *, max({_PLACE}) OVER (PARTITION BY {keys}) AS {_LAST},
    coalesce(max(CASE WHEN {_POINT} THEN {_PLACE} END) OVER (PARTITION BY {keys}), 0) AS {_DIED}
  FROM placed
)
SELECT {folded}, bool_or({_POINT} AND {_PLACE} = {_LAST}) AS {identifier(DELETES)}
FROM lives GROUP BY {keys}"""


def _value(keyed: KeyedTable, name: str, kind: str) -> str:
    column = identifier(name)
    if name in fixed(keyed):
        return f"(array_agg({column} ORDER BY {_PLACE} DESC))[1]"
    parts = keyed.parts_of(name)
    if not parts:
        return _last(column)
    return f"CAST({_object(f'CAST({column} AS jsonb)', parts)} AS {kind})"


def _last(value: str) -> str:
    """Return the last value that counts and is not null."""
    found = f"{value} IS NOT NULL AND {_COUNTS}"
    return f"(array_agg({value} ORDER BY {_PLACE} DESC) FILTER (WHERE {found}))[1]"


def _object(value: str, parts: tuple[Part, ...]) -> str:
    """Return the JSON object whose fields are the last ones; null where there was no object."""
    fields = " || ".join(
        f"CASE WHEN {found} IS NULL THEN {_EMPTY} "
        f"ELSE jsonb_build_object({text(one.name)}, {found}) END"
        for one in parts
        for found in [_field(f"({value} -> {text(one.name)})", one.parts)]
    )
    # Of the row of the table, for the fields that the records of the batch cannot have.
    is_old = f"NOT {_NEW} AND {_COUNTS} AND jsonb_typeof({value}) = 'object'"
    old = f"coalesce((array_agg({value}) FILTER (WHERE {is_old}))[1], {_EMPTY})"
    return f"CASE WHEN count({value}) FILTER (WHERE {_COUNTS}) > 0 THEN {old} || {fields} END"


def _field(value: str, parts: tuple[Part, ...]) -> str:
    given = f"nullif({value}, CAST('null' AS jsonb))"
    return _object(given, parts) if parts else _last(given)


def _is_touched(keyed: KeyedTable) -> str:
    return f"EXISTS (SELECT 1 FROM {TEMPORARY} AS s WHERE {same_key(keyed)})"
