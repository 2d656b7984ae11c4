"""Targets with transactions: what Delta, PostgreSQL and Spark's file sink do with a batch."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tests.pipelines.model import sql
from tests.pipelines.model.errors import QueryFailedError
from tests.pipelines.model.files import Killed, MemoryFiles
from tests.pipelines.model.iceberg import IcebergTarget
from tests.pipelines.model.spark import Frame
from tests.pipelines.model.topics import TopicTargets

from ottla.pipelines.sinks.delta.sink import DeltaSink
from ottla.pipelines.sinks.delta.target import Target
from ottla.pipelines.sinks.files.sink import FilesSink
from ottla.pipelines.sinks.postgresql.settings import Database
from ottla.pipelines.sinks.postgresql.sink import JdbcSink
from ottla.pipelines.sinks.postgresql.table import TableName
from ottla.pipelines.spark.jvm.jdbc_connection import Copied
from ottla.pipelines.target.delta_table import LAST_COMMIT, Commit
from ottla.pipelines.target.restored import Restore

Rows = tuple[Any, ...]
# Delta's own names: what a MERGE has for the options of a write.
QUERY = "spark.databricks.delta.write.txnAppId"
BATCH = "spark.databricks.delta.write.txnVersion"
METADATA = "spark.databricks.delta.commitInfo.userMetadata"
APART_MS = 600_000
"""So long after each other are the commits of a Delta table."""
_POSTGRES_TYPES = {
    "long": "bigint",
    "integer": "integer",
    "double": "double precision",
    "float": "real",
    "boolean": "boolean",
}


@dataclass
class DeltaStore:
    """A Delta table: its versions, and the last batch of each writer."""

    id: str
    versions: list[tuple[str, Restore | None, Rows]] = field(
        default_factory=lambda: [("", None, ())]
    )
    writers: dict[str, int] = field(default_factory=dict)
    written_ms: dict[str, int | None] = field(default_factory=dict)
    first_known: int = 0
    properties: dict[str, str] = field(
        default_factory=lambda: {"delta.enableDeletionVectors": "true"}
    )

    @property
    def rows(self) -> Rows:
        return self.versions[-1][2]

    @property
    def latest(self) -> int:
        return len(self.versions) - 1

    def copied(self) -> DeltaStore:
        return DeltaStore(
            self.id,
            list(self.versions),
            dict(self.writers),
            dict(self.written_ms),
            self.first_known,
            dict(self.properties),
        )

    def forget_writers(self) -> None:
        """Delta drops those that wrote longer ago than the table keeps them."""
        self.properties["delta.setTransactionRetentionDuration"] = "interval 7 days"
        self.writers.clear()
        self.written_ms.clear()

    def restore(self, version: int) -> None:
        """RESTORE TABLE: the writers stay as they are."""
        self.versions.append(("", Restore(version, None), self.versions[version][2]))


class FakeDeltaTable:
    """`target.delta_table.DeltaTable`."""

    def __init__(self, spark: Any, location: str) -> None:
        self._spark = spark
        self.location = location

    @property
    def _store(self) -> DeltaStore:
        if self._spark.dead:
            raise Killed
        store: DeltaStore = self._spark.world.target.stores[self.location]
        return store

    def forget(self) -> None: ...

    def exists(self) -> bool:
        return True

    def known_id(self) -> str:
        return self._store.id

    def holds_other_files(self) -> bool:
        return False

    def snapshot(self) -> Any:
        store = self._store
        return SimpleNamespace(
            version=store.latest,
            table_id=store.id,
            schema=self._spark.world.table_schema,
            partition_columns=(),
            properties=lambda: dict(store.properties),
            written_ms=lambda: dict(store.written_ms),
            reader_features=frozenset,
        )

    def writers(self) -> dict[str, int]:
        return dict(self._store.writers)

    def commits(self, most: int = 1_000) -> list[Commit]:
        known = list(enumerate(self._store.versions))[self._store.first_known :]
        return [
            Commit(version, metadata, {}, float(version), restore)
            for version, (metadata, restore, _) in reversed(known[-most:])
        ]

    def find(self, query_id: str, batch: int) -> int | None:
        found = (one.version for one in self.commits() if one.batch == (query_id, batch))
        return next(found, None)


class DeltaTarget:
    """Delta tables, by their path."""

    can_start_from_table = True

    def __init__(self, world: Any) -> None:
        self._world = world
        self.stores: dict[str, DeltaStore] = {}

    def make(self, path: str) -> None:
        self.stores[f"file:{path}"] = DeltaStore(self._world.new_id("table"))

    def sink(self, session: Any, path: str) -> DeltaSink:
        target = Target(path, f"file:{path}", is_table=False)
        schema, keyed = self._world.schema, self._world.keyed
        return DeltaSink(session, target, schema, keyed=keyed, compact_after=0)

    def append(self, frame: Frame, location: str, options: dict[str, Any]) -> None:
        store = self.stores[location]
        writer = options.get("txnAppId"), options.get("txnVersion")
        metadata = options["userMetadata"]
        self._commit(frame.sparkSession, store, writer, metadata, lambda: store.rows + frame.rows)

    def merge(self, session: Any, statement: str, views: Any) -> None:
        """A MERGE: the id and metadata of its batch are settings of the session."""
        path = re.search(r"delta\.`([^`]*)`", statement)
        assert path is not None
        store, conf = self.stores[path[1]], session.conf
        target = self._world.records

        def merged() -> Rows:
            found = sql.merge(statement, (target.columns, store.rows), views)
            rows: Rows = target.cast(found)
            return rows

        writer = conf[QUERY], int(conf[BATCH])
        self._commit(session, store, writer, conf[METADATA], merged)

    def _commit(
        self,
        session: Any,
        store: DeltaStore,
        writer: tuple[Any, Any],
        metadata: str,
        change: Callable[[], Rows],
    ) -> None:
        """A transaction: of a writer that has an id, no batch comes twice."""
        self._world.steps.step(session)
        name, batch = writer
        if name is not None and store.writers.get(name, -1) >= batch:
            return
        rows = change()
        if name is not None:
            store.writers[name] = batch
            store.written_ms[name] = len(store.versions) * APART_MS
        store.versions.append((metadata, None, rows))
        session.conf.set(LAST_COMMIT, str(store.latest))
        self._world.steps.committed(session)

    def rows(self, path: str) -> Rows:
        return self.stores[f"file:{path}"].rows

    def now_ms(self, path: str) -> int:
        return len(self.stores[f"file:{path}"].versions) * APART_MS

    def backup(self, path: str) -> DeltaStore:
        return self.stores[f"file:{path}"].copied()

    def restore(self, path: str, backup: DeltaStore) -> None:
        self.stores[f"file:{path}"] = backup.copied()


@dataclass
class DatabaseState:
    """A database with one table: rows, and the marker of each query."""

    oid: int
    rows: Rows = ()
    is_made: bool = False
    markers: dict[tuple[str, int], tuple[int, str, int]] = field(default_factory=dict)
    clock: int = 0

    def copied(self) -> DatabaseState:
        return DatabaseState(self.oid, self.rows, self.is_made, dict(self.markers), self.clock)


class FakeConnection:
    """`spark.jvm.jdbc_connection.Connection`: knows the statements of `JdbcSink` by their words."""

    def __init__(self, spark: Any, url: str, settings: dict[str, str]) -> None:
        self._spark = spark
        self._target: DatabaseTarget = spark.world.target
        spark.world.steps.step(spark)  # after this the transaction is alone: it has its locks
        self._work = self._target.database.copied()
        self._temporary: tuple[list[str], Rows] = [], ()

    def __enter__(self) -> FakeConnection:
        return self

    def __exit__(self, *_: object) -> None: ...

    def query(self, statement: str, *values: str) -> list[Any]:
        work = self._work
        if "pg_advisory_xact_lock" in statement:
            return []
        if "current_schema()" in statement:
            return [("public",)]
        if "pg_namespace" in statement or "SELECT to_regclass(?)" in statement:
            return [("1",)]
        if "relkind" in statement:
            return [(str(work.oid), "r", "f", "f")] if work.is_made else []
        if "string_agg" in statement:
            return [("",)]
        if "pg_rewrite" in statement:
            return []
        if "row_security_active" in statement:
            return [("f",)]
        if "pg_trigger" in statement:
            return [("0",)]
        if "format_type" in statement:
            return [
                (one.name, kind, kind, "f", "f", "f", "f", None, kind, "f")
                for one in self._spark.world.table_schema.fields
                for kind in (_POSTGRES_TYPES[one.dataType.typeName()],)
            ]
        if "indisunique" in statement:
            return [(json.dumps(self._spark.world.keyed.keys), "f", "t_pkey")]
        if "json_build_object" in statement:
            target = self._spark.world.records.columns, work.rows
            return sql.query(statement, target, self._temporary)
        assert "SELECT batch, metadata, query FROM" in statement, statement
        oid, *query = values
        found = [
            (written, str(batch), metadata, name)
            for (name, table), (batch, metadata, written) in work.markers.items()
            if table == int(oid)
            and (name == query[0] if query else (name == "") == ("query = ''" in statement))
        ]
        return [marker for _, *marker in sorted(found, reverse=True)]

    def execute(self, statement: str, *values: str) -> int:
        work = self._work
        if statement.startswith("CREATE TABLE"):
            work.is_made = work.is_made or "ottla_batches" not in statement
            return 0
        if statement.startswith("CREATE TEMPORARY TABLE"):
            return 0
        if "ottla_rows" in statement:
            records = self._spark.world.records
            target = records.columns, work.rows
            keys = records.keyed.keys
            work.rows = records.cast(sql.change(statement, target, self._temporary, keys))
            return 0
        if statement.startswith("DELETE FROM"):
            columns = self._spark.world.records.columns
            work.rows = sql.truncate(statement, (columns, work.rows), values)
            return 0
        assert statement.startswith("INSERT INTO"), statement
        query, oid, batch, metadata = values
        known = work.markers.get((query, int(oid)))
        if known is not None and " WHERE " in statement and known[0] >= int(batch):
            return 0
        work.clock += 1
        work.markers[query, int(oid)] = (int(batch), metadata, work.clock)
        return 1

    def copy(self, statement: str, chunks: Iterable[tuple[Any, ...]]) -> Copied:
        rows = tuple(chunks)
        found = re.match(r"COPY (\S+) \((.*?)\)", statement)
        assert found is not None, statement
        if "ottla_rows" in found[1]:
            self._temporary = [name.strip('" ') for name in found[2].split(",")], rows
        else:
            self._work.rows += rows
        return Copied(0, len(rows), len(rows))

    def commit(self) -> None:
        self._spark.world.steps.step(self._spark, alone=True)
        self._target.database = self._work
        self._spark.world.steps.committed(self._spark)


class DatabaseTarget:
    """One database, with one table."""

    can_start_from_table = True

    def __init__(self, world: Any) -> None:
        self._world = world
        self.database = DatabaseState(0)

    def make(self, path: str) -> None:
        number = self._world.new_number()
        self.database = DatabaseState(
            number, markers=self.database.markers, clock=self.database.clock
        )

    def sink(self, session: Any, path: str) -> JdbcSink:
        database, keyed = Database("jdbc:x", "postgresql://x"), self._world.keyed
        return JdbcSink(session, database, TableName("", "t"), self._world.schema, keyed=keyed)

    def rows(self, path: str) -> Rows:
        return self.database.rows

    def backup(self, path: str) -> DatabaseState:
        return self.database.copied()

    def restore(self, path: str, backup: DatabaseState) -> None:
        self.database = backup.copied()


class FakeFileSink:
    """`sinks.files.jvm.SparkFileSink`: a batch is there when a list names its files."""

    def __init__(self, session: Any, file_format: str) -> None:
        self._session = session

    def can_hold(self, kind: Any) -> bool:
        return True

    def add_batch(self, location: str, partition_by: Any, number: int, frame: Frame) -> None:
        files = MemoryFiles(self._session, location)
        known = [int(name) for name in files.names("_spark_metadata")]
        if number <= max(known, default=-1):
            return
        if not files.create(f"_spark_metadata/{number}", json.dumps(frame.rows)):
            raise QueryFailedError(f"Race while writing batch {number}")
        self._session.world.steps.committed(self._session)


class FolderTarget:
    """Folders of files, in the world's folders."""

    can_start_from_table = False

    def __init__(self, world: Any) -> None:
        self._world = world

    def make(self, path: str) -> None:
        self._world.folders[path] = {}

    def sink(self, session: Any, path: str) -> FilesSink:
        return FilesSink(session, path, self._world.schema)

    def rows(self, path: str) -> Rows:
        lists = self._world.folders[path].items()
        return tuple(
            tuple(row)
            for name, text in lists
            if name.startswith("_spark_metadata/")
            for row in json.loads(text)
        )

    def backup(self, path: str) -> dict[str, str]:
        return dict(self._world.folders[path])

    def restore(self, path: str, backup: dict[str, str]) -> None:
        self._world.folders[path] = dict(backup)


TARGETS = {
    "delta": DeltaTarget,
    "iceberg": IcebergTarget,
    "postgresql": DatabaseTarget,
    "files": FolderTarget,
    "topic": TopicTargets,
}
