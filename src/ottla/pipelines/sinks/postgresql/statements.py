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
_TEMPORARY: Final = f'pg_temp."{ROWS}"'
_BINARY_ORDER: Final = ' COLLATE "C"'
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
        parts.append(f"PRIMARY KEY ({_listed(keys)})")
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
        f"CREATE TEMPORARY TABLE {identifier(ROWS)} ON COMMIT DROP AS SELECT {_listed(columns)}, "
        f"CAST(NULL AS boolean) AS {identifier(DELETES)} FROM {name.sql()} WITH NO DATA"
    )


def copy_rows(columns: Sequence[str], *, has_tombstones: bool) -> str:
    """Return the statement that takes the lines of the batch into the temporary table."""
    return _copy(_TEMPORARY, [*columns, DELETES] if has_tombstones else columns)


def append_rows(name: TableName, columns: Sequence[str]) -> str:
    """Return the statement that appends the lines of the batch to the table."""
    return _copy(name.sql(), columns)


def _copy(table: str, columns: Sequence[str]) -> str:
    return (
        f"COPY {table} ({_listed(columns)}) FROM STDIN "
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
    pairs = ", ".join(f"{_text(key)}, s.{identifier(key)}" for key in keyed.keys)
    return (
        f"SELECT CAST(json_build_object({pairs}) AS text) FROM {_TEMPORARY} AS s JOIN {name.sql()} "
        f"AS t ON {_same_key(keyed)} WHERE {moved} LIMIT 1"
    )


def delete_rows(name: TableName, keyed: KeyedTable, schema: StructType) -> str | None:
    """Return the statement that deletes the rows of tombstones, None where none is deleted.

    `schema` is that of the frame.
    """
    if not keyed.has_tombstones or keyed.deletes == "mark":
        return None
    newer = _is_newer(keyed, "s", schema)
    when = f" AND {newer}" if newer else ""
    return (
        f"DELETE FROM {name.sql()} AS t USING {_TEMPORARY} AS s WHERE s.{identifier(DELETES)} AND "
        f"{_same_key(keyed)}{when}"
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
        f"INSERT INTO {name.sql()} AS t ({_listed(list(values))}) SELECT "
        f"{', '.join(values.values())} FROM {_TEMPORARY}{where} "
        f"ON CONFLICT ({_listed(keyed.keys)}) DO {update}"
    )


def _is_newer(keyed: KeyedTable, rows: str, schema: StructType) -> str:
    """Return the condition that a record of the batch replaces the row of its key."""
    if keyed.order_by is None:
        return ""
    texts = {field.name for field in schema.fields if field.dataType.typeName() == "string"}
    # The topic of a row is null where the table got that column later.
    later = keyed.position[:-2]
    column = f"t.{identifier(keyed.order_by)}"

    def row(table: str) -> str:
        values = {name: f"{table}.{identifier(name)}" for name in keyed.order}
        values |= {name: f"coalesce({values[name]}, '')" for name in later}
        parts = [
            f"{value}{_BINARY_ORDER if name in texts else ''}" for name, value in values.items()
        ]
        return f"({', '.join(parts)})"

    return f"({column} IS NULL OR {row(rows)} >= {row('t')})"


def _same_key(keyed: KeyedTable) -> str:
    return " AND ".join(f"t.{identifier(key)} = s.{identifier(key)}" for key in keyed.keys)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(identifier, names))


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
