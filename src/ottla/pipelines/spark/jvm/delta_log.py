"""Delta's own object of a table, `DeltaLog`: its snapshots, and what Delta remembers of them.

Only calls that Delta 4.0.1 and 4.4.0 share are used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.spark.jvm.attributes import java_class, java_session
from ottla.pipelines.spark.jvm.classes import first_class
from ottla.pipelines.spark.jvm.files import Files
from ottla.pipelines.spark.jvm.sessions import ensure_active

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

DELTA_LOG: Final = "org.apache.spark.sql.delta.DeltaLog"
_EMPTY: Final = "org.apache.spark.sql.delta.DummySnapshot"
MAX_READ_HERE: Final = 20
"""So many commits are read by the driver; more are read by Spark."""
MAX_READ_HERE_BYTES: Final = 100_000
"""Of one commit; of a larger one the first line is read, where Delta writes what it is."""
# A commit that the catalog manages has an id in the name of its file until it is published.
_OF_COMMIT: Final = re.compile(r"(\d{20})(\.[0-9a-f-]{36})?\.json")


@dataclass(frozen=True, slots=True)
class LoggedCommit:
    """The file of one commit in a table's log, or its first line: a JSON object a line.

    `time_s`: of the file. `is_whole`: the text has all of its lines.
    """

    version: int
    time_s: float
    text: str
    is_whole: bool


@dataclass(frozen=True)
class Snapshot:
    """The latest version of a table; `version` is -1 when there is no table."""

    version: int
    table_id: str
    partition_columns: tuple[str, ...]
    schema: StructType
    _java: Any

    def properties(self) -> dict[str, str]:
        """Return the table's properties, such as its CHECK constraints."""
        return {
            str(key): str(value) for key, value in _pairs(self._java.metadata().configuration())
        }

    def reader_features(self) -> frozenset[str]:
        """Return what a reader must support, such as `deletionVectors`, by Delta's names."""
        protocol = json.loads(self._java.protocol().json())["protocol"]
        return frozenset(protocol.get("readerFeatures") or ())

    def transactions(self) -> dict[str, int]:
        """Return the last batch of each writer, by `txnAppId`; Delta may run a Spark job."""
        return {str(writer): int(batch) for writer, batch in _pairs(self._java.transactions())}

    def written_ms(self) -> dict[str, int | None]:
        """Return when each writer committed last, by `txnAppId`, in ms since 1970 by its clock.

        None: the writer did not say it. Delta may run a Spark job.
        """
        found: dict[str, int | None] = {}
        writers = self._java.setTransactions().iterator()
        while writers.hasNext():
            one = writers.next()
            when = one.lastUpdated()
            found[str(one.appId())] = int(when.get()) if when.isDefined() else None
        return found

    def newest_commits(self, spark: SparkSession) -> Iterator[LoggedCommit]:
        """Read the commits from this version backwards, the newest first, one when it is asked for.

        It ends where Delta itself has to read on: after MAX_READ_HERE commits, and at one that is
        not where it is looked for. The snapshot names the files since the last checkpoint of its
        log. What is older is published: it has its version as its name, also where the catalog
        manages the commits. The log is not listed.
        """
        segment = self._java.logSegment()
        listed = segment.deltas()
        count = int(listed.size())
        named: dict[int, tuple[str, str]] = {}
        for index in range(max(0, count - MAX_READ_HERE), count):
            path = listed.apply(index).getPath()
            # Others have several commits in one file.
            if match := _OF_COMMIT.fullmatch(str(path.getName())):
                named[int(match[1])] = (str(path.getParent().toString()), match[0])
        log = str(segment.logPath().toString())
        folders: dict[str, Files] = {}
        for version in range(self.version, max(-1, self.version - MAX_READ_HERE), -1):
            folder, name = named.get(version, (log, f"{version:020d}.json"))
            files = folders.get(folder) or folders.setdefault(folder, Files(spark, folder))
            if (commit := _read(files, name, version)) is None:
                return
            yield commit

    def kept_ms(self, spark: SparkSession) -> int:
        """Return for how long the table keeps files that no version needs any more."""
        return int(java_class(spark, DELTA_LOG).tombstoneRetentionMillis(self._java.metadata()))


def _read(files: Files, name: str, version: int) -> LoggedCommit | None:
    status = files.status(name)
    if status is None:
        return None
    is_large = status.size_bytes > MAX_READ_HERE_BYTES
    text = files.first_line(name) if is_large else files.read(name)
    if text is None or (is_large and '"commitInfo"' not in text):
        return None
    return LoggedCommit(version, status.modified_s, text, not is_large)


def committed_snapshot(spark: SparkSession, location: str) -> Any:
    """Return Delta's object of the snapshot that the commit just made, which the next one uses.

    The log is listed only where that commit wrote a checkpoint: Delta has another snapshot then.
    """
    log = _log(spark, location)
    snapshot = log.unsafeVolatileSnapshot()
    if int(snapshot.version()) % int(log.checkpointInterval(snapshot.metadata())):
        return snapshot
    return _updated(spark, log)


def empty_snapshot(spark: SparkSession, location: str) -> Any | None:
    """Return Delta's object of a snapshot of no table, None where Delta has none of that name."""
    if first_class(spark, [_EMPTY]) is None:
        return None
    log = _log(spark, location)
    return java_class(spark, _EMPTY)(log.logPath(), log)


def _updated(spark: SparkSession, log: Any) -> Any:
    none = java_class(spark, "scala.Option").empty()
    return log.update(False, none, none)


def _pairs(scala_map: Any) -> Iterator[tuple[Any, Any]]:
    pairs = scala_map.iterator()
    while pairs.hasNext():
        pair = pairs.next()
        yield pair._1(), pair._2()


def latest_snapshot(spark: SparkSession, location: str) -> Snapshot:
    """Return the latest snapshot of the table in a folder."""
    from pyspark.sql.types import StructType

    java = _updated(spark, _log(spark, location))
    version = int(java.version())
    if version < 0:
        return Snapshot(version, "", (), StructType([]), java)
    metadata = java.metadata()
    columns = metadata.partitionColumns()
    return Snapshot(
        version,
        str(metadata.id()),
        tuple(str(columns.apply(index)) for index in range(columns.size())),
        StructType.fromJson(json.loads(metadata.schema().json())),
        java,
    )


def forget_table(spark: SparkSession, location: str) -> None:
    """Drop what Delta remembers of a folder: a table made again there is another table."""
    path = java_class(spark, "org.apache.hadoop.fs.Path")(location)
    java_class(spark, DELTA_LOG).invalidateCache(java_session(spark), path)


def count_files(spark: SparkSession, location: str) -> int:
    """Return the number of files in the latest version that this process knows."""
    snapshot = _log(spark, location).unsafeVolatileSnapshot()
    checksum = snapshot.checksumOpt()
    # Without the checksum of a version Delta has to rebuild the table's state.
    return int(checksum.get().numFiles() if checksum.isDefined() else snapshot.numOfFiles())


def known_table_id(spark: SparkSession, location: str) -> str:
    """Return the id of the table in the latest version that this process knows."""
    return str(_log(spark, location).unsafeVolatileSnapshot().metadata().id())


def create_table(
    spark: SparkSession,
    target: str,
    schema: StructType,
    partition_by: tuple[str, ...],
    properties: Mapping[str, str],
    *,
    is_name: bool,
) -> None:
    """Create a table by its metadata alone: writing a frame of no rows takes a Spark job.

    `target` is its folder, or its name in the catalog. All columns may be null, as in a table that
    a frame was written to. Does nothing where the table exists.
    """
    session = java_session(spark)
    builder = java_class(spark, "io.delta.tables.DeltaTable").createIfNotExists(session)
    builder = builder.tableName(target) if is_name else builder.location(target)
    builder = builder.addColumns(session.parseDataType(schema.json()).asNullable())
    for name, value in properties.items():
        builder = builder.property(name, value)
    sequences = java_class(spark, "org.apache.spark.api.python.PythonUtils")
    builder.partitionedBy(sequences.toSeq(list(partition_by))).execute()


def _log(spark: SparkSession, location: str) -> Any:
    # Delta reads a checkpoint of its log with the session of Java's thread. A thread of the
    # caller's may have none.
    ensure_active(spark)
    return java_class(spark, DELTA_LOG).forTable(java_session(spark), location)
