"""A Delta table as Delta itself sees it: its snapshot, and what its commits say.

Delta's own `DeltaLog` and `DESCRIBE HISTORY` are asked, and no files of `_delta_log` are read but
those that a snapshot names: the log may be kept elsewhere (catalog-managed commits), and listing it
is slow on an object store.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.spark.jvm.delta_log import (
    LoggedCommit,
    Snapshot,
    forget_table,
    latest_snapshot,
)
from ottla.pipelines.spark.jvm.files import Files
from ottla.pipelines.target.commit_metadata import read_metadata
from ottla.pipelines.target.restored import RESTORE, Restore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Delta sets this in the session of a write: the version that the write committed.
LAST_COMMIT: Final = "spark.databricks.delta.lastCommitVersionInSession"
# How many commits are looked at, from the latest backwards. Delta keeps 30 days of them.
MAX_HISTORY: Final = 1_000
_FEW: Final = 10
_OF_COMMIT: Final = (
    "version",
    "userMetadata",
    "operation",
    "operationParameters",
    "CAST(timestamp AS DOUBLE) AS time_s",
    "CAST(try_to_timestamp(try_element_at(operationParameters, 'timestamp')) AS DOUBLE) AS"
    " restored_s",
)


@dataclass(frozen=True, slots=True)
class Commit:
    """One version of a table with the `userMetadata` of its commit, empty where it has none.

    `time_s`: when it was committed, in seconds since 1970.
    """

    version: int
    metadata: str
    parameters: dict[str, str]
    time_s: float = 0.0
    restore: Restore | None = None

    @property
    def batch(self) -> tuple[str, int] | None:
        """The query's id and the batch's number, None for a commit that is not of a stream."""
        if found := read_metadata(self.metadata):
            return found.query_id, found.batch
        if "queryId" in self.parameters:
            return self.parameters["queryId"], int(self.parameters["epochId"])
        return None


@dataclass(frozen=True, slots=True)
class _Read:
    """The latest commits, at most `most` of them, as they were at a version of a table."""

    table_id: str
    version: int
    most: int
    commits: tuple[Commit, ...]


_NOTHING: Final = _Read("", -1, 0, ())


class DeltaTable:
    """One table, by the folder where it lies."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._spark = spark
        self.location = location
        self._read = _NOTHING

    def forget(self) -> None:
        """Drop what Delta remembers of this folder: a table made again there is another table."""
        forget_table(self._spark, self.location)
        self._read = _NOTHING

    def snapshot(self) -> Snapshot:
        """Return the latest snapshot."""
        return latest_snapshot(self._spark, self.location)

    def exists(self) -> bool:
        return self.snapshot().version >= 0

    def holds_other_files(self) -> bool:
        """Tell whether the folder has files but is no Delta table."""
        names = Files(self._spark, self.location).names()
        return any(not name.startswith(("_", ".")) for name in names) and not self.exists()

    def find(self, query_id: str, batch: int) -> int | None:
        """Return the version that holds a batch of a query, None when the history has none.

        Commits of `to_delta` name it in their metadata, those of Delta's own streaming sink in
        their operation.
        """
        for most in (_FEW, MAX_HISTORY):
            for commit in self.commits(most):
                if commit.batch == (query_id, batch):
                    return commit.version
        return None

    def holds(self, query_id: str, batch: int) -> bool:
        """Tell whether the table has a commit of this batch or a later one of the query."""
        snapshot = self.snapshot()
        if snapshot.version < 0:
            return False
        if snapshot.transactions().get(query_id, -1) >= batch:
            return True
        written = (commit.batch for commit in self.commits())
        return any(one is not None and one[0] == query_id and one[1] >= batch for one in written)

    def commits(self, most: int = MAX_HISTORY) -> Iterator[Commit]:
        """Return the latest commits, the newest first; none when there is no table.

        Several checks of a start ask for them, and what was read of a version stays true. DESCRIBE
        HISTORY is a job of Spark, the first of which takes a second or two: the commits of a young
        table are read here.
        """
        snapshot = self.snapshot()
        if snapshot.version < 0:
            return iter(())
        is_read = (self._read.table_id, self._read.version) == (snapshot.table_id, snapshot.version)
        if not is_read or self._read.most < most:
            found = _logged(snapshot.newest_commits(self._spark, most))
            if found is None:
                quoted = self.location.replace("`", "``")
                rows = self._spark.sql(f"DESCRIBE HISTORY delta.`{quoted}` LIMIT {most}")
                found = tuple(map(_commit, rows.selectExpr(*_OF_COMMIT).collect()))
            self._read = _Read(snapshot.table_id, snapshot.version, most, found)
        return iter(self._read.commits[:most])


def _logged(files: list[LoggedCommit] | None) -> tuple[Commit, ...] | None:
    """Return the commits in these files of a log, None where Delta itself has to read them.

    A RESTORE is compared with the times of commits, of which Delta knows more than their files.
    """
    found = []
    for file in files or ():
        # A file may have other characters that end a line for Python inside of its texts.
        lines = (line for line in file.text.split("\n") if '"commitInfo"' in line)
        infos = (json.loads(line).get("commitInfo") for line in lines)
        said: dict[str, Any] = next((info for info in infos if info is not None), {})
        if said.get("operation") == RESTORE:
            return None
        parameters = said.get("operationParameters") or {}
        parameters = {name: _as_delta_says(value) for name, value in parameters.items()}
        metadata = said.get("userMetadata") or ""
        found.append(Commit(file.version, metadata, parameters, file.time_s))
    return None if files is None else tuple(found)


def _as_delta_says(value: Any) -> Any:
    """Return a parameter of a commit as DESCRIBE HISTORY has it: a text or null."""
    is_text = value is None or isinstance(value, str)
    return value if is_text else json.dumps(value, separators=(",", ":"))


def _commit(row: Any) -> Commit:
    parameters = row["operationParameters"] or {}
    restore = None
    if row["operation"] == RESTORE:
        version = parameters.get("version")
        restore = Restore(None if version is None else int(version), row["restored_s"])
    return Commit(
        int(row["version"]), row["userMetadata"] or "", parameters, row["time_s"], restore
    )


def forget_last_commit(session: SparkSession) -> None:
    """Make `last_commit` of a session None until its next write commits."""
    session.conf.unset(LAST_COMMIT)


def last_commit(session: SparkSession) -> int | None:
    """Return the version of the session's last commit since `forget_last_commit`."""
    found = session.conf.get(LAST_COMMIT, None)
    return None if found is None else int(found)
