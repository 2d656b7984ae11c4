"""`JdbcSink`: batches into a table of PostgreSQL, one transaction for each.

With `once` the transaction also notes the batch, and a batch that is noted is skipped: one that is
killed before the commit leaves nothing, one that is killed after it is skipped when it is written
again. `postgres_statements` has the statements and the table of these notes.

A table with keys has the last record of each key, by the rules of `upsert_statement`; without keys
rows are appended.
"""

from __future__ import annotations

import contextlib
import json
import logging
import uuid
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.checkpoint.next_batch import Held, Planned, Refuse, decide
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.failures.marks import UNORDERED
from ottla.pipelines.sinks.postgresql import statements
from ottla.pipelines.sinks.postgresql.column_types import copy_line, value_constraints
from ottla.pipelines.sinks.postgresql.failures import FAILURES, NO_CHARACTER
from ottla.pipelines.sinks.postgresql.folded_rows import fold_rows, lock_rows
from ottla.pipelines.sinks.postgresql.refused import (
    Guarded,
    alike,
    check_guarded,
    check_order,
    elsewhere,
    folding_index,
    unlogged,
)
from ottla.pipelines.sinks.postgresql.settings import Database
from ottla.pipelines.sinks.postgresql.table import (
    TableColumn,
    TableName,
    compare,
    identifier,
    new_columns,
    rounding_constraints,
    table_constraints,
)
from ottla.pipelines.spark.jvm.arrow_stream import streamed
from ottla.pipelines.spark.jvm.arrow_texts import chunks_of
from ottla.pipelines.spark.jvm.causes import causes_of
from ottla.pipelines.spark.jvm.compiled import has_compiler
from ottla.pipelines.spark.jvm.computed_once import computes_once
from ottla.pipelines.spark.jvm.jdbc_connection import DRIVER, Connection
from ottla.pipelines.target.commit_metadata import continued_by, latest_of_query
from ottla.pipelines.target.constraints import Constraint, mark
from ottla.pipelines.target.far_ahead import order_constraints, watched
from ottla.pipelines.target.judged_alone import check_judged_alone
from ottla.pipelines.target.keyed_table import TOMBSTONE
from ottla.pipelines.target.port import NO_VERSION, Sink
from ottla.pipelines.target.upsert_statement import last_records, ordered_records

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from ottla.pipelines.target.keyed_table import KeyedTable
    from ottla.pipelines.target.port import Batch
    from ottla.pipelines.target.truncation import Truncation

log: Final = logging.getLogger("ottla.pipelines")

# Those who make a table at the same time wait for each other: CREATE ... IF NOT EXISTS does not.
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtext('ottla'))"
_SCHEMA: Final = "SELECT coalesce(current_schema(), '')"
_SCHEMA_EXISTS: Final = "SELECT 1 FROM pg_namespace WHERE nspname = ?"
_RELATION: Final = """
SELECT c.oid, c.relkind, c.relpersistence = 'u' OR (c.relkind = 'p' AND EXISTS (
  SELECT FROM pg_partition_tree(c.oid) AS p JOIN pg_class AS of_p ON of_p.oid = p.relid
  WHERE of_p.relpersistence = 'u')),
  c.relkind = 'p' AND EXISTS (
  SELECT FROM pg_partition_tree(c.oid) AS p JOIN pg_class AS of_p ON of_p.oid = p.relid
  WHERE of_p.relkind = 'f')
FROM pg_class AS c WHERE c.oid = to_regclass(?)"""
_COLUMNS: Final = """
SELECT a.attname,
  format_type(coalesce(nullif(t.typbasetype, 0), a.atttypid), NULL),
  format_type(a.atttypid, a.atttypmod),
  t.typtype = 'e', a.attnotnull,
  a.atthasdef OR a.attidentity <> '',
  a.attidentity = 'a' OR a.attgenerated <> '',
  CASE WHEN coalesce(nullif(t.typbasetype, 0), a.atttypid)
      IN (CAST('varchar' AS regtype), CAST('bpchar' AS regtype))
    AND CASE WHEN t.typbasetype = 0 THEN a.atttypmod ELSE t.typtypmod END > 4
    THEN CASE WHEN t.typbasetype = 0 THEN a.atttypmod ELSE t.typtypmod END - 4 END,
  format_type(coalesce(nullif(t.typbasetype, 0), a.atttypid),
    CASE WHEN t.typbasetype = 0 THEN a.atttypmod ELSE t.typtypmod END),
  EXISTS (SELECT FROM pg_collation AS c
    WHERE c.oid = a.attcollation AND NOT c.collisdeterministic)
FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
WHERE a.attrelid = CAST(? AS oid) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum"""
_SHAPE: Final = """
SELECT concat_ws(';', row_security_active(t.oid),
  (SELECT string_agg(concat_ws(' ', a.attname, a.atttypid, a.atttypmod), ',' ORDER BY a.attnum)
    FROM pg_attribute AS a WHERE a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped),
  (SELECT string_agg(r.rulename, ',' ORDER BY r.rulename) FROM pg_rewrite AS r
    WHERE r.ev_class = t.oid AND r.is_instead AND r.ev_enabled <> 'D'))
FROM (SELECT CAST(? AS oid) AS oid) AS t"""
"""All that a batch compares with the start: columns and types, rules, and row-level security."""
_UNIQUE: Final = """
SELECT (SELECT json_agg(a.attname) FROM pg_attribute AS a WHERE a.attrelid = i.indrelid
  AND a.attnum = ANY ((CAST(i.indkey AS int2[]))[0:i.indnkeyatts - 1])),
  EXISTS (SELECT FROM unnest(CAST(i.indcollation AS oid[])) AS k JOIN pg_collation AS c ON c.oid = k
    WHERE NOT c.collisdeterministic AND k NOT IN (SELECT a.attcollation FROM pg_attribute AS a
      WHERE a.attrelid = i.indrelid AND a.attnum = ANY (CAST(i.indkey AS int2[])))),
  CAST(CAST(i.indexrelid AS regclass) AS text)
FROM pg_index AS i WHERE i.indrelid = CAST(? AS oid) AND i.indisunique AND i.indisvalid
  AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL"""
_RULE: Final = """
SELECT r.rulename FROM pg_rewrite AS r WHERE r.ev_class = CAST(? AS oid) AND r.is_instead
  AND r.ev_enabled <> 'D' AND r.ev_type IN ('2', '3', '4') ORDER BY r.rulename"""
"""A rule by which UPDATE, INSERT or DELETE does something else. COPY knows no rules."""
_TABLES: Final = ("r", "p")
STREAMED_BYTES: Final = 4_000_000
"""After a batch of so much text the next one is copied while it is computed."""


@dataclass
class JdbcSink(Sink):
    """A table of PostgreSQL as the target of a pipeline's rows.

    `shows_zeros`: as in `copy_line`, for a table of rows that are rejected or late.
    """

    kind = "postgresql"
    called = "PostgreSQL"
    failures = FAILURES
    spark: SparkSession
    database: Database
    table: TableName
    schema: StructType
    schema_changes: str = "refuse"  # or "add"
    keyed: KeyedTable | None = None
    max_ahead: str | None = None
    shows_zeros: bool = False
    _columns: tuple[TableColumn, ...] = field(default=(), init=False, repr=False)
    _shape: str | None = field(default=None, init=False, repr=False)  # of the table, as a text
    _marked: tuple[Constraint, ...] = field(default=(), init=False, repr=False)
    _finds_zeros: bool = field(default=False, init=False, repr=False)
    _copied_bytes: int = field(default=0, init=False, repr=False)  # of the last batch
    _warned_of_left_out: bool = field(default=False, init=False, repr=False)
    _line: tuple[Sequence[str], Column] | None = field(default=None, init=False, repr=False)

    @property
    def name(self) -> str:
        """The name of the table."""
        return self.table.shown

    @property
    def short_name(self) -> str:
        """The name of the table without its schema."""
        return self.table.table

    @property
    def shown(self) -> str:
        """The table and its database."""
        return f"{self.table.shown} in {self.database.shown}"

    @property
    def location(self) -> str:
        """The database and the table."""
        return f"{self.database.shown} {self.table.sql()}"

    def rows(self) -> DataFrame | None:
        """Return what the table holds, None where there is no table.

        Spark's own reader fetches it: its executors connect to the database too.
        """
        with self._connect() as connection:
            if self._oid(connection) is None:
                return None
        properties = self.database.properties() | {"driver": DRIVER}
        return self.spark.read.jdbc(self.database.url, self.table.sql(), properties=properties)

    def rejected(self, schema: StructType) -> JdbcSink:
        """Return the sink of the rows that are rejected: the table `<target>_rejected`."""
        return self._beside("_rejected", schema)

    def late(self, schema: StructType) -> JdbcSink:
        """Return the sink of the rows older than the watermark: the table `<target>_late`."""
        return self._beside("_late", schema)

    def _beside(self, suffix: str, schema: StructType) -> JdbcSink:
        table = self.table.beside(suffix)
        return JdbcSink(self.spark, self.database, table, schema, "add", shows_zeros=True)

    def rejected_hold(self, query_id: str, batch: int) -> bool:
        """Tell whether the rejected rows up to a batch of the query are written."""
        last = replace(self, table=self.table.beside("_rejected")).last_batch(query_id)
        return last is not None and last >= batch

    def check(self) -> list[str]:
        """Compare the frame with the table; return what will change in it, a line for each.

        Raises PipelineError: the target is no table, or the columns do not fit.
        """
        wanted = self._table_schema()
        columns = dict(new_columns(wanted))
        if self.keyed is not None:
            check_order(self.keyed, self.schema, (), self.name)
        with self._connect() as connection:
            self._resolve(connection)
            oid = self._oid(connection)
            if oid is None:
                return []
            table = _columns(connection, oid)
            missing = compare(self.name, wanted, table, self.schema_changes)
            self._check_unique(connection, oid)
            self._check_judged_alone(table)
            self._check_keyed(connection, oid, table)
        return [
            f"The table {self.name} gets the column {name} ({columns[name]})" for name in missing
        ]

    def _resolve(self, connection: Connection) -> None:
        """Complete the name with the connection's schema. Raises PipelineError without one."""
        schema = self.table.schema
        if not schema:
            schema = connection.query(_SCHEMA)[0][0] or ""
        if not schema or not connection.query(_SCHEMA_EXISTS, schema):
            wanted = schema or "the connection's search_path"
            raise PipelineError(
                f"There is no schema {wanted} in {self.database.shown}: create it with CREATE "
                "SCHEMA, or write target='schema.table' with one that exists"
            )
        self.table = replace(self.table, schema=schema)

    def _oid(self, connection: Connection) -> str | None:
        """Return the table's number, None where there is no table. Raises PipelineError."""
        found = connection.query(_RELATION, self.table.sql())
        if not found:
            return None
        oid, kind, is_unlogged, is_elsewhere = found[0]
        if is_unlogged == "t":
            raise PipelineError(unlogged(self.table, self.name))
        if is_elsewhere == "t":
            raise PipelineError(elsewhere(self.name))
        if kind not in _TABLES:
            raise PipelineError(
                f"{self.name} in {self.database.shown} is no table but a view, a sequence or "
                "another relation: choose another target"
            )
        return oid

    def _check_unique(self, connection: Connection, oid: str) -> None:
        if self.keyed is None:
            return
        wanted = set(self.keyed.keys)
        rows = connection.query(_UNIQUE, oid)
        found = [row for row in rows if set(json.loads(row[0] or "[]")) == wanted]
        # An upsert finds its rows by all of them.
        if folds := next((row[2] for row in found if row[1] == "t"), None):
            raise PipelineError(folding_index(self.name, folds))
        if not found:
            listed = ", ".join(map(identifier, self.keyed.keys))
            raise PipelineError(
                f"The table {self.name} has no unique index on {', '.join(self.keyed.keys)}, by "
                f"which an upsert finds its rows: CREATE UNIQUE INDEX ON {self.table.sql()} "
                f"({listed})"
            )

    def _check_keyed(self, connection: Connection, oid: str, table: Sequence[TableColumn]) -> None:
        """Refuse a table into which an upsert would not do what it says. Raises PipelineError."""
        if self.keyed is None:
            return
        check_order(self.keyed, self.schema, table, self.name)
        rule = connection.query(_RULE, oid)
        is_filtered = connection.query("SELECT row_security_active(CAST(? AS oid))", oid)
        found = Guarded(rule[0][0] if rule else None, is_filtered[0][0] == "t")
        check_guarded(self.keyed, found, self.name)

    def _check_judged_alone(self, table: Sequence[TableColumn]) -> None:
        keys = self.keyed.keys if self.keyed else ()
        found = table_constraints(self.schema, table, keys)
        check_judged_alone(self.keyed, found, self.schema, self.name)

    def _table_schema(self) -> StructType:
        """Return the columns that a table of these rows has."""
        return self.schema if self.keyed is None else self.keyed.schema(self.schema)

    def make(self) -> None:
        """Create the table and that of the markers, unless they exist, and give it an id."""
        columns = new_columns(self._table_schema())
        keys = self.keyed.keys if self.keyed else ()
        with self._connect() as connection:
            connection.query(_LOCK)
            self._resolve(connection)
            connection.execute(statements.create_markers(self.table))
            oid = self._oid(connection)
            if oid is None:
                connection.execute(statements.create_table(self.table, columns, keys))
                oid = self._oid(connection)
            else:
                there = {column.name for column in _columns(connection, oid)}
                if missing := [one for one in columns if one[0] not in there]:
                    connection.execute(statements.add_columns(self.table, missing))
            assert oid is not None
            if not self._id_of(connection, oid):
                mark_id = statements.mark_batch(self.table, once=True)
                connection.execute(mark_id, "", oid, "-1", uuid.uuid4().hex)
            self._read_columns(connection, oid)
            connection.commit()

    def _read_columns(self, connection: Connection, oid: str) -> None:
        self._shape = _shape(connection, oid)
        self._columns = _columns(connection, oid)

    def table_id(self) -> str:
        """Return the id that the table got when it was made, empty where there is none."""
        with self._connect() as connection:
            oid = self._oid(connection)
            return self._id_of(connection, oid) if oid else ""

    def _id_of(self, connection: Connection, oid: str) -> str:
        rows = self._markers(connection, oid, "query = ''")
        return str(rows[0][1]) if rows else ""

    def _markers(
        self, connection: Connection, oid: str, where: str, *values: str
    ) -> list[tuple[str | None, ...]]:
        """Return batch, metadata and query of the markers of a table, the newest first."""
        markers = self.table.sql(statements.MARKERS)
        if connection.query("SELECT to_regclass(?)", markers)[0][0] is None:
            return []
        return connection.query(
            f"SELECT batch, metadata, query FROM {markers} WHERE table_oid = CAST(? AS oid) "
            f"AND {where} ORDER BY written_at DESC",
            oid,
            *values,
        )

    def last_batch(self, query_id: str) -> int | None:
        """Return the last batch of a query in the table, None when there is none."""
        with self._connect() as connection:
            oid = self._oid(connection)
            rows = self._markers(connection, oid, "query = ?", query_id) if oid else []
            return int(rows[0][0] or -1) if rows else None

    def held(self, query_id: str) -> Held:
        """Return what the table has of a query, by its marker; rows that somebody deletes are not
        known.

        A database that was set back, such as by its restored backup, has the table's id and lacks
        batches.
        """
        with self._connect() as connection:
            oid = self._oid(connection)
            return self._held(connection, oid, query_id)

    def _held(self, connection: Connection, oid: str | None, query_id: str) -> Held:
        rows = self._markers(connection, oid, "query <> ''") if oid else []
        texts = [metadata or "" for _, metadata, _ in rows]
        newest = latest_of_query(texts, query_id)
        batches = [int(batch) for batch, _, query in rows if query == query_id and batch]
        return Held(
            f"the table {self.name}",
            batches[0] if batches else None,
            None if newest is None else newest.offsets,
            is_complete=True,
            continued_by=continued_by(texts, query_id),
            kept_in="the database",
        )

    def metadata(self) -> Iterable[str]:
        """Return the metadata of the last batch of each query, the newest first."""
        with self._connect() as connection:
            oid = self._oid(connection)
            rows = self._markers(connection, oid, "query <> ''") if oid else []
            return [row[1] or "" for row in rows]

    def constrained(self, frame: DataFrame) -> DataFrame:
        """Mark the rows of a frame that the database refuses; see `constraints.fitting`.

        A CHECK, a foreign key or a trigger is the database's own: it fails the batch.

        The texts of a stream are searched for U+0000 once the database has refused one for it:
        hardly any stream has one, and each row would pay for the search, the mark and the count.
        Nobody starts a batch frame again, so its texts are searched at once.
        """
        self._check_judged_alone(self._columns)
        self._finds_zeros = self._finds_zeros or not frame.isStreaming
        self._marked = found = self._constraints()
        frame = watched(frame, self.max_ahead, self.keyed, self.schema)
        return mark(frame, frame.schema, found) if found else frame

    def changing(self) -> tuple[Constraint, ...]:
        """Return what the times must fulfil that would be rounded."""
        return tuple(rounding_constraints(self.schema, self._columns))

    def has_new_constraints(self) -> bool:
        """Tell whether the table has other constraints than when `constrained` marked the rows, or
        has refused a text since.
        """
        with self._connect() as connection:
            oid = self._oid(connection)
            if oid is not None:
                self._read_columns(connection, oid)
        return self._constraints() != self._marked

    def _constraints(self) -> tuple[Constraint, ...]:
        found: list[Constraint] = []
        for one in self.schema.fields:
            found += value_constraints(one.name, one.dataType, of_texts=self._finds_zeros)
        keys = self.keyed.keys if self.keyed else ()
        found += table_constraints(self.schema, self._columns, keys)
        if self.keyed is not None:
            own = {f"`{name}` IS NOT NULL" for name in self.keyed.keys}
            rest = [one for one in found if one.condition not in own]
            found = list(self.keyed.constrain(rest))
            found += order_constraints(self.max_ahead, self.keyed, self.schema)
        return tuple(found)

    def write(self, frame: DataFrame, batch: Batch) -> int | None:
        """Append or upsert a batch; None when the table has it already."""
        if self.schema_changes == "add" and frame.schema.names != self.schema.names:
            # Rejected rows of several kinds have different columns.
            self.schema, self._line = frame.schema, None
            self.make()
        with self._connect() as connection:
            oid = self._oid(connection)
            if oid is None:
                raise PipelineError(
                    f"The table {self.name} was deleted while the query ran; this batch is not "
                    "written. Use a new checkpoint to write all of it again"
                )
            self._check_kept(connection, oid, batch)
            marked = connection.execute(
                statements.mark_batch(self.table, once=batch.once),
                *(batch.query_id, oid, str(batch.number), batch.metadata),
            )
            if not marked:
                return None
            if self.keyed is None:
                names = self.schema.names
                copy = statements.append_rows(self.table, names)
                left_out = self._copy(connection, copy, frame, names)
            else:
                self._upsert(connection, frame, self.keyed, batch.truncation)
                missing = statements.find_left_out(self.table, self.keyed, self.schema)
                left_out = int(connection.query(missing, oid, oid)[0][0] or 0)
            self._check_shape(connection, oid)
            connection.commit()
        self._warn_of_left_out(batch, left_out)
        return NO_VERSION

    def _warn_of_left_out(self, batch: Batch, count: int) -> None:
        """Say once of a run that a trigger has taken changes out: PostgreSQL does not."""
        if count and not self._warned_of_left_out:
            self._warned_of_left_out = True
            log.warning(
                "%d %s of batch %d did not change the table %s: a trigger of it leaves out "
                "what is inserted, updated or deleted, or puts it elsewhere",
                count,
                "row" if count == 1 else "rows",
                batch.number,
                self.name,
            )

    def _check_shape(self, connection: Connection, oid: str) -> None:
        """Refuse a table whose columns have got types since the start that would change values, as
        PostgreSQL rounds in silence, or that has got what keeps an upsert from rows.

        From the first row on, ALTER TABLE waits for the end of this transaction. Raises
        PipelineError; nothing of the batch is written.
        """
        shape = _shape(connection, oid)
        if shape == self._shape:
            return
        now = _columns(connection, oid)
        compare(self.name, self._table_schema(), now, "refuse")
        self._check_keyed(connection, oid, now)
        marked = rounding_constraints(self.schema, self._columns)
        if any(one not in marked for one in rounding_constraints(self.schema, now)):
            raise PipelineError(
                f"The columns of the table {self.name} were changed while the query ran; this "
                "batch is not written. Start again to compare them"
            )
        self._shape = shape

    def _check_kept(self, connection: Connection, oid: str, batch: Batch) -> None:
        """Check that the table has what this run wrote, and no more: the database may have failed
        over to a replica that lacks the last batches, say. Raises PipelineError.
        """
        planned = Planned(batch.checkpoint, batch.number, batch.begins, "", batch.promised)
        held = self._held(connection, oid, batch.query_id)
        is_there = held.batch is not None and held.batch >= batch.number
        answer = decide(planned, held)
        if isinstance(answer, Refuse) and not is_there:
            raise PipelineError(answer.sentence)

    def _upsert(
        self,
        connection: Connection,
        frame: DataFrame,
        keyed: KeyedTable,
        truncation: Truncation | None,
    ) -> None:
        """Take the last record of each key into the table, by a temporary one.

        With `ignore_nulls` all records are taken into that one, and folded there.
        """
        columns = list(keyed.columns)
        names = [*columns, TOMBSTONE] if keyed.has_tombstones else columns
        connection.execute(statements.create_rows(self.table, columns))
        copy = statements.copy_rows(columns, has_tombstones=keyed.has_tombstones)
        query = ordered_records if keyed.ignore_nulls else last_records
        self._copy(connection, copy, _rows(frame, keyed, query), names)
        self._check_alike(connection, keyed)
        if truncation is not None:
            places = [truncation.orders] if statements.has_places(keyed) else []
            connection.execute(statements.truncate_rows(self.table, keyed, self.schema), *places)
        if (unordered := statements.find_unordered(self.table, keyed)) and (
            found := connection.query(unordered)
        ):
            # In the words of the upsert into Delta, which `failures.sentences` makes a sentence of.
            raise UnorderedKeyError(f"{UNORDERED} {found[0][0]}")
        if keyed.ignore_nulls:
            self._fold(connection, keyed, columns)
        if delete := statements.delete_rows(self.table, keyed, self.schema):
            connection.execute(delete)
        connection.execute(statements.upsert_rows(self.table, keyed, self.schema, columns))

    def _check_alike(self, connection: Connection, keyed: KeyedTable) -> None:
        """Refuse a batch with a key that would replace the row of another one, such as 'A' that of
        'a'. Raises PipelineError; nothing of the batch is written.
        """
        folding = [one.name for one in self._columns if one.folds and one.name in keyed.keys]
        if not folding:
            return
        found = connection.query(statements.find_alike(self.table, keyed, folding))
        if found:
            raise PipelineError(alike(self.name, folding[0], found[0]))

    def _fold(self, connection: Connection, keyed: KeyedTable, columns: Sequence[str]) -> None:
        """Make of the records of the batch, and of the rows of their keys, a row for each key."""
        connection.query(lock_rows(self.table, keyed))
        shown = {one.name: one.kind for one in self._columns}
        kinds = {name: shown.get(name, "jsonb") for name in columns}
        connection.execute(fold_rows(self.table, keyed, kinds, statements.texts(self.schema)))

    def _chunks(self, rows: DataFrame, names: Sequence[str]) -> Generator[Any, None, None]:
        """Return the rows as lines of COPY, with these columns.

        Each part of a column's expression is a call of the JVM: it is made once.
        """
        if self._line is None or self._line[0] != names:
            kinds = {one.name: one.dataType for one in self.schema.fields}
            columns = {name: kinds[name] for name in names}
            self._line = names, copy_line(columns, shows_zeros=self.shows_zeros)
        lines = rows.select(self._line[1])
        # A server and a thread for each batch are for those that take longer than that.
        is_large = (
            self._copied_bytes >= STREAMED_BYTES
            and has_compiler(rows.sparkSession)
            and computes_once(lines)
        )
        yield from streamed(lines) if is_large else chunks_of(lines)

    def _copy(
        self, connection: Connection, statement: str, rows: DataFrame, names: Sequence[str]
    ) -> int:
        """Run a COPY; return how many of the rows are not in its table."""
        from py4j.protocol import Py4JJavaError

        try:
            with contextlib.closing(self._chunks(rows, names)) as chunks:
                copied = connection.copy(statement, chunks)
        except Py4JJavaError as error:
            if any(cause.condition == NO_CHARACTER for cause in causes_of(error)):
                self._finds_zeros = True
            raise
        self._copied_bytes = copied.bytes
        return copied.sent - copied.taken

    def _connect(self) -> Connection:
        return Connection(self.spark, self.database.url, self.database.properties())


class UnorderedKeyError(Exception):
    """A key has records in several partitions, and nothing says which one is the last."""


def _rows(
    frame: DataFrame, keyed: KeyedTable, query: Callable[[KeyedTable, str], str]
) -> DataFrame:
    """Return what a query gives of the records of a batch."""
    view = f"ottla_batch_{uuid.uuid4().hex[:16]}"
    frame.createOrReplaceTempView(view)
    try:
        return frame.sparkSession.sql(query(keyed, view))
    finally:
        frame.sparkSession.catalog.dropTempView(view)


def _shape(connection: Connection, oid: str) -> str | None:
    """Return what a table is made of as one text, which is quick to read."""
    return connection.query(_SHAPE, oid)[0][0]


def _columns(connection: Connection, oid: str) -> tuple[TableColumn, ...]:
    return tuple(
        TableColumn(
            name=row[0] or "",
            kind=row[1] or "",
            shown=row[2] or "",
            is_enum=row[3] == "t",
            not_null=row[4] == "t",
            filled=row[5] == "t",
            refuses=row[6] == "t",
            length=None if row[7] is None else int(row[7]),
            whole=row[8] or "",
            folds=row[9] == "t" or row[1] == "citext",
        )
        for row in connection.query(_COLUMNS, oid)
    )
