"""The MERGE of a history with `track` or `ignore_nulls`, as SQL. Pure.

With `track` a record makes a new version only where one of these columns has another value than in
the record before it, or where that was a deletion. All records between two versions are one: it is
valid from the first of them, and its other columns are those of the last, the position and
`order_by` among them. With `ignore_nulls` a null of a record is what its key had before.

The statement takes of the table the versions that are valid after the first new record of a key,
each as its first and its last record, puts the new records between them, and makes the versions
again. Versions that differ are updated, and those that have become a part of another are deleted.

A record that comes twice is found by its position, or makes no version of its own. One that comes
late, and between two records that made no version, ends where the last of these is: the table does
not have those before. The version that it cuts off has no position then, and the last values.
"""

from __future__ import annotations

from typing import Final

from ottla.pipelines.sinks.delta.history_statement import is_tombstone
from ottla.pipelines.spark.column_names import quoted
from ottla.pipelines.target.folded_statement import LIFE, NEW, POINT, filled_column, fixed
from ottla.pipelines.target.keyed_table import (
    IS_CURRENT,
    VALID_FROM,
    VALID_TO,
    KeyedTable,
    Part,
    listed,
    same_key,
)
from ottla.pipelines.target.upsert_statement import single_rows

_AT: Final = "ottla_at"
_VERSION: Final = "ottla_version"
_FIRST: Final = "ottla_is_first"


def tracked_statement(keyed: KeyedTable, location: str, view: str) -> str:
    """Return the statement that merges the rows of a view into the history at a location.

    It reads the view twice.
    """
    table = f"delta.{quoted(location)}"
    values = {quoted(name): f"s.row.{quoted(name)}" for name in keyed.columns}
    values |= {name: f"s.{name}" for name in (VALID_FROM, VALID_TO, IS_CURRENT)}
    same = [
        *(f"t.{quoted(key)} = s.row.{quoted(key)}" for key in keyed.keys),
        f"t.{VALID_FROM} = s.replaced.{VALID_FROM}",
        *(f"t.{quoted(name)} <=> s.replaced.row.{quoted(name)}" for name in keyed.order),
    ]
    changes = ", ".join(f"t.{name} = {value}" for name, value in values.items())
    return "\n".join(
        (
            f"MERGE INTO {table} AS t",
            f"USING ({_changes(keyed, table, view)}) AS s",
            f"ON s.replaced IS NOT NULL AND {' AND '.join(same)}",
            "WHEN MATCHED AND s.goes THEN DELETE",
            f"WHEN MATCHED THEN UPDATE SET {changes}",
            "WHEN NOT MATCHED AND s.replaced IS NULL THEN INSERT "
            f"({', '.join(values)}) VALUES ({', '.join(values.values())})",
        )
    )


def _changes(keyed: KeyedTable, table: str, view: str) -> str:
    """Return the query for the versions that change: `replaced` is the one in the table, null for a
    new one; one that `goes` has become a part of another.
    """
    assert keyed.order_by is not None
    keys, columns, order = listed(keyed.keys), listed(keyed.columns), quoted(keyed.order_by)
    old = ", ".join(f"old.{quoted(name)}" for name in keyed.columns)
    places = [f"ottla_p{number}" for number in range(len(keyed.position))]
    rank = [_AT, *places, NEW]
    by_key = f"PARTITION BY {keys} ORDER BY {', '.join(rank)}"
    so_far = f"OVER ({by_key} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    place = ", ".join(
        f"{quoted(name)} AS {as_}" for name, as_ in zip(keyed.position, places, strict=True)
    )
    # Of the first record of a version the table knows when it was, and no more.
    of_first = {quoted(keyed.order_by): VALID_FROM} | dict.fromkeys(
        map(quoted, keyed.position), "NULL"
    )
    ends = ", ".join(
        f"if({_FIRST}, {of_first[name]}, {name}) AS {name}" if name in of_first else name
        for name in map(quoted, keyed.columns)
    )
    # A version of one record needs no first one beside the last.
    firsts = f"if({order} > {VALID_FROM}, array(true, false), array(false))"
    position = ", ".join(rank[:-1])
    row = f"struct({columns})"
    own = fixed(keyed)
    filled = ", ".join(
        filled_column(keyed, name, rank) if keyed.ignore_nulls and name not in own else quoted(name)
        for name in keyed.columns
    )
    tracked = f"struct({listed(keyed.track)})"
    starts = "true"
    if keyed.track:
        starts = (
            f"{POINT} OR coalesce(lag({POINT}) OVER ({by_key}), true) "
            f"OR NOT lag({tracked}) OVER ({by_key}) <=> {tracked}"
        )
    return f"""
WITH new AS (
  SELECT {columns}, {is_tombstone(keyed)} AS {POINT} FROM {single_rows(keyed, view)}
), first AS (
  SELECT {keys}, min({order}) AS since FROM new GROUP BY {keys}
), old AS (
  SELECT {old}, old.{VALID_FROM}, old.{VALID_TO}, old.{IS_CURRENT},
    coalesce(old.{VALID_TO} = old.{VALID_FROM} AND NOT old.{IS_CURRENT}
      AND old.{order} = old.{VALID_FROM}, false) AS {POINT}
  FROM {table} AS old JOIN first ON {same_key(keyed, "old", "first")}
    AND (old.{VALID_TO} IS NULL OR old.{VALID_TO} >= first.since)
), ends AS (
  SELECT {ends}, {VALID_FROM}, {VALID_TO}, {IS_CURRENT}, {POINT}, {_FIRST}
  FROM (SELECT *, explode({firsts if keyed.track else "array(false)"}) AS {_FIRST} FROM old)
), records AS (
  SELECT {columns}, {order} AS {_AT}, {place}, true AS {NEW}, {POINT},
    NULL AS {_VERSION} FROM new
  UNION ALL
  SELECT {columns}, {order} AS {_AT}, {place}, false AS {NEW}, {POINT},
    if({_FIRST}, NULL, struct({VALID_FROM}, {VALID_TO}, {IS_CURRENT}, {row} AS row))
      AS {_VERSION} FROM ends
), once AS (
  SELECT *, lag(struct({position})) OVER ({by_key}) <=> struct({position}) AS ottla_is_twice
  FROM records
), lives AS (
  SELECT *, sum(if({POINT}, 1, 0)) {so_far} AS {LIFE} FROM once WHERE NOT ottla_is_twice
), filled AS (
  SELECT {filled}, {", ".join(rank)}, {POINT}, {_VERSION} FROM lives
), begun AS (
  SELECT *, {starts} AS ottla_starts FROM filled
), numbered AS (
  SELECT *, sum(if(ottla_starts, 1, 0)) {so_far} AS ottla_number FROM begun
), versions AS (
  SELECT {keys}, ottla_number, min({_AT}) AS {VALID_FROM}, bool_or({POINT}) AS {POINT},
    max_by({row}, struct({", ".join(rank)})) AS row,
    max_by({_is_as_before(keyed)}, struct({", ".join(rank)})) AS is_as_before,
    max_by({_VERSION}, struct({", ".join(rank)})) AS before, collect_list({_VERSION}) AS replaced
  FROM numbered GROUP BY {keys}, ottla_number
), dated AS (
  SELECT *, lead({VALID_FROM}) OVER (PARTITION BY {keys} ORDER BY ottla_number) AS until
  FROM versions
), ended AS (
  SELECT *, if({POINT}, {VALID_FROM}, until) AS {VALID_TO},
    until IS NULL AND NOT {POINT} AS {IS_CURRENT} FROM dated
), changed AS (
  SELECT * FROM ended WHERE NOT coalesce(is_as_before AND before.{VALID_FROM} = {VALID_FROM}
    AND before.{VALID_TO} <=> {VALID_TO} AND before.{IS_CURRENT} = {IS_CURRENT}, false)
)
SELECT coalesce(place, 0) > 0 AS goes, one AS replaced, {VALID_FROM}, {VALID_TO}, {IS_CURRENT}, row
FROM changed LATERAL VIEW OUTER posexplode(replaced) AS place, one"""


def _is_as_before(keyed: KeyedTable) -> str:
    """Return whether a record is the last one of a version, and none of its nulls was filled."""
    own = fixed(keyed)
    names = [name for name in keyed.columns if keyed.ignore_nulls and name not in own]
    same = [
        one
        for name in names
        for one in _keeps(quoted(name), f"{_VERSION}.row.{quoted(name)}", keyed.parts_of(name))
    ]
    return " AND ".join([f"{_VERSION} IS NOT NULL", *same])


def _keeps(value: str, before: str, parts: tuple[Part, ...]) -> list[str]:
    """Return the conditions that no null of a value was filled, with those of its fields."""
    found = [f"({value} IS NULL OR {before} IS NOT NULL)"]
    for one in parts:
        name = quoted(one.name)
        found += _keeps(f"{value}.{name}", f"{before}.{name}", one.parts)
    return found
