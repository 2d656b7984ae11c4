"""The MERGE for a batch whose records come after all versions of their keys, as SQL. Pure.

It gives the same table as `history_statement`, which takes any batch, and reads less: the new
versions follow from the batch alone, and of the table only the current version of a key ends.

A batch has a late record if a version of its key in the table is at or after it. The last version
of a key is the current one or, after a tombstone, one of no length; so only these are compared. For
a late record two rows of the batch match one row of the table, which a MERGE refuses: it fails with
`OUT_OF_ORDER` before it writes anything.
"""

from __future__ import annotations

from typing import Final

from ottla.pipelines.sinks.delta.history_statement import identity, insert_version, is_tombstone
from ottla.pipelines.spark.column_names import quoted
from ottla.pipelines.target.keyed_table import (
    IS_CURRENT,
    VALID_FROM,
    VALID_TO,
    KeyedTable,
    listed,
    same_key,
)
from ottla.pipelines.target.upsert_statement import single_rows

OUT_OF_ORDER: Final = "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
"""The condition with which the statement fails for a batch that has a late record."""


def in_order_statement(keyed: KeyedTable, location: str, view: str) -> str:
    """Return the statement that adds the rows of a view to the history at a location.

    It reads the view once.
    """
    late = (
        f"(t.{IS_CURRENT} OR t.{VALID_TO} = t.{VALID_FROM}) "
        f"AND struct({_position(keyed, 't.')}) >= struct({_position(keyed, 's.')})"
    )
    return "\n".join(
        (
            f"MERGE INTO delta.{quoted(location)} AS t",
            f"USING ({_new_versions(keyed, view)}) AS s",
            f"ON {same_key(keyed, 't', 's')} AND s.is_first "
            f"AND (s.closes AND t.{IS_CURRENT} OR {late})",
            f"WHEN MATCHED THEN UPDATE SET t.{VALID_TO} = s.{VALID_FROM}, t.{IS_CURRENT} = false",
            f"WHEN NOT MATCHED AND NOT s.closes THEN {insert_version(keyed)}",
        )
    )


def _new_versions(keyed: KeyedTable, view: str) -> str:
    """Return the query for the versions of a batch; the first of a key is there once more, without
    its columns, to close the one before it.
    """
    assert keyed.order_by is not None
    keys, position = listed(keyed.keys), _position(keyed)
    by_key = f"PARTITION BY {keys} ORDER BY {position}"
    return f"""
WITH new AS (
  SELECT {keys}, {quoted(keyed.order_by)} AS {VALID_FROM}, {listed(keyed.position)},
    {is_tombstone(keyed)} AS is_point, struct({listed(keyed.columns)}) AS row
  FROM {single_rows(keyed, view)}
), numbered AS (
  SELECT *, lag(struct({position})) OVER ({by_key}) AS before FROM new
), placed AS (
  SELECT *, before IS NULL AS is_first, lead({VALID_FROM}) OVER ({by_key}) AS until
  FROM numbered WHERE NOT before <=> struct({position})
), dated AS (
  SELECT *, explode(if(is_first, array(true, false), array(false))) AS closes FROM placed
)
SELECT {keys}, {position}, is_first, closes, if(is_point, {VALID_FROM}, until) AS {VALID_TO},
  until IS NULL AND NOT is_point AS {IS_CURRENT}, if(closes, NULL, row) AS row
FROM dated"""


def _position(keyed: KeyedTable, alias: str = "") -> str:
    return ", ".join(f"{alias}{name}" for name in identity(keyed))
