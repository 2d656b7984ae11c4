"""Iceberg's own view of a table, and a commit that carries its batch: Spark's SQL gives neither."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.spark.jvm.attributes import java_class, java_session
from ottla.pipelines.spark.jvm.classes import first_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MARK: Final = "ottla.batch"
"""The property of a snapshot's summary that says which batch of which query it is."""
MAX_SNAPSHOTS: Final = 1_000
"""How many snapshots are looked at, from the latest backwards."""
_ICEBERG: Final = "org.apache.iceberg.spark"
_CATALOGS: Final = (f"{_ICEBERG}.SparkCatalog",)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One snapshot of a table; `metadata` is that of its batch, empty where it is of none.

    `sequence`: the number of the commit, 0 in a table of Iceberg's first format. `is_first`: there
    was none before it.
    """

    id: int
    sequence: int
    metadata: str
    is_first: bool


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
            yield _snapshot(found)
            parent = found.parentId()
            # An expired one is known by its id alone.
            found = None if parent is None else self._table.snapshot(parent)

    def all(self) -> list[Snapshot]:
        """Return all snapshots that have not expired, also those that are in no branch."""
        found = list(self._table.snapshots())[-MAX_SNAPSHOTS:]
        return [_snapshot(one) for one in reversed(found)]


def _snapshot(found: Any) -> Snapshot:
    metadata = found.summary().get(MARK)
    return Snapshot(
        int(found.snapshotId()),
        int(found.sequenceNumber()),
        str(metadata or ""),
        found.parentId() is None,
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
