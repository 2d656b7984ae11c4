"""`IcebergSink`: batches into a table of Apache Iceberg, one snapshot for each.

The summary of the snapshot says which batch of which query it is and where that ends, so both are
there or neither. Iceberg itself compares nothing: before a batch is written the sink looks for it
in the snapshots whose rows are in the table. A batch that is killed before its commit leaves files
that no snapshot refers to; one that is killed after it is found there, and skipped.

A batch is appended, or merged where the table has keys (`keyed_table`).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from ottla.pipelines.checkpoint.next_batch import Held, Planned, Refuse, decide
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.sinks.iceberg.failures import FAILURES
from ottla.pipelines.sinks.iceberg.jvm import MARK, LoadedTable, committing
from ottla.pipelines.sinks.iceberg.table import (
    add_columns,
    can_widen,
    check_published,
    create,
    in_sql,
    load,
    require_catalog,
    set_written,
    widen_column,
)
from ottla.pipelines.spark.jvm.files import Files
from ottla.pipelines.spark.jvm.sessions import is_same
from ottla.pipelines.spark.session_settings import KEEPS_VALUES, settings_of
from ottla.pipelines.target.changed_columns import (
    changed_columns,
    check_partition_by,
    check_partitioned,
)
from ottla.pipelines.target.commit_metadata import (
    continued_by,
    latest_of_query,
    latest_two_of_query,
    read_metadata,
)
from ottla.pipelines.target.constraints import Constraint, mark, read_constraints
from ottla.pipelines.target.far_ahead import order_constraints, watched
from ottla.pipelines.target.judged_alone import check_judged_alone
from ottla.pipelines.target.keyed_table import check_kind, harm
from ottla.pipelines.target.narrower_types import added_columns, exact_casts
from ottla.pipelines.target.port import NO_VERSION, Sink
from ottla.pipelines.target.upsert_statement import upsert_statement
from ottla.pipelines.target.written import check_written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

    from ottla.pipelines.sinks.iceberg.jvm import Snapshot
    from ottla.pipelines.target.changed_columns import ChangedColumns
    from ottla.pipelines.target.keyed_table import KeyedTable
    from ottla.pipelines.target.port import Batch

MAX_CLOCKS_APART_MS: Final = 60_000
"""How far the clocks of those that commit are apart at most: Iceberg assumes a minute, too."""


@dataclass
class IcebergSink(Sink):
    """A table of an Iceberg catalog as the target of a pipeline's rows."""

    kind = "iceberg"
    called = "Iceberg"
    failures = FAILURES
    spark: SparkSession
    table: str
    schema: StructType
    schema_changes: str = "refuse"  # or "add"
    partition_by: tuple[str, ...] = ()
    keyed: KeyedTable | None = None
    max_ahead: str | None = None
    _constraints: tuple[Constraint, ...] = field(default=(), init=False, repr=False)
    _missing: dict[str, str] = field(default_factory=dict, init=False, repr=False)
    _casts: dict[str, DataType] = field(default_factory=dict, init=False, repr=False)
    _last: int | None = field(default=None, init=False, repr=False)
    # Of each query: its last batch when the start looked; its snapshot may have expired since.
    _seen: dict[str, int] = field(default_factory=dict, init=False, repr=False)

    @property
    def name(self) -> str:
        """The name of the table, with its catalog."""
        return self.table

    @property
    def shown(self) -> str:
        """The name of the table, with its catalog."""
        return self.table

    @property
    def short_name(self) -> str:
        """The last part of the name."""
        return self.table.rpartition(".")[2]

    @property
    def location(self) -> str:
        """The name of the table: one that is dropped lies in no folder."""
        return self.table

    @property
    def folders(self) -> tuple[str, ...]:
        """The table's folder; none where there is no table yet."""
        table = self._loaded()
        if table is None:
            return ()
        has_scheme = "://" in table.location
        return (table.location if has_scheme else Files(self.spark, table.location).location,)

    def rows(self) -> DataFrame | None:
        """Return what the table holds, None where there is no table."""
        return self.spark.table(in_sql(self.table)) if self._loaded() else None

    def rejected(self, schema: StructType) -> IcebergSink:
        """Return the sink of the rows that are rejected: the table `<target>_rejected`."""
        return IcebergSink(self.spark, f"{self.table}_rejected", schema, "add")

    def rejected_hold(self, query_id: str, batch: int) -> bool:
        """Tell whether the rejected rows up to a batch of the query are written."""
        last = self.rejected(self.schema).held(query_id).batch
        return last is not None and last >= batch

    def late(self, schema: StructType) -> IcebergSink:
        """Return the sink of the rows older than the watermark: the table `<target>_late`."""
        return IcebergSink(self.spark, f"{self.table}_late", schema, "add")

    def forget(self) -> None:
        """Drop what the catalog remembers of the table."""
        from pyspark.errors import AnalysisException

        try:
            self.spark.catalog.refreshTable(in_sql(self.table))
        except AnalysisException:
            return  # there is no table

    def _loaded(self) -> LoadedTable | None:
        """Return the table as it is now, None where there is none."""
        require_catalog(self.spark, self.table)
        table = load(self.spark, self.table)
        if table is not None:
            table.refresh()
        return table

    def table_id(self) -> str:
        """Return Iceberg's id of the table, empty where there is no table."""
        table = self._loaded()
        return "" if table is None else table.uuid

    def check(self) -> list[str]:
        """Compare the frame with the table; return what will change in it, a line for each.

        Raises PipelineError: there is no such catalog, the name is that of something else, or the
        columns do not fit.
        """
        schema = self._table_schema()
        check_partition_by(self.partition_by, schema)
        table = self._loaded()
        if table is None:
            return []
        check_published(self.spark, self.table, table)
        check_partitioned(self.partition_by, table.partition_columns, self.name)
        there = self._schema_there()
        check_kind(self.keyed, self.name, self.schema, there)
        check_judged_alone(self.keyed, read_constraints({}, there), self.schema, self.name)
        return self._compare(there).lines(self.name)

    def _table_schema(self) -> StructType:
        """Return the columns that a table of these rows has."""
        return self.schema if self.keyed is None else self.keyed.schema(self.schema)

    def _schema_there(self) -> StructType:
        """Return the columns of the table that is there."""
        return self.spark.table(in_sql(self.table)).schema

    def _compare(self, there: StructType) -> ChangedColumns:
        """Return the columns that the rows change. Raises PipelineError for those that do not
        fit.
        """
        rows = self._table_schema()
        changed = changed_columns(
            rows,
            there,
            self.name,
            adds=self.schema_changes == "add",
            can_widen=can_widen,
            could_widen=can_widen,
            to_widen="schema_changes='add'",
        )
        for name, _ in added_columns(there, rows):
            if "." in name:
                raise PipelineError(
                    f"The table {self.name} has the column {name}, which the rows lack, and Spark "
                    "writes no part of a column to Iceberg: add it in the query"
                )
        return changed

    def make(self) -> None:
        """Create the table, empty, unless it exists; add and widen columns.

        Raises PipelineError.
        """
        schema = self._table_schema()
        table = self._loaded()
        if table is None or not table.is_written:
            if table is None:
                create(self.spark, self.table, schema, self.partition_by)
            set_written(self.spark, self.table)
        if table is not None:
            added, widened = self._compare(self._schema_there())
            if added:
                add_columns(self.spark, self.table, added)
            for name, _, kind in widened:
                widen_column(self.spark, self.table, name, kind)
        self._casts = exact_casts(self.schema, self._schema_there())
        known = {name.lower() for name in schema.names}
        self._missing = {
            one.name: one.dataType.simpleString()
            for one in self._schema_there().fields
            if one.name.lower() not in known
        }

    def constrained(self, frame: DataFrame) -> DataFrame:
        """Mark the rows of a frame that the table refuses; see `constraints.fitting`."""
        there = self._schema_there()
        check_judged_alone(self.keyed, read_constraints({}, there), self.schema, self.name)
        self._constraints = found = self._read_constraints()
        frame = watched(frame, self.max_ahead, self.keyed, self.schema)
        return mark(frame, there, found) if found else frame

    def has_new_constraints(self) -> bool:
        """Tell whether the table has other constraints than when `constrained` marked the rows."""
        return self._read_constraints() != self._constraints

    def _read_constraints(self) -> tuple[Constraint, ...]:
        """Return what Iceberg has of constraints: NOT NULL."""
        found = read_constraints({}, self._schema_there())
        if self.keyed is None:
            return found
        of_order = order_constraints(self.max_ahead, self.keyed, self.schema)
        return (*self.keyed.constrain(found), *of_order)

    def held(self, query_id: str) -> Held:
        """Return what the table has of a query, by the snapshots whose rows are in it.

        It is complete where a snapshot of the query is found, or the table's first one: a table
        that expires its snapshots may have neither.
        """
        table = self._loaded()
        if table is None:
            return Held(f"the table {self.name}")
        held = self._held(table, query_id)
        if held.batch is not None:
            self._seen[query_id] = held.batch
        return held

    def _held(self, table: LoadedTable, query_id: str) -> Held:
        there = list(table.ancestors())
        texts = [one.metadata for one in there]
        newest, before = latest_two_of_query(texts, query_id)
        is_cut = _is_cut(there)
        gone = [read_metadata(one.metadata) for one in table.set_aside(there)]
        return Held(
            f"the table {self.name}",
            None if newest is None else newest.batch,
            None if newest is None else newest.offsets,
            is_complete=newest is not None or not is_cut,
            taken_out=tuple(one.batch for one in gone if one and one.query_id == query_id),
            taken_out_by="a rollback",
            continued_by=continued_by(texts, query_id),
            since_ms=there[-1].committed_ms + MAX_CLOCKS_APART_MS if is_cut else None,
            forgets=_forgets(there),
            is_twice=newest is not None and before is not None and newest.batch == before.batch,
        )

    def forgets(self) -> str:
        """Return that snapshots have expired since a pipeline began to write to the table."""
        table = self._loaded()
        there = list(table.ancestors()) if table is not None and table.is_written else []
        return _forgets(there)

    def newest_commit(self) -> str:
        """Return the id of the latest snapshot, empty in a table without any."""
        table = self._loaded()
        found = None if table is None else table.current_id()
        return "" if found is None else str(found)

    def knows_since(self, commit: str) -> bool:
        """Tell whether all snapshots after one are known: none has expired, and it is there."""
        table = self._loaded()
        return table is not None and table.since(int(commit) if commit else None) is not None

    def metadata(self) -> Iterable[str]:
        """Return the metadata of the snapshots that are in the table, the newest first."""
        table = self._loaded()
        return () if table is None else (one.metadata for one in table.ancestors())

    def version_of(self, query_id: str, batch: int) -> int | None:
        """Return the number of the commit that holds a batch, None when none is found."""
        table = self._loaded()
        for one in () if table is None else table.ancestors():
            found = read_metadata(one.metadata)
            if found and (found.query_id, found.batch) == (query_id, batch):
                return one.sequence or None
        return None

    def write(self, frame: DataFrame, batch: Batch) -> int | None:
        """Append or merge a batch; None when the table has it already."""
        if self.schema_changes == "add" and frame.schema.names != self.schema.names:
            # Rejected rows of several kinds have different columns.
            self.schema = frame.schema
            self.make()
        session = frame.sparkSession
        table = LoadedTable(session, self.table)
        table.refresh()
        check_published(session, self.table, table)
        before = table.current_id()
        # At-least-once may write a batch twice, and must not bring back the rows of an older one.
        once = batch.once or self.keyed is not None
        if once and self._has(table, batch):
            return None
        # A frame that is no stream has the user's own session, and was compared just before.
        is_own = not is_same(session, self.spark)
        with settings_of(session, KEEPS_VALUES if is_own else {}):
            self._write(frame, batch, is_sampled=table.is_sampled(session))
        return self._find_written(batch, before, once=once)

    def _write(self, frame: DataFrame, batch: Batch, *, is_sampled: bool) -> None:
        if self._casts:
            frame = frame.withColumns(
                {name: frame[name].cast(kind) for name, kind in self._casts.items()}
            )
        if self.keyed is not None:
            self._merge(frame, self.keyed, batch)
            return
        rows = frame
        if self._missing:
            rows = frame.selectExpr("*", *(_null(*one) for one in self._missing.items()))
        # What is counted in a batch is counted each time that its rows are computed.
        kept = rows.persist() if is_sampled else rows
        try:
            writer = kept.writeTo(in_sql(self.table))
            writer.option(f"snapshot-property.{MARK}", batch.metadata).append()
        finally:
            if is_sampled:
                kept.unpersist()

    def _find_written(self, batch: Batch, before: int | None, *, once: bool) -> int:
        """Return the number of the commit that holds a batch which was just written.

        `before` is the snapshot that was looked at before. Iceberg commits an append after whatever
        others have committed since: a rollback, and the same batch by another run, too. Raises
        PipelineError for these, and where another query continues; the batch is in the table.
        """
        # The query has a copy of the user's session, in which the catalog keeps the table, too.
        table = LoadedTable(self.spark, self.table)
        table.refresh()
        since = table.since(before) or []
        found = [one for one in since if _is_of(one, batch)]
        mine = found[0] if found else None
        texts = [one.metadata for one in since]
        if once and (mine is None or continued_by(texts, batch.query_id)):
            held = replace(self._held(table, batch.query_id), is_complete=True)
            check_written(batch, held, self.keyed)
        if once and len(found) > 1:
            raise self._written_twice(batch, batch.number)
        self._last = None if mine is None else mine.id
        return NO_VERSION if mine is None else mine.sequence or NO_VERSION

    def _has(self, table: LoadedTable, batch: Batch) -> bool:
        """Tell whether the table has a batch; it has the batches before, and no more.

        Raises PipelineError where it was rolled back, or another query continues.
        """
        since = None if self._last is None else table.since(self._last)
        if since is not None:
            texts = [one.metadata for one in since]
            own = latest_of_query(texts, batch.query_id)
            if own is None and not continued_by(texts, batch.query_id):
                return False  # this run's last batch is in the table, and others have none of it
            if own is not None and own.batch < batch.number:
                raise self._written_twice(batch, own.batch)
        held = self._held(table, batch.query_id)
        seen = self._seen.get(batch.query_id)
        if self._last is not None or seen is not None:
            held = replace(held, is_complete=True)  # it had that batch
        promised = max((one for one in (batch.promised, seen) if one is not None), default=None)
        if held.batch is not None and held.batch >= batch.number and not held.taken_out:
            return True
        planned = Planned(batch.checkpoint, batch.number, batch.begins, "", promised)
        answer = decide(planned, held)
        if isinstance(answer, Refuse):
            raise PipelineError(answer.sentence)
        return False

    def _written_twice(self, batch: Batch, number: int) -> PipelineError:
        return PipelineError(
            f"Batch {number} of the checkpoint {batch.checkpoint} was written by another run, too: "
            f"{harm(self.keyed)}. Two runs share the checkpoint: give each one of its own"
        )

    def _merge(self, frame: DataFrame, keyed: KeyedTable, batch: Batch) -> None:
        """Give each key its last record.

        Spark reads the rows of a MERGE twice, first to find the files that it changes: they are
        kept, so that they are computed and counted once.
        """
        session = frame.sparkSession
        view = f"ottla_batch_{secrets.token_hex(8)}"
        kept = frame.persist()
        kept.createOrReplaceTempView(view)
        place = None if batch.truncation is None else batch.truncation.sql
        statement = upsert_statement(keyed, in_sql(self.table), view, place)
        try:
            committing(session, batch.metadata, lambda: session.sql(statement))
        finally:
            session.catalog.dropTempView(view)
            kept.unpersist()


def _is_cut(there: Sequence[Snapshot]) -> bool:
    """Tell whether a table had snapshots before these, which are known no more."""
    return bool(there) and there[-1].parent is not None


def _forgets(there: Sequence[Snapshot]) -> str:
    return f"only its latest {len(there)} snapshots are known" if _is_cut(there) else ""


def _is_of(snapshot: Snapshot, batch: Batch) -> bool:
    found = read_metadata(snapshot.metadata)
    return found is not None and (found.query_id, found.batch) == (batch.query_id, batch.number)


def _null(name: str, kind: str) -> str:
    quoted = name.replace("`", "``")
    return f"CAST(NULL AS {kind}) AS `{quoted}`"
