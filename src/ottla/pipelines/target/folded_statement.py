"""The MERGE for `ignore_nulls`, as SQL: a null of a record keeps what its key had before. Pure.

So a row is what all records of its key since its last deletion give together: of each column, and
of each field of a struct, the last value that is not null. The rows of the table go into the order
of the records as one more record of their key: it stands for those before it. A record that comes
late only fills what is still null: the later records had nothing to say there.

A deletion ends what a key has: the records after it begin at nothing.
"""

from __future__ import annotations

from typing import Final

from ottla.pipelines.failures.marks import UNORDERED
from ottla.pipelines.spark.column_names import quoted, text
from ottla.pipelines.target.keyed_table import (
    IS_DELETED,
    TOMBSTONE,
    KeyedTable,
    Part,
    listed,
    same_key,
)

NEW: Final = "ottla_is_new"
POINT: Final = "ottla_is_point"
LIFE: Final = "ottla_life"
"""Columns beside those of the rows: whether a record is of the batch, whether it deletes its key,
and how many deletions there are up to it."""


def folded_rows(keyed: KeyedTable, table: str, rows: str, stays: str | None = None) -> str:
    """Return the query for the row that each key of a batch has by now.

    It has TOMBSTONE where the rows have it. `table`: as SQL names it. `rows`: those of the batch,
    as `upsert_statement.single_rows` gives them; they are read twice. `stays`: the rows `old` of
    the table that still count; None: all.
    """
    keys, columns = listed(keyed.keys), listed(keyed.columns)
    old = ", ".join(f"old.{quoted(name)}" for name in keyed.columns)
    deleted = f"coalesce(old.{IS_DELETED}, false)" if keyed.deletes == "mark" else "false"
    point = f"coalesce({TOMBSTONE}, false)" if keyed.has_tombstones else "false"
    mark = f", {POINT} AS {TOMBSTONE}" if keyed.has_tombstones else ""
    order = [quoted(name) for name in keyed.order]
    # Without `order_by` a partition is read in order, and what is in the table was read before.
    rank = [NEW, *order] if keyed.order_by is None else [*order, NEW]
    by_key = f"PARTITION BY {keys} ORDER BY {', '.join(rank)}"
    and_stays = "" if stays is None else f" AND {stays}"
    filled = ", ".join(
        f"{quoted(name)} AS {quoted(name)}"
        if name in fixed(keyed)
        else filled_column(keyed, name, rank)
        for name in keyed.columns
    )
    return f"""
WITH new AS (
  SELECT {columns}, {point} AS {POINT}, true AS {NEW} FROM {rows}
), touched AS (
  SELECT DISTINCT {keys} FROM new
), old AS (
  SELECT {old}, {deleted} AS {POINT}, false AS {NEW}
  FROM {table} AS old JOIN touched ON {same_key(keyed, "old", "touched")}{and_stays}
), lives AS (
  SELECT *, {_in_order(keyed, by_key)} AS {LIFE}
  FROM (SELECT * FROM new UNION ALL SELECT * FROM old)
), filled AS (
  SELECT {filled}, {POINT},
    row_number() OVER (PARTITION BY {keys} ORDER BY {_descending(rank)}) AS ottla_place FROM lives
)
SELECT {columns}{mark} FROM filled WHERE ottla_place = 1"""


def fixed(keyed: KeyedTable) -> tuple[str, ...]:
    """Return the columns that each record has of its own: its key, its order and its position."""
    return (*keyed.keys, *keyed.order)


def filled_column(keyed: KeyedTable, name: str, rank: list[str]) -> str:
    """Return the last value of a column up to a record in its life that is not null.

    A deletion keeps its own values, and leaves none.
    """
    column = quoted(name)
    span = (
        f"PARTITION BY {listed(keyed.keys)}, {LIFE} ORDER BY {', '.join(rank)} "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    )
    return f"if({POINT}, {column}, {_last(column, keyed.parts_of(name), span)}) AS {column}"


def _last(value: str, parts: tuple[Part, ...], span: str) -> str:
    """Return the last value that is not null; of a struct that of each of its fields."""
    last = f"last(if({POINT}, NULL, {value}), true) OVER ({span})"
    if not parts:
        return last
    fields = ", ".join(
        f"{text(one.name)}, {_last(f'{value}.{quoted(one.name)}', one.parts, span)}"
        for one in parts
    )
    return f"if({last} IS NULL, NULL, named_struct({fields}))"


def _in_order(keyed: KeyedTable, by_key: str) -> str:
    """Return the number of deletions up to a record; reading a key fails that has no order."""
    span = f"{by_key} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    life = f"sum(if({POINT}, 1, 0)) OVER ({span})"
    if keyed.order_by is not None:
        return life
    of_key = f"OVER (PARTITION BY {listed(keyed.keys)})"
    log = f"struct({listed(keyed.position[:-1])})"
    in_doubt = (
        f"min({log}) {of_key} <> max({log}) {of_key}"
        if keyed.position
        else f"sum(if({NEW}, 1, 0)) {of_key} > 1"
    )
    key = ", ".join(map(quoted, keyed.keys))
    stop = f"raise_error(concat('{UNORDERED} ', to_json(struct({key}))))"
    return f"if({in_doubt}, CAST({stop} AS BIGINT), {life})"


def _descending(rank: list[str]) -> str:
    return ", ".join(f"{one} DESC" for one in rank)
