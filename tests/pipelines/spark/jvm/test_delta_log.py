"""What Delta's own object of a table says."""

import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from ottla.pipelines.spark.jvm import delta_log
from ottla.pipelines.spark.jvm.attributes import java_class
from ottla.pipelines.spark.jvm.delta_log import Snapshot, latest_snapshot
from ottla.pipelines.spark.jvm.files import FileStatus

pytestmark = pytest.mark.spark

SCHEMA = StructType([StructField("id", IntegerType(), False), StructField("day", StringType())])
WEEK_MS = 7 * 24 * 3_600_000


@pytest.fixture
def folder(spark: Any, tmp_path: Path) -> str:
    """A table with two commits of one writer."""
    location = f"file:{tmp_path}/t"
    delta_log.create_table(
        spark, location, SCHEMA, ("day",), {"delta.appendOnly": "true"}, is_name=False
    )
    append(spark, location, 0)
    append(spark, location, 1)
    return location


def append(spark: Any, location: str, batch: int) -> None:
    frame = spark.createDataFrame([(batch, "a")], "id INT, day STRING").coalesce(1)
    writer = frame.write.format("delta").mode("append").option("txnAppId", "query")
    writer.option("txnVersion", batch).save(location)


def test_the_first_commit_of_a_table_runs_no_job_of_spark(spark: Any, tmp_path: Path) -> None:
    context, group = spark.sparkContext, str(tmp_path)
    context.setJobGroup(group, "the table")
    try:
        delta_log.create_table(spark, f"file:{tmp_path}/t", SCHEMA, (), {}, is_name=False)
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    assert latest_snapshot(spark, f"file:{tmp_path}/t").version == 0
    assert list(context.statusTracker().getJobIdsForGroup(group)) == []


def test_a_snapshot(spark: Any, folder: str) -> None:
    snapshot = latest_snapshot(spark, folder)
    assert (snapshot.version, snapshot.partition_columns) == (2, ("day",))
    assert snapshot.schema.simpleString() == "struct<id:int,day:string>"
    assert all(field.nullable for field in snapshot.schema.fields)
    assert len(snapshot.table_id) == 36
    assert snapshot.properties()["delta.appendOnly"] == "true"
    assert snapshot.transactions() == {"query": 1}
    assert abs((snapshot.written_ms()["query"] or 0) / 1000 - time.time()) < 600
    assert snapshot.kept_ms(spark) == WEEK_MS
    assert snapshot.reader_features() <= {"deletionVectors", "columnMapping", "timestampNtz"}
    assert delta_log.count_files(spark, folder) == 2


def test_a_thread_without_a_session_reads_a_checkpoint_of_delta(spark: Any, tmp_path: Path) -> None:
    """Delta asks for the session of Java's thread then. A thread of the caller's has none."""
    location = f"file:{tmp_path}/t"
    often = {"delta.checkpointInterval": "2"}
    delta_log.create_table(spark, location, SCHEMA, (), often, is_name=False)
    for batch in range(4):
        append(spark, location, batch)
    for checksum in (tmp_path / "t" / "_delta_log").glob("*.crc"):
        checksum.unlink()  # it has the answer, too
    delta_log.forget_table(spark, location)

    def read() -> dict[str, int]:
        java_class(spark, "org.apache.spark.sql.classic.SparkSession").clearActiveSession()
        return latest_snapshot(spark, location).transactions()

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(read).result() == {"query": 3}


def test_what_a_reader_must_support(spark: Any, folder: str) -> None:
    feature = "'delta.enableDeletionVectors' = 'true'"
    spark.sql(f"ALTER TABLE delta.`{folder}` SET TBLPROPERTIES ({feature})")
    assert latest_snapshot(spark, folder).reader_features() == {"deletionVectors"}


def test_a_folder_without_a_table(spark: Any, tmp_path: Path) -> None:
    snapshot = latest_snapshot(spark, f"file:{tmp_path}/nothing")
    assert snapshot == Snapshot(-1, "", (), StructType([]), snapshot._java)


def test_a_table_made_again_is_another_one(spark: Any, folder: str, tmp_path: Path) -> None:
    before = latest_snapshot(spark, folder).table_id
    (tmp_path / "t").rename(tmp_path / "former")
    delta_log.forget_table(spark, folder)
    assert latest_snapshot(spark, folder).version == -1
    delta_log.create_table(spark, folder, SCHEMA, (), {}, is_name=False)
    delta_log.create_table(spark, folder, SCHEMA, (), {}, is_name=False)
    assert latest_snapshot(spark, folder).version == 0
    assert latest_snapshot(spark, folder).table_id != before


def test_a_table_of_the_catalog(spark: Any) -> None:
    delta_log.create_table(spark, "delta_log_t", SCHEMA, (), {}, is_name=True)
    try:
        assert spark.table("delta_log_t").schema.names == ["id", "day"]
    finally:
        spark.sql("DROP TABLE delta_log_t")


def test_the_snapshot_of_a_commit_is_the_one_that_delta_uses_next(spark: Any, folder: str) -> None:
    for batch in range(2, 12):
        append(spark, folder, batch)
        found = delta_log.committed_snapshot(spark, folder)
        assert found.version() == batch + 1
        assert found.equals(latest_snapshot(spark, folder)._java)


def versions(snapshot: Snapshot, spark: Any) -> list[int]:
    return [commit.version for commit in snapshot.newest_commits(spark)]


def test_the_newest_commits(spark: Any, folder: str) -> None:
    snapshot = latest_snapshot(spark, folder)
    found = list(snapshot.newest_commits(spark))
    assert [one.version for one in found] == [2, 1, 0]
    assert all('"commitInfo"' in one.text and one.time_s > 0 for one in found)


def test_commits_before_a_checkpoint_have_their_version_as_a_name(
    spark: Any, tmp_path: Path
) -> None:
    location = f"file:{tmp_path}/t"
    often = {"delta.checkpointInterval": "2"}
    delta_log.create_table(spark, location, SCHEMA, (), often, is_name=False)
    for batch in range(3):
        append(spark, location, batch)
    delta_log.forget_table(spark, location)
    snapshot = latest_snapshot(spark, location)
    assert snapshot._java.logSegment().deltas().size() == 1
    assert versions(snapshot, spark) == [3, 2, 1, 0]
    (tmp_path / "t/_delta_log/00000000000000000001.json").unlink()  # Delta does so after 30 days
    assert versions(snapshot, spark) == [3, 2]


def test_few_commits_are_read_here(
    spark: Any, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = latest_snapshot(spark, folder)
    monkeypatch.setattr(delta_log, "MAX_READ_HERE", 2)
    assert versions(snapshot, spark) == [2, 1]


def test_the_first_line_of_a_large_commit_is_read(
    spark: Any, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = latest_snapshot(spark, folder)
    whole = [one.text for one in snapshot.newest_commits(spark)]
    assert all("\n" in text for text in whole)
    monkeypatch.setattr(delta_log, "MAX_READ_HERE_BYTES", 100)
    lines = [one.text for one in snapshot.newest_commits(spark)]
    assert lines == [text.split("\n")[0] for text in whole]
    # Other writers have their word on a commit in another line.
    file = Path(folder.removeprefix("file:")) / "_delta_log/00000000000000000001.json"
    first, *others = file.read_text().splitlines()
    file.write_text("\n".join([*others, first]))
    (file.parent / f".{file.name}.crc").unlink()
    assert versions(snapshot, spark) == [2]
    monkeypatch.setattr(delta_log, "MAX_READ_HERE_BYTES", 1_000_000)
    assert versions(snapshot, spark) == [2, 1, 0]


def test_a_commit_of_the_catalog_is_read_where_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    def status(folder: str, name: str) -> Any:
        parent = SimpleNamespace(toString=lambda: folder)
        return SimpleNamespace(
            getPath=lambda: SimpleNamespace(getName=lambda: name, getParent=lambda: parent)
        )

    staged = f"{4:020}.{uuid.uuid4()}.json"
    files = [
        status("/t/_delta_log", f"{1:020}.{3:020}.compacted.json"),
        status("/t/_delta_log", f"{3:020}.json"),
        status("/t/_delta_log/_staged_commits", staged),
    ]
    segment = SimpleNamespace(
        deltas=lambda: SimpleNamespace(size=lambda: len(files), apply=files.__getitem__),
        logPath=lambda: SimpleNamespace(toString=lambda: "/t/_delta_log"),
    )
    read: list[str] = []

    def noted(_: Any, folder: str) -> Any:
        return SimpleNamespace(
            status=lambda _: FileStatus(10, 1.0),
            read=lambda name: read.append(f"{folder}/{name}") or "{}",
        )

    monkeypatch.setattr(delta_log, "Files", noted)
    java = SimpleNamespace(logSegment=lambda: segment)
    spark: Any = None
    assert versions(Snapshot(4, "", (), StructType(), java), spark) == [4, 3, 2, 1, 0]
    assert read == [
        f"/t/_delta_log/_staged_commits/{staged}",
        *(f"/t/_delta_log/{version:020}.json" for version in (3, 2, 1, 0)),
    ]
