"""The SQL of one batch in PostgreSQL. Pure.

A batch is one transaction of the database: its marker, its rows and its deletions become visible
together or not at all.

    ottla_batches, in the schema of the table, one row for each query and table:
        query      the id of Spark's query, '' in the row that gives the table its id
        table_oid  the table; one that was deleted and created again has another
        batch      the last batch of the query that is in the table, -1 in the row of the id
        metadata   `commit_metadata`, or the id of the table
        written_at when

Rows to append come by COPY. Those of a table with keys come by COPY into a temporary table that
ends with the transaction: a killed run leaves nothing behind, and rows of two attempts never meet.
A batch whose marker is there is skipped.

The order of the records of a key is that of `upsert_statement`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ottla.pipelines.sinks.postgresql.column_types import QUOTE
from ottla.pipelines.sinks.postgresql.table import TableName, identifier
from ottla.pipelines.target.keyed_table import IS_DELETED, KeyedTable

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

MARKERS: Final = "ottla_batches"
ROWS: Final = "ottla_rows"
DELETES: Final = "ottla_deletes"
"""The column of the temporary table that is true in a tombstone."""
TEMPORARY: Final = f'pg_temp."{ROWS}"'
FOLDED: Final = "ottla_folded"
"""The temporary table of `folded_rows`."""
BINARY_ORDER: Final = ' COLLATE "C"'
"""Spark compares texts by their bytes."""


def create_markers(name: TableName) -> str:
    """Return the statement that creates the table of markers."""
    return (
        f"CREATE TABLE IF NOT EXISTS {name.sql(MARKERS)} (query text NOT NULL, "
        "table_oid oid NOT NULL, batch bigint NOT NULL, metadata text NOT NULL, "
        "written_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (query, table_oid))"
    )


def create_table(
    name: TableName, columns: Sequence[tuple[str, str]], keys: Sequence[str] = ()
) -> str:
    """Return the statement that creates the table; `keys` become its primary key."""
    parts = [f"{identifier(column)} {kind}" for column, kind in columns]
    if keys:
        parts.append(f"PRIMARY KEY ({listed(keys)})")
    return f"CREATE TABLE IF NOT EXISTS {name.sql()} ({', '.join(parts)})"


def add_columns(name: TableName, columns: Sequence[tuple[str, str]]) -> str:
    """Return the statement that adds columns."""
    parts = ", ".join(f"ADD COLUMN {identifier(column)} {kind}" for column, kind in columns)
    return f"ALTER TABLE {name.sql()} {parts}"


def mark_batch(name: TableName, *, once: bool) -> str:
    """Return the statement that notes a batch, with (query, table's oid, batch, metadata).

    With `once` it changes no row where the table has the batch or a later one. It locks the row:
    a second run on the same query waits for the end of the first one's transaction.
    """
    is_newer = f" WHERE {identifier(MARKERS)}.batch < excluded.batch" if once else ""
    return (
        f"INSERT INTO {name.sql(MARKERS)} AS {identifier(MARKERS)} (query, table_oid, batch, "
        "metadata) VALUES (?, CAST(? AS oid), CAST(? AS bigint), ?) "
        "ON CONFLICT (query, table_oid) DO UPDATE SET batch = excluded.batch, "
        f"metadata = excluded.metadata, written_at = excluded.written_at{is_newer}"
    )


def create_rows(name: TableName, columns: Sequence[str]) -> str:
    """Return the statement that creates the temporary table, with the types of the table."""
    return (
        f"CREATE TEMPORARY TABLE {identifier(ROWS)} ON COMMIT DROP AS SELECT {listed(columns)}, "
        f"CAST(NULL AS boolean) AS {identifier(DELETES)} FROM {name.sql()} WITH NO DATA"
    )


def copy_rows(columns: Sequence[str], *, has_tombstones: bool) -> str:
    """Return the statement that takes the lines of the batch into the temporary table."""
    return _copy(TEMPORARY, [*columns, DELETES] if has_tombstones else columns)


def append_rows(name: TableName, columns: Sequence[str]) -> str:
    """Return the statement that appends the lines of the batch to the table."""
    return _copy(name.sql(), columns)


def _copy(table: str, columns: Sequence[str]) -> str:
    return (
        f"COPY {table} ({listed(columns)}) FROM STDIN "
        f"(FORMAT csv, QUOTE '{QUOTE}', ENCODING 'UTF8')"
    )


def find_unordered(name: TableName, keyed: KeyedTable) -> str | None:
    """Return the query for a key that the table has from another partition, None without need.

    Without `order_by` only the records of one partition have an order. It gives the key as JSON.
    """
    if keyed.order_by is not None or not keyed.position:
        return None
    names = [identifier(name) for name in keyed.position[:-1]]
    moved = " OR ".join(f"t.{name} <> s.{name}" for name in names)
    pairs = ", ".join(f"{text(key)}, s.{identifier(key)}" for key in keyed.keys)
    return (
        f"SELECT CAST(json_build_object({pairs}) AS text) FROM {TEMPORARY} AS s JOIN {name.sql()} "
        f"AS t ON {same_key(keyed)} WHERE {moved} LIMIT 1"
    )


def find_alike(name: TableName, keyed: KeyedTable, folding: Sequence[str]) -> str:
    """Return the query for two keys that Spark tells apart and the table does not, as JSON: one of
    the batch, and one of the table or of the batch.

    `folding`: the columns of the key in which texts of other bytes may be equal.
    """
    differs = " OR ".join(
        f"CAST(t.{name} AS text){BINARY_ORDER} <> CAST(s.{name} AS text){BINARY_ORDER}"
        for name in map(identifier, folding)
    )
    pair = ", ".join(
        "CAST(json_build_object("
        + ", ".join(f"{text(key)}, {rows}.{identifier(key)}" for key in keyed.keys)
        + ") AS text)"
        for rows in ("s", "t")
    )
    both = (
        f"(SELECT {pair} FROM {TEMPORARY} AS s JOIN {of} AS t ON {same_key(keyed)} "
        f"WHERE {differs} LIMIT 1)"
        for of in (name.sql(), TEMPORARY)
    )
    return f"{' UNION ALL '.join(both)} LIMIT 1"


def truncate_rows(name: TableName, keyed: KeyedTable, schema: StructType) -> str:
    """Return the statement that takes the rows away that are older than a truncation.

    Without `order_by` these are all, unless each key has its topic (`has_places`). Its parameter is
    else the places of the truncations, as a JSON array of objects with the columns that order the
    records.
    """
    if not has_places(keyed):
        return f"DELETE FROM {name.sql()}"
    place = f"json_populate_recordset(CAST(NULL AS {name.sql()}), CAST(? AS json)) AS s"
    conditions = []
    if keyed.own_topic is not None:
        topic = identifier(keyed.own_topic)
        conditions.append(f"t.{topic} = s.{topic}")
    if keyed.order_by is not None:
        named = texts(schema)
        older = (
            f"t.{identifier(keyed.order_by)} IS NULL OR "
            f"{_order(keyed, 't', named)} <= {_order(keyed, 's', named)}"
        )
        conditions.append(f"({older})" if conditions else older)
    where = " AND ".join(conditions)
    if keyed.deletes != "mark":
        return f"DELETE FROM {name.sql()} AS t USING {place} WHERE {where}"
    changed = [one for one in keyed.order if one not in keyed.keys]  # a key stays what it is
    order = [f"{identifier(one)} = s.{identifier(one)}" for one in changed]
    marks = ", ".join([f"{identifier(IS_DELETED)} = true", *order])
    return f"UPDATE {name.sql()} AS t SET {marks} FROM {place} WHERE {where}"


def has_places(keyed: KeyedTable) -> bool:
    """Tell whether truncations of a table have places in it; else they take all of its rows."""
    return keyed.order_by is not None or keyed.own_topic is not None


def delete_rows(name: TableName, keyed: KeyedTable, schema: StructType) -> str | None:
    """Return the statement that deletes the rows of tombstones, None where none is deleted.

    `schema` is that of the frame.
    """
    if not keyed.has_tombstones or keyed.deletes == "mark":
        return None
    newer = _is_newer(keyed, "s", schema)
    when = f" AND {newer}" if newer else ""
    return (
        f"DELETE FROM {name.sql()} AS t USING {_source(keyed)} AS s WHERE s.{identifier(DELETES)} "
        f"AND {same_key(keyed)}{when}"
    )


def upsert_rows(
    name: TableName, keyed: KeyedTable, schema: StructType, columns: Sequence[str]
) -> str:
    """Return the statement that inserts the rows of a batch, or updates those of their keys.

    `schema` is that of the frame, `columns` those of the table that the rows have.
    """
    values = {column: identifier(column) for column in columns}
    if keyed.deletes == "mark":
        values[IS_DELETED] = f"coalesce({identifier(DELETES)}, false)"
    where = ""
    if keyed.has_tombstones and keyed.deletes != "mark":
        where = f" WHERE {identifier(DELETES)} IS NOT TRUE"
    others = [column for column in values if column not in keyed.keys]
    changes = ", ".join(f"{identifier(name)} = excluded.{identifier(name)}" for name in others)
    newer = _is_newer(keyed, "excluded", schema)
    when = f" WHERE {newer}" if newer else ""
    update = f"UPDATE SET {changes}{when}" if changes else "NOTHING"
    return (
        f"INSERT INTO {name.sql()} AS t ({listed(list(values))}) SELECT "
        f"{', '.join(values.values())} FROM {_source(keyed)}{where} "
        f"ON CONFLICT ({listed(keyed.keys)}) DO {update}"
    )


def find_left_out(name: TableName, keyed: KeyedTable, schema: StructType) -> str:
    """Return the query for how many keys of a batch the table does not have as they are, with its
    oid twice: without a row, with an older one, or with one that is deleted.

    Only a trigger before each row, of the table or of a partition, leaves a change out: without one
    nothing is compared.
    """
    may_leave_out = (
        "EXISTS (SELECT FROM pg_trigger AS g WHERE (g.tgrelid = CAST(? AS oid) OR g.tgrelid IN "
        "(SELECT p.relid FROM pg_partition_tree(CAST(CAST(? AS oid) AS regclass)) AS p)) AND NOT "
        "g.tgisinternal AND g.tgenabled <> 'D' AND g.tgtype & 3 = 3)"  # before, each row
    )
    is_there = f"EXISTS (SELECT FROM {name.sql()} AS t WHERE {same_key(keyed)}"
    older = _is_older(keyed, texts(schema))
    lacks = f"NOT {is_there})" + (f" OR {is_there} AND {older})" if older else "")
    if keyed.deletes != "mark":
        order = _is_newer(keyed, "s", schema)
        stays = f"{is_there}{f' AND {order}' if order else ''})"
        lacks = f"CASE WHEN s.{identifier(DELETES)} IS TRUE THEN {stays} ELSE {lacks} END"
    return f"SELECT count(*) FROM {_source(keyed)} AS s WHERE {may_leave_out} AND ({lacks})"


def _is_older(keyed: KeyedTable, named: set[str]) -> str:
    """Return the condition that a row of the table was not replaced by that of its key; empty
    where nothing says it."""
    if not keyed.order:
        return ""
    if keyed.order_by is None:
        return " OR ".join(
            f"t.{one} IS DISTINCT FROM s.{one}" for one in map(identifier, keyed.position)
        ).join("()")
    column = f"t.{identifier(keyed.order_by)}"
    return f"({column} IS NULL OR {_order(keyed, 's', named)} > {_order(keyed, 't', named)})"


def _source(keyed: KeyedTable) -> str:
    """Return the temporary table that has one row for each key of the batch."""
    return f"pg_temp.{identifier(FOLDED)}" if keyed.ignore_nulls else TEMPORARY


def _is_newer(keyed: KeyedTable, rows: str, schema: StructType) -> str:
    """Return the condition that a record of the batch replaces the row of its key."""
    if keyed.order_by is None or keyed.ignore_nulls:
        return ""  # with `ignore_nulls` the row of the table is in it
    column = f"t.{identifier(keyed.order_by)}"
    named = texts(schema)
    return f"({column} IS NULL OR {_order(keyed, rows, named)} >= {_order(keyed, 't', named)})"


def _order(keyed: KeyedTable, table: str, texts: set[str]) -> str:
    """Return the place of a row in the order of the records."""
    # The topic of a row is null where the table got that column later.
    later = keyed.position[:-2]
    values = {name: f"{table}.{identifier(name)}" for name in keyed.order}
    values |= {name: f"coalesce({values[name]}, '')" for name in later}
    parts = [f"{value}{BINARY_ORDER if name in texts else ''}" for name, value in values.items()]
    return f"({', '.join(parts)})"


def texts(schema: StructType) -> set[str]:
    """Return the columns that Spark compares by their bytes."""
    return {field.name for field in schema.fields if field.dataType.typeName() == "string"}


def same_key(keyed: KeyedTable) -> str:
    """Return the condition that the rows `t` and `s` have the same key."""
    return " AND ".join(f"t.{identifier(key)} = s.{identifier(key)}" for key in keyed.keys)


def listed(names: Sequence[str]) -> str:
    """Return columns as SQL lists them."""
    return ", ".join(map(identifier, names))


def text(value: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + value.replace("'", "''") + "'"
