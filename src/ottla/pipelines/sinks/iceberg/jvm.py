"""Iceberg's own view of a table, and a commit that carries its batch: Spark's SQL gives neither."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.spark.jvm.attributes import java_class, java_session
from ottla.pipelines.spark.jvm.classes import first_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MARK: Final = "ottla.batch"
"""The property of a snapshot's summary that says which batch of which query it is."""
WRITTEN: Final = "ottla.written"
"""The property of a table that a pipeline has begun to write to."""
_PICKED: Final = "source-snapshot-id"
"""What Iceberg gives to a snapshot of `cherrypick_snapshot` (SnapshotSummary)."""
_PUBLISHES_LATER: Final = "write.wap.enabled"
_DISTRIBUTION: Final = "write.distribution-mode"
_DISTRIBUTION_OF_SESSION: Final = "spark.sql.iceberg.distribution-mode"
MAX_SNAPSHOTS: Final = 1_000
"""How many snapshots are looked at, from the latest backwards."""
_ICEBERG: Final = "org.apache.iceberg.spark"
_CATALOGS: Final = (f"{_ICEBERG}.SparkCatalog",)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One snapshot of a table; `metadata` is that of its batch, empty where it is of none.

    `sequence`: the number of the commit, 0 in a table of Iceberg's first format. `parent`: the id
    of the one before it, which may have expired; None for the first one. `committed_ms`: when it
    was committed, in ms since 1970. `picked`: the id of the one whose rows a cherry-pick has
    brought, None for others.
    """

    id: int
    sequence: int
    metadata: str
    parent: int | None
    committed_ms: int
    picked: int | None = None


def has_iceberg(spark: SparkSession) -> bool:
    """Tell whether Spark has Iceberg's jar."""
    return first_class(spark, _CATALOGS) is not None


class LoadedTable:
    """A table of a catalog, as it was when it was loaded or refreshed."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        """Load the table. What the JVM raises comes through, for a name that is none also."""
        loader = java_class(spark, f"{_ICEBERG}.Spark3Util")
        self._table = loader.loadIcebergTable(java_session(spark), name)

    @property
    def uuid(self) -> str:
        """The id that the table got when it was created."""
        return str(self._table.uuid())

    @property
    def is_written(self) -> bool:
        """Tell whether a pipeline has begun to write to the table, however long ago."""
        return self._table.properties().get(WRITTEN) is not None

    @property
    def publishes_later(self) -> bool:
        """Tell whether a session may write beside what readers see, until it is published."""
        return bool(self._table.properties().get(_PUBLISHES_LATER) == "true")

    def is_sampled(self, session: SparkSession) -> bool:
        """Tell whether Spark computes the rows of an append twice: it sorts them over all tasks,
        and takes a sample of them before that (SparkWriteConf.distributionMode).
        """
        of_session = session.conf.get(_DISTRIBUTION_OF_SESSION, None)
        mode = of_session or self._table.properties().get(_DISTRIBUTION)
        if mode is not None:
            return str(mode).lower() == "range"
        return bool(self._table.sortOrder().isSorted())

    @property
    def location(self) -> str:
        """The folder of the table."""
        return str(self._table.location())

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """What the table is partitioned by: a column's name, or a function of one."""
        found = []
        for one in self._table.spec().fields():
            column = str(self._table.schema().findColumnName(one.sourceId()))
            how = str(one.transform().toString())
            if how != "void":  # a column that it was partitioned by before
                found.append(column if how == "identity" else f"{how}({column})")
        return tuple(found)

    def refresh(self) -> None:
        """Read what others committed; Spark's own reads of the table see it, too."""
        self._table.refresh()

    def current_id(self) -> int | None:
        """Return the id of the latest snapshot, None in a table without any."""
        found = self._table.currentSnapshot()
        return None if found is None else int(found.snapshotId())

    def ancestors(self) -> Iterator[Snapshot]:
        """Return the snapshots whose rows are in the table, the newest first."""
        found = self._table.currentSnapshot()
        for _ in range(MAX_SNAPSHOTS):
            if found is None:
                return
            yield self._snapshot(found)
            parent = found.parentId()
            # An expired one is known by its id alone.
            found = None if parent is None else self._table.snapshot(parent)

    def since(self, snapshot_id: int | None) -> list[Snapshot] | None:
        """Return the snapshots after one, the newest first; None: after a table without any.

        None where that one is no ancestor of the latest: the table was set back. It may have
        expired itself, but none after it.
        """
        if self.current_id() == snapshot_id:
            return []
        found = []
        for one in self.ancestors():
            found.append(one)
            if one.parent == snapshot_id:
                return found
        return None

    def set_aside(self, ancestors: Sequence[Snapshot]) -> list[Snapshot]:
        """Return the snapshots that are there, and are known to be no ancestors of the latest one.

        Where the ancestors end at one that has expired, a tag or a branch may have kept one before
        it: of those nothing is known. A table lists its snapshots in the order of their commits.
        """
        oldest = ancestors[-1] if ancestors else None
        known = {one.id for one in ancestors} | {one.picked for one in ancestors}
        found = []
        for raw in reversed(list(self._table.snapshots())[-MAX_SNAPSHOTS:]):
            one = self._snapshot(raw)
            if oldest is not None and oldest.parent is not None and one.id == oldest.id:
                break
            if one.id not in known:
                found.append(one)
        return found

    def _snapshot(self, found: Any) -> Snapshot:
        """Return what a snapshot says; a cherry-pick has the rows of another, and not its words."""
        summary, parent, picked = found.summary(), found.parentId(), None
        metadata = summary.get(MARK)
        if metadata is None and (source := summary.get(_PICKED)) is not None:
            picked = int(source)
            origin = self._table.snapshot(picked)
            metadata = None if origin is None else origin.summary().get(MARK)
        return Snapshot(
            int(found.snapshotId()),
            int(found.sequenceNumber()),
            str(metadata or ""),
            None if parent is None else int(parent),
            int(found.timestampMillis()),
            picked,
        )


def committing(spark: SparkSession, metadata: str, write: Callable[[], object]) -> None:
    """Call `write`; the snapshots that it commits carry the metadata of a batch.

    A statement has no options, as an append has: Iceberg takes the properties of its snapshot from
    the thread (`CommitMetadata`), in which the call goes to Python and back.
    """
    properties = java_class(spark, "java.util.HashMap")()
    properties.put(MARK, metadata)
    call = _Call(write)
    raised = java_class(spark, "java.lang.Class").forName("java.lang.RuntimeException")
    commits = java_class(spark, f"{_ICEBERG}.CommitMetadata")
    try:
        commits.withCommitProperties(properties, call, raised)
    except Exception:
        if call.error is not None:
            raise call.error from None  # as it was before it went through Java
        raise


class _Call:
    """`java.util.concurrent.Callable` of a function of Python."""

    def __init__(self, write: Callable[[], object]) -> None:
        self._write = write
        self.error: Exception | None = None

    def call(self) -> None:
        try:
            self._write()
        except Exception as error:
            self.error = error
            raise

    class Java:
        implements = ("java.util.concurrent.Callable",)
