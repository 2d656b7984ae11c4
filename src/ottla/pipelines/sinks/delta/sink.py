"""`DeltaSink`: batches into a Delta table, one commit for each.

With `once` a commit carries the query's id and the batch's number (Delta's `txnAppId` and
`txnVersion`), and Delta skips a batch that it has: a batch that is killed before its commit leaves
files that no version refers to; one that is killed after it is skipped when it is written again.

A batch is appended, or merged where the table has keys (`keyed_table`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from ottla.pipelines.checkpoint.next_batch import Held
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.sinks.delta.batch_order import BatchOrder
from ottla.pipelines.sinks.delta.commits_of_query import commits_of, is_query_id
from ottla.pipelines.sinks.delta.compaction import COMPACT_AFTER, Compaction
from ottla.pipelines.sinks.delta.failures import FAILURES
from ottla.pipelines.sinks.delta.merge import merge
from ottla.pipelines.sinks.delta.state_ahead import StateAhead
from ottla.pipelines.sinks.delta.target import Target
from ottla.pipelines.sinks.delta.widening import can_widen
from ottla.pipelines.spark.jvm.delta_log import Snapshot
from ottla.pipelines.target.changed_columns import (
    changed_columns,
    check_partition_by,
    check_partitioned,
)
from ottla.pipelines.target.commit_metadata import continued_by
from ottla.pipelines.target.constraints import (
    Constraint,
    mark,
    padded,
    partition_constraints,
    read_constraints,
)
from ottla.pipelines.target.delta_table import (
    WRITERS_KEPT,
    Commit,
    DeltaTable,
    forget_last_commit,
    last_commit,
)
from ottla.pipelines.target.far_ahead import order_constraints, watched
from ottla.pipelines.target.judged_alone import check_judged_alone
from ottla.pipelines.target.keyed_table import check_kind
from ottla.pipelines.target.narrower_types import exact_casts
from ottla.pipelines.target.port import Sink
from ottla.pipelines.target.restored import still_held
from ottla.pipelines.target.written import check_written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

    from ottla.pipelines.target.keyed_table import KeyedTable
    from ottla.pipelines.target.port import Batch

_FIRST_LOOK: Final = 10
"""How many commits are looked at after the first batch of a query."""
_RESTORED: Final = "a RESTORE TABLE went back to a version before them"
MAX_CLOCKS_APART_MS: Final = 60_000
"""How far the clocks of those that write to a table are apart at most."""
_DELETION_VECTORS: Final = "delta.enableDeletionVectors"
_TYPE_WIDENING: Final = "delta.enableTypeWidening"
_IDENTITY: Final = "delta.identity.start"
_MAY_BE_GIVEN: Final = "delta.identity.allowExplicitInsert"
_DEFAULT_OF_NEW_TABLES: Final = "spark.databricks.delta.properties.defaults.enableDeletionVectors"


@dataclass
class DeltaSink(Sink):
    """A Delta table as the target of a pipeline's rows."""

    kind = "delta"
    called = "Delta"
    failures = FAILURES
    spark: SparkSession
    target: Target
    schema: StructType
    schema_changes: str = "refuse"  # or "add"
    partition_by: tuple[str, ...] = ()
    keyed: KeyedTable | None = None
    compact_after: int = COMPACT_AFTER
    deletion_vectors: bool | None = None  # a new table has them where it has keys
    max_ahead: str | None = None
    _constraints: tuple[Constraint, ...] = field(default=(), init=False, repr=False)
    _batch_order: BatchOrder = field(default_factory=BatchOrder, init=False, repr=False)
    # Of each query: up to which version the commits of others are compared with it, and since when.
    _compared: dict[str, tuple[int, int]] = field(default_factory=dict, init=False, repr=False)
    # Of each query: its last batch, as far as this object has written it or found it.
    _last: dict[str, int] = field(default_factory=dict, init=False, repr=False)
    _forgets_writers: bool | None = field(default=None, init=False, repr=False)
    _made_id: str = field(default="", init=False, repr=False)
    _casts: dict[str, DataType] = field(default_factory=dict, init=False, repr=False)
    _table: DeltaTable | None = field(default=None, init=False, repr=False)
    _compaction: Compaction | None = field(default=None, init=False, repr=False)
    _state_ahead: StateAhead | None = field(default=None, init=False, repr=False)

    @property
    def name(self) -> str:
        """The name that the user gave."""
        return self.target.name

    @property
    def shown(self) -> str:
        """What a person looks for: the table's name, or the whole path."""
        return self.target.shown

    @property
    def short_name(self) -> str:
        """The last part of the name."""
        return self.target.short_name

    @property
    def location(self) -> str:
        """The table's folder; empty where only the catalog knows it."""
        return self.target.location

    @property
    def folders(self) -> tuple[str, ...]:
        """The table's folder."""
        return (self.target.location,)

    @property
    def table(self) -> DeltaTable:
        """The table where it lies; for a catalog's table only when it has been made."""
        if self._table is None or self._table.location != self.target.location:
            self._table = DeltaTable(self.spark, self.target.location)
        return self._table

    def rows(self) -> DataFrame | None:
        """Return what the table holds, None where there is no table."""
        if not self.target.location or not self.table.exists():
            return None
        return self.spark.read.format("delta").load(self.target.location)

    @property
    def is_adaptive(self) -> bool:
        """True for a MERGE. An append has nothing to be planned again, and Delta's own queries
        beside it, which rebuild the table's state, would take two jobs of Spark each instead of
        one.
        """
        return self.keyed is not None

    def rejected(self, schema: StructType) -> DeltaSink:
        """Return the sink of the rows that are rejected: the table `<target>_rejected`."""
        return self._beside(self.target.rejected(self.spark), schema)

    def rejected_hold(self, query_id: str, batch: int) -> bool:
        """Tell whether the rejected rows up to a batch of the query are written."""
        location = self.target.rejected(self.spark).location
        return bool(location) and DeltaTable(self.spark, location).holds(query_id, batch)

    def late(self, schema: StructType) -> DeltaSink:
        """Return the sink of the rows older than the watermark: the table `<target>_late`."""
        return self._beside(self.target.late(self.spark), schema)

    def _beside(self, target: Target, schema: StructType) -> DeltaSink:
        # Rows of these tables do not change: their readers are those of the table.
        without = False if self.deletion_vectors is False else None
        return DeltaSink(
            self.spark,
            target,
            schema,
            "add",
            compact_after=self.compact_after,
            deletion_vectors=without,
        )

    def forget(self) -> None:
        """Drop what Delta remembers of the table's folder."""
        if self.target.location:
            self.table.forget()

    def table_id(self) -> str:
        """Return Delta's id of the table, empty where there is no table."""
        return self.table.snapshot().table_id if self.target.location else ""

    def held(self, query_id: str) -> Held:
        """Return what the table has of a query, by its history and the last batch of each writer.

        The history is complete where it has a commit of the query, or the table's first version:
        Delta removes the oldest entries, and a table that keeps 30 days of them may have none.
        """
        name = f"the table {self.name}"
        if not self.target.location:
            return Held(name)
        found = commits_of(query_id, self.table.commits())
        # Who asks later may ask for the number alone: the first look is the one of the start.
        self._compared.setdefault(query_id, (found.newest_version, now_ms()))
        newest, batch, ends = found.newest, None, None
        if newest is not None:
            self._last[query_id] = max(newest.batch, self._last.get(query_id, -1))
        # Delta keeps the number of a writer's last batch, also of one taken out. The first look for
        # it in a program takes seconds.
        if not found.is_newest and not found.taken_out:
            batch = self.last_batch(query_id)
        if newest is not None and (batch is None or newest.batch >= batch):
            batch, ends = newest.batch, newest.offsets
        is_shown = batch is None or batch in found.batches or found.has_first_version
        is_unsure = batch is not None and found.older_taken_out
        is_before_shown = not is_shown or found.is_before_shown
        is_all_shown = is_shown and is_before_shown and not is_unsure
        commits = [] if is_all_shown else list(self.table.commits())
        unsure = _RESTORED if is_unsure else ""
        before = "" if is_before_shown else self._unsure(query_id, commits, since_ms=0)
        return Held(
            name,
            batch,
            ends,
            is_complete=newest is not None or found.has_first_version,
            taken_out=found.taken_out,
            taken_out_by="RESTORE TABLE",
            continued_by=found.continued_by,
            forgets=_forgets(commits) if is_unsure or not is_shown or before else "",
            unsure=unsure or ("" if is_shown else self._unsure(query_id, commits)),
            unsure_before=before,
        )

    def _unsure(self, query_id: str, commits: Sequence[Commit], since_ms: int | None = None) -> str:
        """Return which query may have continued one whose last commit these do not show any more;
        empty for none.

        It would say so in each commit. Delta keeps when it wrote last, also without these. A job
        that gives its commits a name of its own, or a replay, continues nothing.
        `since_ms`: when the query's last batch was compared, None: when Delta says that it wrote.
        """
        snapshot = self.table.snapshot()
        kept = snapshot.properties().get(WRITERS_KEPT)
        if since_ms is not None and kept is not None:
            # That it knows this query's last batch does not say that it knows all since `since_ms`.
            return f"it knows who wrote to it for {kept.removeprefix('interval ')} alone"
        written = snapshot.written_ms()
        own_ms = written.get(query_id) if since_ms is None else since_ms
        shown = {commit.batch[0] for commit in still_held(commits) if commit.batch}
        for writer, at_ms in written.items():
            if writer == query_id or writer in shown or not is_query_id(writer):
                continue
            # What came before this query's last batch was compared then.
            if own_ms is None or at_ms is None or at_ms + MAX_CLOCKS_APART_MS >= own_ms:
                return f"none of them is of {writer}, which may have continued this query"
        return ""

    def metadata(self) -> Iterable[str]:
        """Return the `userMetadata` of the commits that are in the table, the newest first."""
        if not self.target.location:
            return ()
        return (commit.metadata for commit in still_held(self.table.commits()))

    def check_start(self, topic: str, *, continues: bool) -> None:
        """Refuse to continue a table that queries wrote whose commits do not say what they read.

        Raises PipelineError.
        """
        if continues and self.target.location and self.table.writers():
            raise PipelineError(
                f"The table {self.name} was written by queries whose commits do not say where "
                f"they ended in topic {topic!r}. Give explicit offsets: "
                "topic(..., starting={0: 4711})"
            )

    def forgets(self) -> str:
        """Return that Delta has removed commits of queries from the table's history, or that it
        never had them.
        """
        if not self.target.location:
            return ""
        cloned = (commit.cloned_from for commit in still_held(self.table.commits()))
        if source := next(filter(None, cloned), ""):
            return f"it has rows of {source} by CLONE, which does not bring the commits of queries"
        if not self.table.writers() and WRITERS_KEPT not in self.table.snapshot().properties():
            return ""  # no query has written to it
        commits = list(self.table.commits())
        return "" if not commits or commits[-1].version == 0 else _forgets(commits)

    def newest_commit(self) -> str:
        """Return the number of the latest version, empty where there is no table."""
        version = self.table.snapshot().version if self.target.location else -1
        return "" if version < 0 else str(version)

    def knows_since(self, commit: str) -> bool:
        """Tell whether the history has all versions after one, and the table was not set back."""
        before = int(commit) if commit else -1
        versions = (one.version for one in self.table.commits())
        newest = next(versions, None)
        if newest is None or newest < before:
            return False
        # No further back than needed: the driver reads a few commits, Spark all of them.
        return newest <= before + 1 or any(version <= before + 1 for version in versions)

    def check(self) -> list[str]:
        """Compare the frame with the table; return what will change in it, a line for each.

        Raises PipelineError: the target holds something else, or the columns do not fit.
        """
        schema = self._table_schema()
        check_partition_by(self.partition_by, schema)
        if not self.target.location:
            return []
        if self.table.holds_other_files():
            raise PipelineError(
                f"{self.name} contains files but no Delta table: choose another target"
            )
        snapshot = self.table.snapshot()
        if snapshot.version < 0:
            return []
        check_partitioned(self.partition_by, snapshot.partition_columns, self.name)
        check_kind(self.keyed, self.name, self.schema, snapshot.schema)
        self._check_judged_alone(snapshot)
        self._check_padded(snapshot.schema)
        self._check_identity(snapshot.schema)
        self._check_deletion_vectors(snapshot)
        return self._compare(snapshot)

    def _check_judged_alone(self, table: Snapshot) -> None:
        found = read_constraints(table.properties(), table.schema)
        check_judged_alone(self.keyed, found, self.schema, self.name)

    def _check_padded(self, table: StructType) -> None:
        """Refuse keys that the table pads with spaces: Delta's MERGE cannot compare them."""
        if self.keyed is None:
            return
        compared = {name.lower(): "keys" for name in self.keyed.keys}
        if self.keyed.order_by is not None:
            compared.setdefault(self.keyed.order_by.lower(), "order_by")
        for name, kind in padded(table).items():
            if name.lower() in compared:
                raise PipelineError(
                    f"The column {name} of the table {self.name}, which is in "
                    f"{compared[name.lower()]}, is {kind.upper()}: its texts are padded with "
                    "spaces, and a MERGE does not find them. Use a table where it is STRING or "
                    "VARCHAR"
                )

    def _check_identity(self, table: StructType) -> None:
        """Refuse rows with a column that the table numbers itself: Delta fails for it in each batch
        of a MERGE, and in each append to one that is always generated.
        """
        wanted = {name.lower() for name in self._table_schema().names}
        for one in table.fields:
            if one.name.lower() not in wanted or _IDENTITY not in one.metadata:
                continue
            if self.keyed is not None or not one.metadata.get(_MAY_BE_GIVEN):
                raise PipelineError(
                    f"The column {one.name} of the table {self.name} is an identity column, which "
                    "the table numbers itself"
                    + (", and a MERGE cannot write it" if self.keyed is not None else "")
                    + ": leave it out of the frame, or use a table where it is a BIGINT"
                )

    def _check_deletion_vectors(self, table: Snapshot) -> None:
        """Refuse a table that is made otherwise than `deletion_vectors` says."""
        if self.deletion_vectors is None:
            return
        name = self._in_sql
        set_to = f"ALTER TABLE {name} SET TBLPROPERTIES ('{_DELETION_VECTORS}' = '{{}}')"
        if self.deletion_vectors:
            if table.properties().get(_DELETION_VECTORS) != "true":
                raise PipelineError(
                    f"The table {self.name} was made without deletion vectors, and "
                    "deletion_vectors=True is for a new table. Leave it out, or give them to the "
                    f"table: {set_to.format('true')}"
                )
        elif "deletionVectors" in table.reader_features():
            raise PipelineError(
                f"The table {self.name} has deletion vectors, and deletion_vectors=False is for a "
                "new table. Leave it out, use a new table and checkpoint, or take them out of this "
                "table while no query writes to it: "
                f"{set_to.format('false')}; REORG TABLE {name} APPLY (PURGE); "
                f"ALTER TABLE {name} DROP FEATURE deletionVectors"
            )

    @property
    def _in_sql(self) -> str:
        """The table as SQL names it."""
        return self.name if self.target.is_table else f"delta.`{self.location}`"

    def _table_schema(self) -> StructType:
        """Return the columns that a table of these rows has."""
        return self.schema if self.keyed is None else self.keyed.schema(self.schema)

    def _compare(self, table: Snapshot) -> list[str]:
        """Return the columns that the table gets or widens, a line each. Raises PipelineError."""
        has_feature = table.properties().get(_TYPE_WIDENING) == "true"
        changed = changed_columns(
            self._table_schema(),
            table.schema,
            self.name,
            adds=self.schema_changes == "add",
            can_widen=partial(can_widen, has_feature=has_feature),
            could_widen=partial(can_widen, has_feature=True),
            to_widen=(
                f"schema_changes='add' and ALTER TABLE {self._in_sql} SET TBLPROPERTIES "
                f"('{_TYPE_WIDENING}' = 'true')"
            ),
        )
        return changed.lines(self.name)

    def make(self) -> None:
        """Create the table, empty, unless it exists. Raises PipelineError.

        An append adds and widens columns itself; for a merge that is done here.
        """
        schema = self._table_schema()
        self.target = self.target.made(self.spark, schema, self.partition_by, self._properties())
        snapshot = self.table.snapshot()
        self._made_id = snapshot.table_id
        self._casts = exact_casts(self.schema, snapshot.schema)
        if self.keyed is not None and self._compare(snapshot):
            empty = self.spark.createDataFrame([], schema).write.format("delta").mode("append")
            empty.option("mergeSchema", True).save(self.target.location)

    def _properties(self) -> dict[str, str]:
        """Return the properties of a new table.

        A merge changes few rows of many files: with deletion vectors it does not write the files
        again. Unless `deletion_vectors` is given, Spark's default for new tables has precedence
        where it is set.
        """
        if self.deletion_vectors is not None:
            return {_DELETION_VECTORS: str(self.deletion_vectors).lower()}
        if self.keyed is None or self.spark.conf.get(_DEFAULT_OF_NEW_TABLES, None) is not None:
            return {}
        return {_DELETION_VECTORS: "true"}

    def constrained(self, frame: DataFrame) -> DataFrame:
        """Mark the rows of a frame that the table's constraints refuse; see `constraints.fitting`.

        A table without constraints, or one whose constraints hold anyway, gives the frame back.
        """
        snapshot = self.table.snapshot()
        self._check_judged_alone(snapshot)
        self._constraints = constraints = self._read_constraints(snapshot)
        frame = watched(frame, self.max_ahead, self.keyed, self.schema)
        return mark(frame, snapshot.schema, constraints) if constraints else frame

    def changing(self) -> tuple[Constraint, ...]:
        """Return what the texts must fulfil that would become null."""
        return partition_constraints(self.schema, self.table.snapshot().partition_columns)

    def has_new_constraints(self) -> bool:
        """Tell whether the table has other constraints than when `constrained` marked the rows."""
        return self._read_constraints(self.table.snapshot()) != self._constraints

    def _read_constraints(self, table: Snapshot) -> tuple[Constraint, ...]:
        found = read_constraints(table.properties(), table.schema)
        found = (*found, *partition_constraints(self.schema, table.partition_columns))
        if self.keyed is None:
            return found
        of_order = order_constraints(self.max_ahead, self.keyed, self.schema)
        return (*self.keyed.constrain(found), *of_order)

    def write(self, frame: DataFrame, batch: Batch) -> int | None:
        """Append or merge a batch; None when the table has it already."""
        session = frame.sparkSession
        if self._has(batch):
            return None
        if self.keyed is not None:
            if self._casts:
                frame = frame.withColumns(
                    {name: frame[name].cast(kind) for name, kind in self._casts.items()}
                )
            self._look_up(session, batch)
            version = merge(
                frame, self.keyed, self.target.location, batch, self.spark, self._batch_order
            )
            self._last[batch.query_id] = batch.number
            self._check_between(version, batch)
            self._compact(session)
            self._look_ahead(session, batch)
            return version
        forget_last_commit(session)
        writer = frame.write.format("delta").mode("append").option("userMetadata", batch.metadata)
        if batch.once:
            self._look_up(session, batch)
            writer = writer.option("txnAppId", batch.query_id).option("txnVersion", batch.number)
        if self.schema_changes == "add":
            writer = writer.option("mergeSchema", True)
        writer.save(self.target.location)
        version = last_commit(session)
        self._last[batch.query_id] = batch.number
        self._check_between(version, batch)
        self._compact(session)
        if batch.once:
            self._look_ahead(session, batch)
        return version

    def _has(self, batch: Batch) -> bool:
        """Tell whether a table that forgets its writers has a batch: Delta would not skip it.

        By its history, before each batch: a copy of the checkpoint may have written it meanwhile.
        The other tables know it.
        """
        if not batch.once and self.keyed is None:
            return False
        if self._forgets_writers is None:
            self._forgets_writers = WRITERS_KEPT in self.table.snapshot().properties()
        if self._forgets_writers:
            newest = commits_of(batch.query_id, self.table.commits()).newest
            if newest is not None and newest.batch >= batch.number:
                return True
        return self._last.get(batch.query_id, -1) >= batch.number

    def _check_between(self, version: int | None, batch: Batch) -> None:
        """Check the commits of others since the last batch: a RESTORE, or a query that continues
        where this one ended.

        Raises PipelineError; the batch is in the table.
        """
        if version is None:
            return
        self._check_same_table(batch)
        before, since_ms = self._compared.get(batch.query_id, (None, None))
        self._compared[batch.query_id] = version, now_ms()
        if before is not None and version == before + 1:
            return
        if before is not None and version <= before:
            raise PipelineError(
                f"The table {self.name} was set back while the query ran, or made again: it may "
                f"lack the batches before batch {batch.number} of this query. Restore its newest "
                "version, or use a new checkpoint and a new table"
            )
        between = self._since(before)
        texts = [commit.metadata for commit in between]
        is_restored = any(commit.restore for commit in between)
        unsure = ""
        if before is not None and (not between or between[-1].version > before + 1):
            unsure = self._unsure(batch.query_id, between, since_ms)
        if not is_restored and not unsure and not continued_by(texts, batch.query_id):
            return
        held = replace(self.held(batch.query_id), unsure_before="")  # this run compares
        if unsure and not held.unsure:
            held = replace(held, unsure=unsure, forgets=_forgets(between))
        check_written(batch, held, self.keyed)

    def _check_same_table(self, batch: Batch) -> None:
        """Refuse a table that was made again while the query ran. Raises PipelineError; the batch
        is in the new one.
        """
        if self._made_id and self.table.known_id() != self._made_id:
            raise PipelineError(
                f"The table {self.name} was deleted and created again, or replaced, while the "
                f"query ran: batch {batch.number} was written to the new one, which lacks the "
                "batches before. Use a new checkpoint to read the topic again"
            )

    def _since(self, before: int | None) -> list[Commit]:
        """Return the commits after a version, those that others have made meanwhile among them."""
        if before is None:
            return list(self.table.commits(_FIRST_LOOK))
        return list(takewhile(lambda commit: commit.version > before, self.table.commits()))

    def _compact(self, session: SparkSession) -> None:
        if self.compact_after == 0:
            return
        if self._compaction is None:
            self._compaction = Compaction(self.target.location, self.compact_after)
        self._compaction.batch_written(session)

    def _look_up(self, session: SparkSession, batch: Batch) -> None:
        """Prepare the commit of the first batch of this run; that of another is already."""
        if self._state_ahead is None:
            self._state_ahead = StateAhead(self.target.location)
            self._state_ahead.give(session, batch.query_id, self._last.get(batch.query_id))

    def _look_ahead(self, session: SparkSession, batch: Batch) -> None:
        assert self._state_ahead is not None
        self._state_ahead.prepare(session, batch.query_id, batch.number)

    def last_batch(self, query_id: str) -> int | None:
        """Return the last batch of a query that wrote `once`, None when there is none."""
        if not self.target.location:
            return None
        return self.table.writers().get(query_id)

    def version_of(self, query_id: str, batch: int) -> int | None:
        """Return the version that holds a batch, None when none is found in the history."""
        return self.table.find(query_id, batch)


def now_ms() -> int:
    return int(time.time() * 1000)


def _forgets(commits: Sequence[Commit]) -> str:
    return f"only its latest {len(commits)} commits are known"
