"""The MERGE that gives each key its last record, as SQL. Pure.

The order of the records of a key is (`order_by`, topic, partition, offset), as far as there are
these. So the table depends on the records alone: not on where a batch ended, nor on a batch that is
read again. Without `order_by` only the records of one partition have an order, and a key that is
found in a second partition stops the query. So does one that gets two rows of one record, where
nothing orders these.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.pipelines.failures.marks import SEVERAL, SHARED, UNORDERED
from ottla.pipelines.spark.column_names import quoted
from ottla.pipelines.target.folded_statement import folded_rows
from ottla.pipelines.target.keyed_table import (
    IS_DELETED,
    TOMBSTONE,
    KeyedTable,
    listed,
    same_key,
)
from ottla.pipelines.target.truncation import order_of, place_for


def upsert_statement(keyed: KeyedTable, table: str, view: str, place: str | None = None) -> str:
    """Return the statement that merges the rows of a view into a table, as SQL names it.

    `place`: the table is truncated before these rows, all of which are later than it; as SQL, as
    `Truncation.sql` gives it.
    """
    clauses = [*_clauses(keyed)]
    rows = last_records(keyed, view)
    if keyed.ignore_nulls:
        stays = None if place is None else _stays(keyed, "old", place)
        rows = folded_rows(keyed, table, single_rows(keyed, view), stays)
    if place is not None:
        clauses.append(_truncate(keyed, place))
    return "\n".join(
        (
            f"MERGE INTO {table} AS t",
            f"USING ({rows}) AS s",
            f"ON {' AND '.join([same_key(keyed, 't', 's'), *_in_one_partition(keyed)])}",
            *clauses,
        )
    )


def last_records(keyed: KeyedTable, view: str) -> str:
    """Return the query for the last record of each key in a view."""
    columns = listed(_carried(keyed))
    order = [quoted(name) for name in keyed.order]
    row = (
        f"max_by(struct({columns}), {_struct('', order)})"
        if order
        else f"any_value(struct({columns}))"
    )
    if keyed.order_by is None:
        log = _log(keyed)
        in_doubt = f"min({log}) <> max({log})" if keyed.position else "count(*) > 1"
        why = SEVERAL if keyed.is_result else UNORDERED
        row = f"if({in_doubt}, {_stop('', keyed, why)}, {row})"
    keys = listed(keyed.keys)
    rows = single_rows(keyed, view)
    return f"SELECT row.* FROM (SELECT {row} AS row FROM {rows} GROUP BY {keys})"


def single_rows(keyed: KeyedTable, view: str) -> str:
    """Return the rows of a view, of which no two have one key and one position in its order.

    Reading them fails otherwise. A view whose rows are of one record each is returned as it is.
    """
    if not keyed.is_shared:
        return view
    order = listed(keyed.order)
    position = f"struct({order})"
    before = f"lag({position}) OVER (PARTITION BY {listed(keyed.keys)} ORDER BY {order})"
    return (
        f"(SELECT * FROM (SELECT *, {before} <=> {position} AS ottla_is_second FROM {view}) "
        f"WHERE if(ottla_is_second, {_stop('', keyed, SHARED)}, true))"
    )


def ordered_records(keyed: KeyedTable, view: str) -> str:
    """Return the query for all records of a view, which have an order; reading it fails otherwise.

    As `last_records`, for a sink that finds the last of them itself.
    """
    rows = single_rows(keyed, view)
    columns = listed(_carried(keyed))
    if keyed.order_by is not None:
        return f"SELECT {columns} FROM {rows}"
    of_key = f"OVER (PARTITION BY {listed(keyed.keys)})"
    log = _log(keyed)
    in_doubt = (
        f"min({log}) {of_key} <> max({log}) {of_key}"
        if keyed.position
        else f"count(*) {of_key} > 1"
    )
    return (
        f"SELECT {columns} FROM (SELECT *, {in_doubt} AS ottla_in_doubt FROM {rows}) "
        f"WHERE if(ottla_in_doubt, {_stop('', keyed)}, true)"
    )


def _clauses(keyed: KeyedTable) -> Sequence[str]:
    when = f" AND {newer}" if (newer := _is_newer(keyed)) else ""
    values = {quoted(name): f"s.{quoted(name)}" for name in keyed.columns}
    marks = keyed.deletes == "mark"
    if marks:
        values[IS_DELETED] = f"coalesce(s.{TOMBSTONE}, false)"
    update = ", ".join(f"t.{name} = {value}" for name, value in values.items())
    insert = f"({', '.join(values)}) VALUES ({', '.join(values.values())})"
    if marks or not keyed.has_tombstones:
        return (
            f"WHEN MATCHED{when} THEN UPDATE SET {update}",
            f"WHEN NOT MATCHED THEN INSERT {insert}",
        )
    tombstone = f"coalesce(s.{TOMBSTONE}, false)"
    return (
        f"WHEN MATCHED{when} AND {tombstone} THEN DELETE",
        f"WHEN MATCHED{when} THEN UPDATE SET {update}",
        f"WHEN NOT MATCHED AND NOT {tombstone} THEN INSERT {insert}",
    )


def _stays(keyed: KeyedTable, row: str, place: str) -> str:
    """Return the condition that a row of the table is later than a truncation.

    Without `order_by` none is: the table has what was read before. A row of another topic stays.
    """
    place = place_for(keyed, place, row)
    is_other = "" if keyed.own_topic is None else f"{place} IS NULL"
    if keyed.order_by is None:
        return f"({is_other})" if is_other else "false"
    order = order_of(keyed, row)
    is_later = f"({row}.{quoted(keyed.order_by)} IS NOT NULL AND {order} > {place})"
    return f"({is_other} OR {is_later})" if is_other else is_later


def _truncate(keyed: KeyedTable, place: str) -> str:
    """Return the clause for the rows whose keys the batch does not have."""
    stays = _stays(keyed, "t", place)
    if keyed.deletes != "mark":
        return f"WHEN NOT MATCHED BY SOURCE AND NOT {stays} THEN DELETE"
    place = place_for(keyed, place, "t")
    # The order is that of the truncation, as a deletion leaves its own; a key stays what it is.
    order = [
        f"t.{quoted(name)} = {place}.{quoted(name)}"
        for name in keyed.order
        if name not in keyed.keys
    ]
    marks = ", ".join([f"t.{IS_DELETED} = true", *order])
    return f"WHEN NOT MATCHED BY SOURCE AND NOT {stays} THEN UPDATE SET {marks}"


def _in_one_partition(keyed: KeyedTable) -> Sequence[str]:
    """Return the condition that a key has not moved, without which the statement fails.

    Without `order_by` the record of a batch replaces the row of its key: its partition is read in
    order. The offsets do not say so, for a topic that was created again begins at 0.

    The condition is one of the match, not of its update: Delta would have to read and to join all
    columns of the table for a row that a condition of the update might leave as it is.
    """
    if keyed.ignore_nulls or keyed.order_by is not None or not keyed.position:
        return ()  # with `ignore_nulls` the rows of the table are in those of the batch
    # The topic of a row is null where the table got that column later.
    moved = " OR ".join(f"t.{quoted(name)} <> s.{quoted(name)}" for name in keyed.position[:-1])
    return (f"if({moved}, {_stop('s.', keyed)}, true)",)


def _is_newer(keyed: KeyedTable) -> str:
    """Return the condition that the record of a batch replaces the row of its key; empty where it
    does anyway.
    """
    if keyed.ignore_nulls or keyed.order_by is None:
        return ""
    column = quoted(keyed.order_by)
    order = [quoted(name) for name in keyed.order]
    return f"(t.{column} IS NULL OR {_struct('s.', order)} >= {_struct('t.', order)})"


def _log(keyed: KeyedTable) -> str:
    """Return the partition of a record, with its topic where the rows have one."""
    names = [quoted(name) for name in keyed.position[:-1]]
    return _struct("", names) if len(names) > 1 else "".join(names)


def _stop(alias: str, keyed: KeyedTable, why: str = UNORDERED) -> str:
    """Return SQL that fails and names the key."""
    key = ", ".join(f"{alias}{quoted(name)}" for name in keyed.keys)
    return f"raise_error(concat('{why} ', to_json(struct({key}))))"


def _struct(alias: str, names: Sequence[str]) -> str:
    listed = ", ".join(f"{alias}{name}" for name in names)
    return f"struct({listed})"


def _carried(keyed: KeyedTable) -> tuple[str, ...]:
    """Return the columns that the statement needs of the batch."""
    return (*keyed.columns, TOMBSTONE) if keyed.has_tombstones else keyed.columns
