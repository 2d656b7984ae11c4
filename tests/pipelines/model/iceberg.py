"""Tables of Iceberg: snapshots with their parents, and what a commit does beside those of others.

An append is committed after whatever others have committed since it read the table, as Iceberg's
FastAppend is; a MERGE is refused then, since its files may have changed (SnapshotProducer.commit,
MergingSnapshotProducer.validateNewDeletes).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tests.pipelines.model import sql
from tests.pipelines.model.errors import QueryFailedError
from tests.pipelines.model.files import Killed
from tests.pipelines.model.spark import Frame

from ottla.pipelines.sinks.iceberg.jvm import WRITTEN, LoadedTable
from ottla.pipelines.sinks.iceberg.sink import IcebergSink
from ottla.pipelines.sinks.iceberg.table import in_sql

Rows = tuple[Any, ...]
MARK = "snapshot-property.ottla.batch"
# Snapshots are committed after all batches of the model have begun: see `spark._HEAD`.
FIRST_MS = 5_000_000_000_000


@dataclass(frozen=True)
class Commit:
    """A snapshot with its rows, as Iceberg's API shows it."""

    number: int
    metadata: str
    parent: int | None
    rows: Rows

    # The names are Java's.
    def snapshotId(self) -> int:  # noqa: N802
        return self.number

    def sequenceNumber(self) -> int:  # noqa: N802
        return self.number

    def summary(self) -> dict[str, str]:
        return {"ottla.batch": self.metadata} if self.metadata else {}

    def parentId(self) -> int | None:  # noqa: N802
        return self.parent

    def timestampMillis(self) -> int:  # noqa: N802
        return FIRST_MS + self.number


@dataclass
class IcebergStore:
    """A table: its snapshots in the order of commits, the current one, and those with tags."""

    uuid: str
    commits: dict[int, Commit] = field(default_factory=dict)
    current: int | None = None
    tagged: set[int] = field(default_factory=set)
    made: int = 0
    properties: dict[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> Rows:
        return () if self.current is None else self.commits[self.current].rows

    def copied(self) -> IcebergStore:
        return IcebergStore(
            self.uuid,
            dict(self.commits),
            self.current,
            set(self.tagged),
            self.made,
            dict(self.properties),
        )

    def commit(self, metadata: str, rows: Rows) -> None:
        self.made += 1
        self.commits[self.made] = Commit(self.made, metadata, self.current, rows)
        self.current = self.made

    def ancestors(self) -> list[int]:
        found = []
        at = self.current
        while at is not None and at in self.commits:
            found.append(at)
            at = self.commits[at].parent
        return found

    def expire(self) -> None:
        """expire_snapshots: what no branch and no tag has is forgotten."""
        kept = self.tagged | {self.current}
        self.commits = {number: one for number, one in self.commits.items() if number in kept}


class _JavaTable:
    """`org.apache.iceberg.Table`: its metadata as it was when it was read."""

    def __init__(self, session: Any, store: IcebergStore) -> None:
        self._session = session
        self._store = store
        self.refresh()

    def refresh(self) -> None:
        if self._session.dead:
            raise Killed
        self._seen = self._store.copied()

    def uuid(self) -> str:
        return self._seen.uuid

    def location(self) -> str:
        return "memory:///warehouse/t"

    def properties(self) -> dict[str, str]:
        return self._seen.properties

    def sortOrder(self) -> Any:  # noqa: N802
        return SimpleNamespace(isSorted=lambda: False)

    def spec(self) -> Any:
        return SimpleNamespace(fields=list)

    def currentSnapshot(self) -> Commit | None:  # noqa: N802
        return None if self._seen.current is None else self._seen.commits[self._seen.current]

    def snapshot(self, number: int) -> Commit | None:
        return self._seen.commits.get(number)

    def snapshots(self) -> list[Commit]:
        return list(self._seen.commits.values())


class FakeTable(LoadedTable):
    """The shipped view of a table, on one in memory."""

    def __init__(self, session: Any, name: str) -> None:
        store = session.world.target.stores[in_sql(name)]
        self._table: Any = _JavaTable(session, store)


def set_written(session: Any, name: str) -> None:
    """`table.set_written`."""
    session.world.steps.step(session)
    session.world.target.stores[in_sql(name)].properties[WRITTEN] = "true"


def committing(session: Any, metadata: str, write: Callable[[], object]) -> None:
    """`jvm.committing`: what is written carries the metadata."""
    session.conf[MARK] = metadata
    try:
        write()
    finally:
        session.conf.unset(MARK)


class IcebergTarget:
    """Tables of one catalog."""

    can_start_from_table = True

    def __init__(self, world: Any) -> None:
        self._world = world
        self.stores: dict[str, IcebergStore] = {}

    @staticmethod
    def _name(path: str) -> str:
        return "lake." + path.rpartition("/")[2].replace("-", "_")

    def store(self, path: str) -> IcebergStore:
        return self.stores[in_sql(self._name(path))]

    def make(self, path: str) -> None:
        self.stores[in_sql(self._name(path))] = IcebergStore(self._world.new_id("table"))

    def sink(self, session: Any, path: str) -> IcebergSink:
        return IcebergSink(session, self._name(path), self._world.schema, keyed=self._world.keyed)

    def append(self, frame: Frame, name: str, options: dict[str, Any]) -> None:
        store = self.stores[name]
        self._world.steps.step(frame.sparkSession)
        store.commit(options[MARK], store.rows + frame.rows)
        self._world.steps.committed(frame.sparkSession)

    def merge(self, session: Any, statement: str, views: Any) -> None:
        name = statement.removeprefix("MERGE INTO ").split(" ")[0]
        store, records = self.stores[name], self._world.records
        before = store.current
        rows: Rows = records.cast(sql.merge(statement, (records.columns, store.rows), views))
        self._world.steps.step(session)
        if store.current != before:
            raise QueryFailedError("Found conflicting files that can contain records matching")
        store.commit(session.conf[MARK], rows)
        self._world.steps.committed(session)

    def rows(self, path: str) -> Rows:
        return self.store(path).rows

    def backup(self, path: str) -> IcebergStore:
        return self.store(path).copied()

    def restore(self, path: str, backup: IcebergStore) -> None:
        self.stores[in_sql(self._name(path))] = backup.copied()

    def change_table(self, path: str, choice: int) -> bool:
        """Somebody compacts the table, tags it, or rolls it back; tell whether rows went."""
        store = self.store(path)
        if choice % 4 == 0:
            store.commit("", store.rows)
        elif choice % 4 == 1 and store.current is not None:
            store.tagged.add(store.current)
        elif there := store.ancestors():
            chosen = there[choice % len(there)]
            if chosen != store.current and self._only_takes_out(store, chosen):
                store.current = chosen
                return True
        return False

    def _only_takes_out(self, store: IcebergStore, chosen: int) -> bool:
        """Of a table with keys any ancestor's rows were there before."""
        return self._world.records is not None or set(store.commits[chosen].rows) <= set(store.rows)
