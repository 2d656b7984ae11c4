"""A Delta table as Delta itself sees it: its snapshot, and what its commits say.

Delta's own `DeltaLog` and `DESCRIBE HISTORY` are asked. Of the files of `_delta_log` the newest few
commits are read, where the snapshot says that they lie: the log may be kept elsewhere
(catalog-managed commits), and listing it is slow on an object store.
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
    known_table_id,
    latest_snapshot,
)
from ottla.pipelines.spark.jvm.files import Files
from ottla.pipelines.target.commit_metadata import read_metadata
from ottla.pipelines.target.restored import RESTORE, Restore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Delta sets this in the session of a write: the version that the write committed.
LAST_COMMIT: Final = "spark.databricks.delta.lastCommitVersionInSession"
WRITERS_KEPT: Final = "delta.setTransactionRetentionDuration"
"""A table that has it forgets the last batch of a writer after that time."""
# How many commits are looked at, from the latest backwards. Delta keeps 30 days of them.
MAX_HISTORY: Final = 1_000
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

    `time_s`: when it was committed, in seconds since 1970. `writers`: the batch of each writer in
    it, by `txnAppId`; None where they were not read.
    """

    version: int
    metadata: str
    parameters: dict[str, str]
    time_s: float = 0.0
    restore: Restore | None = None
    writers: dict[str, int] | None = None

    @property
    def batch(self) -> tuple[str, int] | None:
        """The query's id and the batch's number, None for a commit that is not of a stream."""
        if found := read_metadata(self.metadata):
            return found.query_id, found.batch
        if "queryId" in self.parameters:
            return self.parameters["queryId"], int(self.parameters["epochId"])
        return None

    @property
    def cloned_from(self) -> str:
        """The table whose rows this commit has brought (CLONE), empty for other commits."""
        is_clone = "isShallow" in self.parameters and "sourceVersion" in self.parameters
        return str(self.parameters.get("source") or "another table") if is_clone else ""


class _History:
    """The commits of one version of a table, each read when it is asked for, and once."""

    def __init__(self, spark: SparkSession, location: str, snapshot: Snapshot) -> None:
        self.of = (snapshot.table_id, snapshot.version)
        self._spark = spark
        self._location = location
        self._files = snapshot.newest_commits(spark)
        self._commits: list[Commit] = []  # the newest first
        self._described = 0  # so many of the newest were asked of Delta

    def newest(self, most: int) -> Iterator[Commit]:
        """Return at most so many commits, the newest first."""
        index = 0
        while index < most and (index < len(self._commits) or self._read_on(most)):
            yield self._commits[index]
            index += 1

    def writers(self) -> dict[str, int] | None:
        """Return the last batch of each writer, by `txnAppId`; None where the commits that were
        read so far do not tell.
        """
        if len(self._commits) <= self.of[1]:
            return None
        found: dict[str, int] = {}
        for commit in reversed(self._commits):
            if commit.writers is None:
                return None
            found |= commit.writers
        return found

    def _read_on(self, most: int) -> bool:
        """Read at least one more commit; False where there is none."""
        version = self.of[1] - len(self._commits)
        if version < 0:
            return False
        if self._described == 0:
            file = next(self._files, None)
            commit = None if file is None else _logged(file)
            if commit is not None:
                self._commits.append(commit)
                return True
        if self._described >= most:
            return False
        # A job of Spark, the first of which takes a second or two.
        self._described = most
        quoted = self._location.replace("`", "``")
        rows = self._spark.sql(f"DESCRIBE HISTORY delta.`{quoted}` LIMIT {most}")
        found = map(_commit, rows.selectExpr(*_OF_COMMIT).collect())
        # Others may have written since the snapshot was taken.
        older = [commit for commit in found if commit.version <= version]
        self._commits += older
        return bool(older)


class DeltaTable:
    """One table, by the folder where it lies."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._spark = spark
        self.location = location
        self._history: _History | None = None

    def forget(self) -> None:
        """Drop what Delta remembers of this folder: a table made again there is another table."""
        forget_table(self._spark, self.location)
        self._history = None

    def snapshot(self) -> Snapshot:
        """Return the latest snapshot."""
        return latest_snapshot(self._spark, self.location)

    def known_id(self) -> str:
        """Return the id of the table as this process saw it last, such as by its own commit."""
        return known_table_id(self._spark, self.location)

    def exists(self) -> bool:
        return self.snapshot().version >= 0

    def writers(self) -> dict[str, int]:
        """Return the last batch of each writer, by `txnAppId`.

        Delta rebuilds the table's state for it, which takes seconds the first time in a program. It
        is not asked where `commits` has read the whole log, as that of a new table.
        """
        snapshot, history = self.snapshot(), self._history
        if history is not None and history.of == (snapshot.table_id, snapshot.version):
            known = history.writers()
            # A table that forgets its writers does so when its state is rebuilt.
            if known is not None and WRITERS_KEPT not in snapshot.properties():
                return known
        return snapshot.transactions()

    def holds_other_files(self) -> bool:
        """Tell whether the folder has files but is no Delta table."""
        names = Files(self._spark, self.location).names()
        return any(not name.startswith(("_", ".")) for name in names) and not self.exists()

    def find(self, query_id: str, batch: int) -> int | None:
        """Return the version that holds a batch of a query, None when the history has none.

        Commits of `to_delta` name it in their metadata, those of Delta's own streaming sink in
        their operation.
        """
        of_batch = (one.version for one in self.commits() if one.batch == (query_id, batch))
        return next(of_batch, None)

    def holds(self, query_id: str, batch: int) -> bool:
        """Tell whether the table has a commit of this batch or a later one of the query."""
        if not self.exists():
            return False
        written = (commit.batch for commit in self.commits())
        if any(one is not None and one[0] == query_id and one[1] >= batch for one in written):
            return True
        return self.writers().get(query_id, -1) >= batch

    def commits(self, most: int = MAX_HISTORY) -> Iterator[Commit]:
        """Return the latest commits, the newest first; none when there is no table.

        They are read as they are asked for: the driver reads the newest, Delta the others. Several
        checks of a start ask for them, and what was read of a version stays true.
        """
        snapshot = self.snapshot()
        if snapshot.version < 0:
            return iter(())
        history = self._history
        if history is None or history.of != (snapshot.table_id, snapshot.version):
            self._history = history = _History(self._spark, self.location, snapshot)
        return history.newest(most)


def _logged(file: LoggedCommit) -> Commit | None:
    """Return the commit in a file of a log, None where Delta itself has to read it.

    A RESTORE is compared with the times of commits, of which Delta knows more than their files.
    """
    said: dict[str, Any] = next(_actions(file, "commitInfo"), {})
    if said.get("operation") == RESTORE:
        return None
    parameters = said.get("operationParameters") or {}
    parameters = {name: _as_delta_says(value) for name, value in parameters.items()}
    writers = None
    if file.is_whole:
        writers = {str(one["appId"]): int(one["version"]) for one in _actions(file, "txn")}
    metadata = said.get("userMetadata") or ""
    return Commit(file.version, metadata, parameters, file.time_s, writers=writers)


def _actions(file: LoggedCommit, name: str) -> Iterator[dict[str, Any]]:
    # A file may have other characters that end a line for Python inside of its texts.
    for line in file.text.split("\n"):
        if f'"{name}"' in line and (action := json.loads(line).get(name)) is not None:
            yield action


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
