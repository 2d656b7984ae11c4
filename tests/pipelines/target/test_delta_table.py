"""Which commit has a batch, by what the commits and the snapshot of a table say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import StructType

from ottla.pipelines.spark.jvm.delta_log import (
    LoggedCommit,
    Snapshot,
    create_table,
    latest_snapshot,
)
from ottla.pipelines.target.commit_metadata import CommitMetadata
from ottla.pipelines.target.delta_table import MAX_HISTORY, WRITERS_KEPT, Commit, DeltaTable


def by_pipeline(version: int, batch: int, query_id: str = "query-1") -> Commit:
    return Commit(version, CommitMetadata("q", query_id, batch, "c", {}, {}).text(), {})


def by_spark(version: int, batch: int, query_id: str = "query-1") -> Commit:
    return Commit(version, "", {"queryId": query_id, "epochId": str(batch)})


OTHERS = Commit(0, '{"by": "someone else"}', {"mode": "Append"})


class Table(DeltaTable):
    """A table with these commits, the newest first, and these last batches of its writers."""

    def __init__(self, *commits: Commit, writers: dict[str, int] | None = None) -> None:
        spark: Any = None
        super().__init__(spark, "/lake/t")
        self.newest_first = commits
        self.last_batches = writers or {}
        self.asked = 0

    def commits(self, most: int = MAX_HISTORY) -> Iterator[Commit]:
        self.asked += 1
        return iter(self.newest_first[:most])

    def snapshot(self) -> Snapshot:
        version = self.newest_first[0].version if self.newest_first else -1
        return Writers(version, "id", (), StructType([]), self.last_batches)


class Writers(Snapshot):
    def transactions(self) -> dict[str, int]:
        writers: dict[str, int] = self._java
        return writers


@pytest.mark.parametrize(
    ("commit", "batch"),
    [
        (by_pipeline(3, 7), ("query-1", 7)),
        (by_spark(3, 7), ("query-1", 7)),
        (OTHERS, None),
        (Commit(3, "", {}), None),
        (Commit(3, by_pipeline(3, 7).metadata, {"queryId": "x", "epochId": "1"}), ("query-1", 7)),
    ],
)
def test_the_batch_of_a_commit(commit: Commit, batch: tuple[str, int] | None) -> None:
    assert commit.batch == batch


def test_the_version_of_a_batch() -> None:
    table = Table(by_pipeline(9, 4), OTHERS, by_spark(7, 3), by_pipeline(6, 3, "query-2"))
    assert table.find("query-1", 4) == 9
    assert table.find("query-1", 3) == 7
    assert table.find("query-2", 3) == 6
    assert table.find("query-2", 4) is None


@pytest.mark.parametrize(
    ("table", "batch", "holds"),
    [
        (Table(), 0, False),
        (Table(OTHERS), 0, False),
        (Table(OTHERS, writers={"query-1": 4}), 4, True),
        (Table(OTHERS, writers={"query-1": 4}), 5, False),
        (Table(OTHERS, writers={"query-2": 9}), 4, False),
        (Table(by_pipeline(3, 4), OTHERS), 4, True),
        (Table(by_pipeline(3, 5), OTHERS), 4, True),
        (Table(by_pipeline(3, 3), OTHERS), 4, False),
        (Table(by_pipeline(3, 9, "query-2")), 4, False),
        (Table(by_spark(3, 5), writers={"query-1": 2}), 4, True),
    ],
)
def test_a_table_has_a_batch_or_a_later_one(table: Table, batch: int, holds: bool) -> None:
    assert table.holds("query-1", batch) is holds


def test_a_table_without_commits_has_no_history_to_read() -> None:
    table = Table()
    assert not table.holds("query-1", 0)
    assert table.asked == 0
    assert not table.exists()


class Asked:
    """A session that is asked for the history of a table at a version."""

    def __init__(self) -> None:
        self.version = 0
        self.statements: list[str] = []

    def sql(self, statement: str) -> Any:
        self.statements.append(statement)
        most = int(statement.rsplit(" ", 1)[1])
        rows: list[dict[str, Any]] = [
            {
                "version": version,
                "userMetadata": None,
                "operation": "WRITE",
                "operationParameters": {},
                "time_s": 1.0,
                "restored_s": None,
            }
            for version in range(self.version, -1, -1)[:most]
        ]
        return SimpleNamespace(selectExpr=lambda *_: SimpleNamespace(collect=lambda: rows))


class OfSession(DeltaTable):
    """The table whose history `Asked` tells."""

    table_id = "id"

    def snapshot(self) -> Snapshot:
        spark: Any = self._spark
        return Unlisted(spark.version, self.table_id, (), StructType([]), None)


class Unlisted(Snapshot):
    """A snapshot behind a checkpoint of Delta's log."""

    def newest_commits(self, spark: Any) -> Iterator[LoggedCommit]:
        return iter(())


def test_the_history_of_a_version_is_read_once() -> None:
    spark: Any = Asked()
    table = OfSession(spark, "/lake/t")

    def versions(most: int = MAX_HISTORY) -> list[int]:
        return [commit.version for commit in table.commits(most)]

    assert versions(1) == versions(1) == [0]
    assert versions() == [0]  # there is none before it
    assert len(spark.statements) == 1
    spark.version = 2
    assert versions(2) == versions(2) == [2, 1]
    assert versions() == [*versions(2), 0] == [2, 1, 0]
    assert len(spark.statements) == 3  # the last one asked for more
    table.table_id = "made again"
    assert versions() == [2, 1, 0]
    assert len(spark.statements) == 4


def line(**info: Any) -> str:
    return json.dumps({"commitInfo": info})


class Logged(DeltaTable):
    """A table whose snapshot names these files of its log, the newest first."""

    def __init__(self, *texts: str) -> None:
        spark: Any = Asked()
        super().__init__(spark, "/lake/t")
        self.asked = spark
        self.asked.version = len(texts) - 1
        numbers = reversed(range(len(texts)))
        self.files = [
            LoggedCommit(number, 2.0, text, is_whole=True)
            for number, text in zip(numbers, texts, strict=True)
        ]

    def snapshot(self) -> Snapshot:
        return Named(self.asked.version, "id", (), StructType([]), self.files)


class Named(Snapshot):
    """A snapshot whose log `_java` is; Delta has rebuilt its state where it says the writers."""

    kept: tuple[str, ...] = ()

    def properties(self) -> dict[str, str]:
        return dict.fromkeys(self.kept, "interval 30 days")

    def transactions(self) -> dict[str, int]:
        return {"by Delta": 1}

    def newest_commits(self, spark: Any) -> Iterator[LoggedCommit]:
        return iter(self._java)


def writing(version: int) -> str:
    return line(operation="WRITE", userMetadata=by_pipeline(version, version).metadata)


def test_a_commit_is_read_when_it_is_asked_for() -> None:
    table = Logged(*map(writing, range(9, -1, -1)))
    read: list[int] = []

    def reading() -> Iterator[LoggedCommit]:
        for file in table.files:
            read.append(file.version)
            yield file

    files = reading()
    table.snapshot = lambda: Named(9, "id", (), StructType([]), files)  # type: ignore[method-assign]
    assert table.find("query-1", 8) == 8
    assert read == [9, 8]
    assert table.find("query-1", 9) == 9
    assert table.find("query-1", 7) == 7
    assert read == [9, 8, 7]
    # Two that read at the same time get the same.
    one, other = table.commits(), table.commits()
    pairs = list(zip(one, other, strict=True))
    assert [first.version for first, _ in pairs] == list(range(9, -1, -1))
    assert all(first is second for first, second in pairs)
    assert read == list(range(9, -1, -1))


def test_delta_reads_on_where_the_files_end() -> None:
    table = Logged(*map(writing, range(9, -1, -1)))
    table.files = table.files[:4]
    assert [one.version for one in table.commits(4)] == [9, 8, 7, 6]
    assert table.asked.statements == []
    assert [one.version for one in table.commits()] == list(range(9, -1, -1))
    assert [one.batch is None for one in table.commits()] == [False] * 4 + [True] * 6
    assert len(table.asked.statements) == 1


def test_what_others_wrote_since_is_not_among_the_older_commits() -> None:
    table = Logged(*map(writing, range(9, -1, -1)))
    table.files = table.files[:4]
    newest = table.commits()
    assert next(newest).version == 9
    table.asked.version = 12  # `snapshot` says the same, but the history is that of before
    assert [one.version for one in newest] == list(range(8, -1, -1))


def test_a_young_table_is_read_without_a_job_of_spark() -> None:
    batch = by_pipeline(2, 7)
    table = Logged(
        "\n".join(['{"add":{}}', line(operation="WRITE", userMetadata=batch.metadata)]),
        line(operation="STREAMING UPDATE", operationParameters={"queryId": "q", "epochId": "3"}),
        '{"metaData":{"description":"\u2028 \\"commitInfo\\" here"}}\n{"protocol":{}}',
    )
    found = list(table.commits())
    assert [(one.version, one.batch) for one in found] == [
        (2, ("query-1", 7)),
        (1, ("q", 3)),
        (0, None),
    ]
    assert [one.time_s for one in found] == [2.0] * 3
    assert table.asked.statements == []


def wrote(writer: str, batch: int) -> str:
    return json.dumps({"txn": {"appId": writer, "version": batch, "lastUpdated": 1}})


def test_a_log_that_is_read_whole_tells_its_writers() -> None:
    table = Logged(
        line(operation="DELETE"),
        "\n".join([line(), wrote("one", 4), wrote("two", 9), '{"add":{"path":"\\"txn\\""}}']),
        "\n".join([line(), wrote("one", 5)]),
        line(operation="CREATE TABLE"),
    )
    assert table.writers() == {"by Delta": 1}
    next(table.commits())
    assert table.writers() == {"by Delta": 1}
    assert len(list(table.commits())) == 4
    assert table.writers() == {"one": 4, "two": 9}  # the newest, though another was higher


def test_delta_tells_the_writers_of_a_commit_that_is_too_large_to_be_read() -> None:
    table = Logged(line(), line(), line())
    table.files[1] = replace(table.files[1], is_whole=False)
    assert len(list(table.commits())) == 3
    assert table.writers() == {"by Delta": 1}


def test_delta_tells_the_writers_of_versions_that_are_not_read_here() -> None:
    table = Logged("\n".join([line(), wrote("one", 4)]), line())
    table.files = table.files[:1]
    assert len(list(table.commits())) == 2
    assert table.writers() == {"by Delta": 1}


def test_delta_tells_the_writers_of_a_table_that_has_another_version_now() -> None:
    table = Logged("\n".join([line(), wrote("one", 4)]))
    assert len(list(table.commits())) == 1
    assert table.writers() == {"one": 4}
    table.asked.version = 1
    assert table.writers() == {"by Delta": 1}


def test_delta_tells_the_writers_of_a_table_that_forgets_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = Logged("\n".join([line(), wrote("one", 4)]))
    assert len(list(table.commits())) == 1
    monkeypatch.setattr(Named, "kept", (WRITERS_KEPT,))
    assert table.writers() == {"by Delta": 1}


def test_parameters_that_are_no_texts() -> None:
    given = {"version": 4, "by": ["a", "b"], "description": None}
    table = Logged(line(operation="OTHER", operationParameters=given))
    said = {"version": "4", "by": '["a","b"]', "description": None}
    assert next(table.commits()).parameters == said


def test_delta_says_what_a_restore_left() -> None:
    table = Logged(line(operation="RESTORE", operationParameters={"version": 0}), line())
    assert [one.version for one in table.commits()] == [1, 0]
    assert len(table.asked.statements) == 1


@pytest.mark.spark
def test_a_log_is_read_as_delta_reads_it(spark: Any, tmp_path: Path) -> None:
    location = f"file:{tmp_path}/t"
    schema = StructType.fromDDL("id INT, day STRING")
    create_table(spark, location, schema, ("day",), {}, is_name=False)
    rows = spark.createDataFrame([(1, "a")], schema).coalesce(1)
    writer = rows.write.format("delta").mode("append")
    writer.option("userMetadata", by_pipeline(1, 0).metadata).save(location)
    stream = spark.readStream.format("delta").load(location).writeStream.format("delta")
    stream = stream.option("checkpointLocation", f"{tmp_path}/state").trigger(availableNow=True)
    query = stream.start(location)
    assert query.awaitTermination(120)
    table = DeltaTable(spark, location)
    logged = list(table.commits(3))
    assert table.find(str(query.id), 0) == 2
    assert table.find("query-1", 0) == 1
    many = list(DeltaTable(spark, location).commits())
    assert logged == many[:3]
    writers = table.writers()
    assert writers == latest_snapshot(spark, location).transactions() == {str(query.id): 0}

    class Slow(DeltaTable):
        def snapshot(self) -> Snapshot:
            found = latest_snapshot(self._spark, self.location)
            return Unlisted(found.version, found.table_id, (), found.schema, None)

    told = list(Slow(spark, location).commits())
    assert [(one.version, one.metadata, one.parameters) for one in many] == [
        (one.version, one.metadata, one.parameters) for one in told
    ]
    assert [one.time_s for one in many] == pytest.approx([one.time_s for one in told])
    spark.sql(f"RESTORE TABLE delta.`{location}` TO VERSION AS OF 1")
    restored = list(table.commits())
    assert [one.version for one in restored] == [3, 2, 1, 0]
    assert restored[0].restore is not None
