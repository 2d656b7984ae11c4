"""The MERGE that keeps every version of a key, as SQL. Pure.

Each record is one row: a version, valid from its `order_by` until that of the next version of its
key, and current when there is none. A tombstone is a version of no length (`valid_to` equals
`valid_from`), which closes the one before it. The versions of a key are ordered by (`order_by`,
topic, partition, offset), and so the table depends on the records alone: a record that comes late
finds its position, and one that comes twice is found by it and ignored.

One statement closes and opens: its source has the new versions of the batch, and of the table the
versions whose end they change.
"""

from __future__ import annotations

from ottla.pipelines.spark.column_names import quoted
from ottla.pipelines.target.keyed_table import (
    IS_CURRENT,
    TOMBSTONE,
    VALID_FROM,
    VALID_TO,
    KeyedTable,
    listed,
    same_key,
)
from ottla.pipelines.target.upsert_statement import single_rows


def history_statement(keyed: KeyedTable, location: str, view: str) -> str:
    """Return the statement that merges the rows of a view into the history at a location.

    It reads the view twice.
    """
    table = f"delta.{quoted(location)}"
    # The topic of a version is null where the table got that column later.
    same = ["=", *("<=>" for _ in keyed.position[:-2]), "=", "="]
    on = [
        same_key(keyed, "t", "s"),
        *(f"t.{name} {is_} s.{name}" for name, is_ in zip(identity(keyed), same, strict=True)),
    ]
    return "\n".join(
        (
            f"MERGE INTO {table} AS t",
            f"USING ({changed_versions(keyed, table, view)}) AS s",
            f"ON {' AND '.join(on)}",
            f"WHEN MATCHED THEN UPDATE SET t.{VALID_TO} = s.{VALID_TO}, "
            f"t.{IS_CURRENT} = s.{IS_CURRENT}",
            f"WHEN NOT MATCHED THEN {insert_version(keyed)}",
        )
    )


def changed_versions(keyed: KeyedTable, table: str, view: str) -> str:
    """Return the query for the versions of a batch, and those of the table that they change.

    Of the table it reads the versions that are valid after the first new version of their key.
    """
    assert keyed.order_by is not None
    keys = listed(keyed.keys)
    order = quoted(keyed.order_by)
    old_keys = ", ".join(f"old.{quoted(key)}" for key in keyed.keys)
    position = ", ".join(identity(keyed))
    of_record = listed(keyed.position)
    old_record = ", ".join(f"old.{quoted(name)}" for name in keyed.position)
    by_key = f"PARTITION BY {keys} ORDER BY {position}"
    row = f"struct({listed(keyed.columns)})"
    return f"""
WITH new AS (
  SELECT {keys}, {order} AS {VALID_FROM}, {of_record}, true AS is_new,
    {is_tombstone(keyed)} AS is_point, {row} AS row FROM {single_rows(keyed, view)}
), first AS (
  SELECT {keys}, min({VALID_FROM}) AS since FROM new GROUP BY {keys}
), old AS (
  SELECT {old_keys}, old.{VALID_FROM}, {old_record}, false AS is_new,
    coalesce(old.{VALID_TO} = old.{VALID_FROM}, false) AS is_point, old.{VALID_TO} AS ended,
    old.{IS_CURRENT} AS was_current
  FROM {table} AS old JOIN first ON {same_key(keyed, "old", "first")}
    AND (old.{VALID_TO} IS NULL OR old.{VALID_TO} >= first.since)
), versions AS (
  SELECT *, lag(struct({position})) OVER ({by_key}, is_new) <=> struct({position}) AS is_twice
  FROM (
    SELECT {keys}, {position}, is_new, is_point, NULL AS ended, NULL AS was_current, row FROM new
    UNION ALL
    SELECT {keys}, {position}, is_new, is_point, ended, was_current, NULL AS row FROM old)
), placed AS (
  SELECT *, lead({VALID_FROM}) OVER ({by_key}) AS until FROM versions WHERE NOT is_twice
), dated AS (
  SELECT {keys}, {position}, is_new, ended, was_current, row,
    if(is_point, {VALID_FROM}, until) AS {VALID_TO}, until IS NULL AND NOT is_point AS {IS_CURRENT}
  FROM placed
)
SELECT {keys}, {position}, {VALID_TO}, {IS_CURRENT}, row FROM dated
WHERE is_new OR NOT ended <=> {VALID_TO} OR NOT was_current <=> {IS_CURRENT}"""


def identity(keyed: KeyedTable) -> tuple[str, ...]:
    """Return what tells the versions of a key apart, and orders them, as SQL."""
    return (VALID_FROM, *map(quoted, keyed.position))


def insert_version(keyed: KeyedTable) -> str:
    """Return the INSERT of a MERGE for a new version, whose columns are in `row`."""
    values = {quoted(name): f"s.row.{quoted(name)}" for name in keyed.columns}
    values |= {name: f"s.{name}" for name in (VALID_FROM, VALID_TO, IS_CURRENT)}
    return f"INSERT ({', '.join(values)}) VALUES ({', '.join(values.values())})"


def is_tombstone(keyed: KeyedTable) -> str:
    """Return the condition that a row of the batch is a tombstone."""
    return f"coalesce({TOMBSTONE}, false)" if keyed.has_tombstones else "false"
