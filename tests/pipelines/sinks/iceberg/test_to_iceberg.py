"""A stream into a real Iceberg table: each row once, whatever is killed or rolled back."""

from __future__ import annotations

import json
import re
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines import PipelineError, to_iceberg, topic
from ottla.pipelines.file.read import read_text
from ottla.pipelines.run import first_offsets
from ottla.pipelines.running import QUERIES
from ottla.pipelines.sinks.iceberg import IcebergSpec
from ottla.pipelines.sinks.iceberg.jvm import MARK
from ottla.pipelines.sinks.iceberg.sink import IcebergSink
from ottla.pipelines.spark.jvm.attributes import java_class, java_session
from ottla.pipelines.spec.problem import FileError
from ottla.pipelines.spec.sink import SinkSpec
from ottla.pipelines.target.commit_metadata import CommitMetadata, read_metadata

pytestmark = pytest.mark.spark

SCHEMA = "id BIGINT NOT NULL, word STRING"
COLUMNS = ("value.*", "partition", "offset", "timestamp")


def records(start: int, stop: int, word: str = "w") -> list[tuple[str, str]]:
    return [(str(n), json.dumps({"id": n, "word": f"{word}{n}"})) for n in range(start, stop)]


class Job:
    """One pipeline; `run` takes all there is and ends."""

    def __init__(self, spark: Any, bootstrap: str, name: str, catalog: str, folder: Path) -> None:
        self.spark, self.bootstrap, self.name = spark, bootstrap, name
        self.table, self.folder = f"{catalog}.db.flights", folder
        self.checkpoint = folder / "checkpoint"

    def start(self, trigger: Any = None, **how: Any) -> Any:
        where = {"starting": how.pop("starting", "earliest")}
        where["tombstones"] = how.pop("tombstones", None)
        frame = topic(
            self.spark, self.name, bootstrap_servers=self.bootstrap, schema=SCHEMA, **where
        )
        rows = frame.selectExpr(*how.pop("columns", COLUMNS))
        checkpoint = how.pop("checkpoint", self.checkpoint)
        return to_iceberg(rows, self.table, checkpoint=checkpoint, trigger=trigger, **how)

    def run(self, **how: Any) -> Any:
        query = self.start({"availableNow": True}, **how)
        query.awaitTermination()
        return query

    def rows(self, columns: str = "id") -> list[Any]:
        found = self.spark.table(self.table).selectExpr(*columns.split(", ")).collect()
        return sorted(row[0] if len(row) == 1 else tuple(row) for row in found)

    def forget_that_the_batch_is_done(self, batch: int) -> None:
        """As after a kill between the table's commit and Spark's own note."""
        (self.checkpoint / "commits" / str(batch)).unlink()
        (self.checkpoint / "commits" / f".{batch}.crc").unlink(missing_ok=True)


@pytest.fixture
def job(
    spark: Any, bootstrap: str, new_topic: Callable[..., str], catalog: str, tmp_path: Path
) -> Job:
    return Job(spark, bootstrap, new_topic(), catalog, tmp_path)


@pytest.mark.parametrize("keys", [None, pytest.param("id", marks=pytest.mark.full)])
def test_a_column_that_gets_a_narrower_type_takes_no_changed_value(
    job: Job, produce: Callable[..., None], keys: str | None
) -> None:
    """Spark makes 1 of 1.75 for a column that is INT, by default."""
    produce(job.name, records(0, 3))
    how: dict[str, Any] = {"columns": (*COLUMNS, "value.id + 0.75D AS amount")}
    query = job.start(**how, **({} if keys is None else {"keys": keys}))
    query.processAllAvailable()
    job.spark.sql(f"ALTER TABLE {job.table} DROP COLUMN amount")
    job.spark.sql(f"ALTER TABLE {job.table} ADD COLUMN amount INT")
    produce(job.name, records(3, 6))
    with pytest.raises(PipelineError, match=r"changed while the query ran: .*amount"):
        query.processAllAvailable()
    job.spark.catalog.refreshTable(job.table)
    assert job.rows() == [0, 1, 2]


def test_a_null_keeps_what_the_row_of_its_key_has_over_a_kill(
    job: Job, produce: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def send(*records: tuple[int, str | None]) -> None:
        rows = [("k", json.dumps({"id": id_, "word": word})) for id_, word in records]
        produce(job.name, rows, partition=0)

    def killed(*_: Any, **__: Any) -> int:
        raise PipelineError("killed")

    how: dict[str, Any] = {"keys": "id", "ignore_nulls": True}
    send((1, "a"), (2, None), (1, None))
    job.run(**how)
    send((1, None), (2, "b"), (2, None), (3, None))
    with monkeypatch.context() as patch:
        patch.setattr(IcebergSink, "_find_written", killed)
        with pytest.raises(PipelineError, match="killed"):
            job.run(**how)
    job.run(**how)
    send((1, "c"))
    job.run(**how)

    found = sorted(map(tuple, job.rows("id, word, offset")))
    assert found == [(1, "c", 7), (2, "b", 5), (3, None, 6)]


def test_a_truncation_takes_what_is_older_over_a_kill(
    job: Job, produce: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def send(partition: int, *records: tuple[int | None, int, str]) -> None:
        rows = [
            ("k", json.dumps({"id": -1 if id_ is None else id_, "word": f"{op} {at}"}))
            for id_, at, op in records
        ]
        produce(job.name, rows, partition=partition)

    def killed(*_: Any, **__: Any) -> int:
        raise PipelineError("killed")

    how: dict[str, Any] = {
        "columns": ("value.id", "value.word", "CAST(split(value.word, ' ')[1] AS INT) AS at",
                    "partition", "offset"),
        "keys": "id", "order_by": "at", "apply_as_truncates": "word LIKE 't %'",
    }  # fmt: skip
    send(0, (1, 10, "c"), (2, 60, "c"))
    job.run(**how)
    send(1, (None, 50, "t"), (4, 55, "c"))
    with monkeypatch.context() as patch:
        patch.setattr(IcebergSink, "_find_written", killed)
        with pytest.raises(PipelineError, match="killed"):
            job.run(**how)
    job.run(**how)
    send(0, (1, 40, "c"), (3, 70, "c"))
    job.run(**how)
    assert job.rows("id, at") == [(2, 60), (3, 70), (4, 55)]


def test_rows_arrive_once_and_the_snapshot_says_of_which_batch(
    job: Job, produce: Callable[..., None], marks: Callable[[str], list[str]]
) -> None:
    produce(job.name, [*records(0, 20), ("x", "bad")])
    first = job.run()
    produce(job.name, records(20, 30))
    job.run()
    job.forget_that_the_batch_is_done(1)
    last = job.run()

    assert job.rows() == list(range(30))
    rejected = job.spark.table(f"{job.table}_rejected").select("reason").collect()
    assert [row.reason for row in rejected] == ["value is not a JSON object of the schema"]
    told = [read_metadata(text) for text in marks(job.table)]
    assert [(one.query_id, one.batch) for one in told if one] == [(first.id, 1), (first.id, 0)]
    assert sum(told[0].offsets[job.name].values()) == 31 if told[0] else False
    assert first.name == "flights"
    assert QUERIES[last.id].version_of(1) == 2


def test_a_table_with_keys_has_the_last_record_of_each(
    job: Job, produce: Callable[..., None], marks: Callable[[str], list[str]]
) -> None:
    how: dict[str, Any] = {
        "keys": ["id"],
        "tombstones": "mark",
        "columns": (
            *("coalesce(value.id, CAST(CAST(key AS STRING) AS BIGINT)) AS id", "value.word"),
            *("partition", "offset", "tombstone"),
        ),
    }
    produce(job.name, [*records(0, 4), *records(2, 3, "x")])
    job.run(**how)
    produce(job.name, [*records(3, 6, "y"), ("0", None)])
    query = job.run(**how)
    job.forget_that_the_batch_is_done(1)
    job.run(**how)

    found = [(1, "w1"), (2, "x2"), (3, "y3"), (4, "y4"), (5, "y5")]
    assert job.rows("id, word") == found
    told = [read_metadata(text) for text in marks(job.table)]
    assert [(one.query_id, one.batch) for one in told if one] == [(query.id, 1), (query.id, 0)]

    with pytest.raises(PipelineError, match=r"has written the table .* with keys=\['id'\]"):
        job.run(columns=how["columns"], tombstones="mark", keys=["word"])


@pytest.mark.parametrize("keys", [(), pytest.param(("id",), marks=pytest.mark.full)])
def test_a_checkpoint_that_is_older_than_its_table_is_refused(
    job: Job, produce: Callable[..., None], tmp_path: Path, keys: tuple[str, ...]
) -> None:
    produce(job.name, records(0, 5))
    job.run(keys=keys)
    shutil.copytree(job.checkpoint, tmp_path / "backup")
    produce(job.name, records(5, 10))
    job.run(keys=keys)
    produce(job.name, records(10, 15))
    job.checkpoint = tmp_path / "backup"
    with pytest.raises(PipelineError, match="was set back, for example by a backup") as refused:
        job.run(keys=keys)
    assert "has batch 1 of this query, and the checkpoint has batches up to 0" in str(refused.value)
    assert job.rows() == list(range(10))


def roll_back(job: Job) -> None:
    """To the first snapshot, as somebody else would do it."""
    snapshots = job.spark.sql(
        f"SELECT snapshot_id FROM {job.table}.snapshots ORDER BY committed_at"
    )
    catalog, _, table = job.table.partition(".")
    first = snapshots.first()[0]
    job.spark.sql(f"CALL {catalog}.system.rollback_to_snapshot('{table}', {first})")


def test_a_rollback_is_noticed_and_a_new_checkpoint_continues(
    job: Job, produce: Callable[..., None], tmp_path: Path
) -> None:
    for first in (0, 5):
        produce(job.name, records(first, first + 5))
        job.run()
    roll_back(job)
    produce(job.name, records(10, 15))
    with pytest.raises(PipelineError, match="was set back by a rollback and no longer") as said:
        job.run()
    assert "has batch 1 of this query" in str(said.value)
    assert job.rows() == list(range(5))

    job.checkpoint = tmp_path / "another"
    job.run(starting="table")
    assert job.rows() == list(range(15))


def test_a_rollback_while_the_query_runs_is_noticed_before_the_next_batch(
    job: Job, produce: Callable[..., None]
) -> None:
    # A query that starts before its records makes an empty batch, and so an empty first snapshot.
    produce(job.name, records(0, 5))
    query = job.start()
    try:
        query.processAllAvailable()
        produce(job.name, records(5, 10))
        query.processAllAvailable()
        roll_back(job)
        produce(job.name, records(10, 15))
        with pytest.raises(PipelineError, match="was set back by a rollback"):
            query.processAllAvailable()
    finally:
        query.stop()
    assert job.rows() == list(range(5))


def expire(job: Job) -> None:
    """All snapshots but the latest one, and those that a tag or a branch keeps."""
    catalog, _, table = job.table.partition(".")
    job.spark.sql(
        f"CALL {catalog}.system.expire_snapshots(table => '{table}', "
        "older_than => current_timestamp(), retain_last => 1)"
    )


def iceberg_table(job: Job) -> Any:
    """The table as Iceberg's own API has it: Spark's SQL knows no tags here."""
    loader = java_class(job.spark, "org.apache.iceberg.spark.Spark3Util")
    table = loader.loadIcebergTable(java_session(job.spark), job.table)
    table.refresh()
    return table


def test_a_batch_that_a_tag_keeps_was_not_taken_out(job: Job, produce: Callable[..., None]) -> None:
    produce(job.name, records(0, 5))
    job.run()
    table = iceberg_table(job)
    table.manageSnapshots().createTag("kept", table.currentSnapshot().snapshotId()).commit()
    for first in (5, 10):
        produce(job.name, records(first, first + 5))
        job.run()
    expire(job)
    produce(job.name, records(15, 20))
    job.run()
    assert job.rows() == list(range(20))


def ends_before(job: Job, *counts: int) -> dict[int, int]:
    """Where each partition ended before its last records."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": job.bootstrap, "group.id": "x"})
    try:
        return {
            number: consumer.get_watermark_offsets(TopicPartition(job.name, number))[1] - count
            for number, count in enumerate(counts)
        }
    finally:
        consumer.close()


def insert(job: Job, *ids: int) -> None:
    """What another job writes, a snapshot for each row."""
    for number in ids:
        job.spark.sql(f"INSERT INTO {job.table} VALUES ({number}, 'of another')")


def test_a_batch_that_was_cut_off_is_not_repeated_where_its_snapshot_may_have_expired(
    job: Job, produce: Callable[..., None], tmp_path: Path
) -> None:
    columns = ("value.*",)
    job.spark.sql(f"CREATE TABLE {job.table} (id BIGINT, word STRING) USING iceberg")
    produce(job.name, records(0, 5))
    job.run(columns=columns)
    insert(job, 99)
    expire(job)
    with pytest.raises(PipelineError, match="shows none of this query: only its latest 1 snaps"):
        job.run(columns=columns)
    job.forget_that_the_batch_is_done(0)
    with pytest.raises(PipelineError, match=r"Batch 0 of the checkpoint .* was cut off, and wheth"):
        job.run(columns=columns)
    assert job.rows() == [*range(5), 99]

    job.run(columns=columns, delivery="at-least-once")
    assert job.rows() == sorted([*range(5), *range(5), 99])


def test_a_running_query_knows_its_last_batch_until_a_snapshot_after_it_expires(
    job: Job, produce: Callable[..., None]
) -> None:
    query = job.start(columns=("value.*",))
    try:
        produce(job.name, records(0, 3))
        query.processAllAvailable()
        insert(job, 97)
        expire(job)
        produce(job.name, records(3, 6))
        query.processAllAvailable()
        insert(job, 98, 99)
        expire(job)
        produce(job.name, records(6, 9))
        with pytest.raises(PipelineError, match="shows none of this query: only its latest 1 sna"):
            query.processAllAvailable()
    finally:
        query.stop()
    assert job.rows() == [*range(6), 97, 98, 99]


def run_while(job: Job, change: Callable[[Any], None]) -> None:
    """Run with a change of the table between the look at it and the commit of the first batch."""
    inside, changed = job.folder / "inside", job.folder / "changed"

    def wait(number: int) -> int:
        """As soon as the batch is computed, the sink has looked at the table."""
        inside.touch()
        until = time.monotonic() + 60
        while not changed.exists() and time.monotonic() < until:
            time.sleep(0.01)
        return number

    def change_then() -> None:
        until = time.monotonic() + 60
        while not inside.exists() and time.monotonic() < until:
            time.sleep(0.01)
        # Iceberg's own API: Spark's procedures may need a core, which the batch has.
        change(iceberg_table(job))
        changed.touch()

    job.spark.udf.register("wait_in_batch", wait, "bigint")
    other = threading.Thread(target=change_then)
    other.start()
    try:
        job.run(columns=("wait_in_batch(value.id) AS id", *COLUMNS[1:], "value.word"))
    finally:
        other.join()


def test_a_rollback_while_a_batch_is_written_is_noticed_after_it(
    job: Job, produce: Callable[..., None]
) -> None:
    for first in (0, 5):
        produce(job.name, records(first, first + 5))
        job.run()
    produce(job.name, records(10, 15))

    def roll_back_by_one(table: Any) -> None:
        table.manageSnapshots().rollbackTo(table.currentSnapshot().parentId()).commit()

    with pytest.raises(PipelineError, match="was set back by a rollback") as said:
        run_while(job, roll_back_by_one)
    assert "no longer has batch 1 of this query" in str(said.value)
    assert "Its batch 2 was written before that was noticed" in str(said.value)


def test_a_batch_that_another_run_writes_at_the_same_time_is_noticed_after_it(
    job: Job, produce: Callable[..., None]
) -> None:
    """A run that was stopped for longer than its lease does not know that it lost it."""
    produce(job.name, records(0, 5))
    job.run()
    produce(job.name, records(5, 10))

    def write_the_next_batch(table: Any) -> None:
        metadata = json.loads(table.currentSnapshot().summary().get(MARK))
        table.newAppend().set(MARK, json.dumps(metadata | {"batch": 1})).commit()

    with pytest.raises(PipelineError, match=r"Batch 1 of .* was written by another run, too: the"):
        run_while(job, write_the_next_batch)


def test_a_new_checkpoint_does_not_read_again_what_expired_snapshots_brought(
    job: Job, produce: Callable[..., None]
) -> None:
    columns = ("value.*",)
    produce(job.name, records(0, 5))
    job.run(columns=columns)
    insert(job, 99)
    expire(job)
    for starting in ("earliest", "table"):
        with pytest.raises(PipelineError, match=r"is not known: only its latest 1 snapshots are"):
            job.run(columns=columns, starting=starting, checkpoint=job.folder / "other")
    produce(job.name, records(5, 8), partition=0)
    produce(job.name, records(8, 10), partition=1)
    job.run(columns=columns, starting=ends_before(job, 3, 2), checkpoint=job.folder / "other")
    assert job.rows() == [*range(10), 99]


def test_what_another_query_wrote_before_the_first_batch_is_not_taken_for_nothing(
    job: Job, produce: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(job.name, records(0, 5))
    shipped = first_offsets.check_new
    of_another = CommitMetadata("another", "id", 0, "cluster", {}, {job.name: {0: 5}}).text()

    def meanwhile(*of: Any) -> None:
        table = iceberg_table(job)
        table.newAppend().set(MARK, of_another).commit()
        table.newAppend().commit()
        expire(job)
        shipped(*of)

    monkeypatch.setattr("ottla.pipelines.run.start.check_new", meanwhile)
    with pytest.raises(PipelineError, match=r"since this one began is not known: the table does n"):
        job.run()
    assert job.rows() == []


def test_a_table_of_others_whose_snapshots_expire_may_be_written(
    job: Job, produce: Callable[..., None]
) -> None:
    job.spark.sql(f"CREATE TABLE {job.table} (id BIGINT, word STRING) USING iceberg")
    insert(job, 98, 99)
    expire(job)
    produce(job.name, records(0, 5))
    job.run(columns=("value.*",))
    assert job.rows() == [*range(5), 98, 99]


def test_another_job_may_write_between_two_batches(job: Job, produce: Callable[..., None]) -> None:
    query = job.start(columns=("value.*",))
    try:
        produce(job.name, records(0, 3))
        query.processAllAvailable()
        job.spark.sql(f"INSERT INTO {job.table} VALUES (99, 'of another')")
        produce(job.name, records(3, 6))
        query.processAllAvailable()
    finally:
        query.stop()
    assert query.exception() is None
    assert job.rows() == [*range(6), 99]


def test_a_job_that_changes_the_rows_of_a_merge_makes_it_run_again(
    job: Job, produce: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    produce(job.name, records(0, 3), partition=0)
    job.run(keys=["id"], partition_by="id")
    inside, changed = job.folder / "inside", job.folder / "changed"

    def wait(number: int) -> int:
        """As soon as a batch is computed, its MERGE has chosen the table's files."""
        inside.touch()
        until = time.monotonic() + 60
        while not changed.exists() and time.monotonic() < until:
            time.sleep(0.01)
        return number

    def change() -> None:
        until = time.monotonic() + 60
        while not inside.exists() and time.monotonic() < until:
            time.sleep(0.01)
        # It deletes a file whole, so it needs no core, which the tasks of the batch may have.
        job.spark.sql(f"DELETE FROM {job.table} WHERE id = 2")
        changed.touch()

    job.spark.udf.register("wait_in_batch", wait, "bigint")
    produce(job.name, records(2, 5, "x"), partition=0)
    other = threading.Thread(target=change)
    other.start()
    columns = ("wait_in_batch(value.id) AS id", "value.word", "partition", "offset", "timestamp")
    query = job.start(keys=["id"], columns=columns)
    try:
        query.processAllAvailable()
    finally:
        query.stop()
        other.join()
    assert "Another job committed to" in caplog.text
    assert job.rows("id, word") == [(0, "w0"), (1, "w1"), (2, "x2"), (3, "x3"), (4, "x4")]


def test_a_table_that_was_made_again_is_another_one(job: Job, produce: Callable[..., None]) -> None:
    produce(job.name, records(0, 3))
    job.run()
    table, job.table = job.table, f"{job.table}_2"
    with pytest.raises(PipelineError, match=f"belongs to the table {table}, not to {table}_2"):
        job.run()
    job.table = table
    job.spark.sql(f"DROP TABLE {job.table} PURGE")
    with pytest.raises(PipelineError, match="was deleted and created again"):
        job.run()
    job.spark.sql(f"CREATE TABLE {job.table} (id BIGINT) USING iceberg")
    with pytest.raises(PipelineError, match="was deleted and created again"):
        job.run(columns=("value.id",))


def test_columns_that_do_not_fit_are_refused_at_the_start(
    job: Job, produce: Callable[..., None]
) -> None:
    produce(job.name, records(0, 3))
    place = "`partition` INT, `offset` BIGINT"
    job.spark.sql(
        f"CREATE TABLE {job.table} (id INT, word STRING, more DATE, {place}) USING iceberg"
    )
    columns = ("value.*", "partition", "offset")
    inside = job.folder / "warehouse" / "db" / "flights" / "cp"
    for how, words in (
        ({}, "id is bigint in the rows and int in the table .* have the table widen it"),
        ({"columns": ("CAST(value.id AS DOUBLE) AS id",)}, "cast it in the query, or write to a n"),
        ({"columns": ("value.word AS id",)}, "id is string in the rows and int in the table"),
        ({"columns": ("1 AS id", "1 AS extra")}, "has the column extra .* does not have"),
        ({"columns": ("1 AS id",), "partition_by": "id"}, "is partitioned by no column, not by id"),
        ({"columns": ("1 AS id",), "partition_by": "no"}, "'no' is not a column of the frame"),
        ({"columns": ("1 AS id",), "checkpoint": inside}, "cp lies inside the table"),
    ):
        with pytest.raises(PipelineError, match=words) as raised:
            job.run(**{"columns": columns, **how})
        assert len(str(raised.value).splitlines()) == 1
    assert not job.checkpoint.exists()

    job.run(columns=(*columns, "1 AS extra"), schema_changes="add")
    assert job.rows("id, more, extra") == [(n, None, 1) for n in range(3)]
    kinds = dict(job.spark.table(job.table).dtypes)
    assert (kinds["id"], kinds["extra"]) == ("bigint", "int")


def test_rows_without_a_column_that_is_not_null_are_rejected(
    job: Job, produce: Callable[..., None]
) -> None:
    job.spark.sql(f"CREATE TABLE {job.table} (id BIGINT, word STRING NOT NULL) USING iceberg")
    produce(job.name, [*records(0, 2), ("7", '{"id": 7}')])
    job.run(columns=("value.*",))
    assert job.rows() == [0, 1]
    (row,) = job.spark.table(f"{job.table}_rejected").collect()
    assert row.reason == "the column word is null, but NOT NULL"


def test_a_name_that_is_no_table_of_a_catalog_is_refused(job: Job, tmp_path: Path) -> None:
    frame = job.spark.range(1)
    for target, words in (
        ("./flights", "write the name of an Iceberg table with its catalog"),
        ("flights", "write the name of an Iceberg table with its catalog"),
        ("nowhere.db.flights", "nowhere is no catalog of Iceberg in this session: start it with"),
    ):
        with pytest.raises(PipelineError, match=words) as raised:
            to_iceberg(frame, target, checkpoint=tmp_path / "cp")
        assert len(str(raised.value).splitlines()) == 1
    variant = job.spark.range(1).selectExpr("parse_json('1') AS v")
    with pytest.raises(PipelineError, match=r"cannot be created: .*variant is not supported"):
        to_iceberg(variant, job.table, checkpoint=tmp_path / "cp")


def test_a_batch_frame_is_one_commit_to_the_table_itself(job: Job, tmp_path: Path) -> None:
    frame = job.spark.range(5).selectExpr("id", "named_struct('a b', id) AS `odd name`")
    for _ in range(2):
        to_iceberg(frame, job.table, checkpoint=tmp_path / "cp", partition_by="id")
    assert job.spark.table(job.table).count() == 10
    assert job.spark.sql(f"SELECT * FROM {job.table}.snapshots").count() == 2

    with pytest.raises(PipelineError, match=r"branch_dev is no table but a branch, a tag or"):
        to_iceberg(frame, f"{job.table}.branch_dev", checkpoint=tmp_path / "other")
    job.spark.sql(f"ALTER TABLE {job.table} SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    job.spark.conf.set("spark.wap.branch", "audit")
    try:
        with pytest.raises(PipelineError, match=r"has spark\.wap\.branch=audit, and the table"):
            to_iceberg(frame, job.table, checkpoint=tmp_path / "cp", partition_by="id")
    finally:
        job.spark.conf.unset("spark.wap.branch")


def test_the_guides_example_runs(job: Job, produce: Callable[..., None], tmp_path: Path) -> None:
    guide = (Path(__file__).parents[4] / "docs/pipeline-sinks.md").read_text()
    (example,) = [
        one for one in re.findall(r"```py\n(.*?)```", guide, re.DOTALL) if "to_iceberg(" in one
    ]
    produce(job.name, [('{"tailnum": "N1"}', '{"dest": "HNL"}'), ('{"tailnum": "N2"}', "{}")])
    produce(job.name, [('{"tailnum": "N2"}', None)])
    catalog = job.table.partition(".")[0]
    script = example.replace("localhost:9092", job.bootstrap).replace('"./', f'"{tmp_path}/')
    script = script.replace('    "flights",\n    bootstrap', f'    "{job.name}",\n    bootstrap')
    script = script.replace("lake.db.aircraft", f"{catalog}.db.aircraft")

    exec(compile(script, "docs/pipeline-sinks.md", "exec"), {})

    (row,) = job.spark.table(f"{catalog}.db.aircraft").collect()
    assert (row.tailnum, row.dest) == ("N1", "HNL")


FILE = """
[source]
bootstrap_servers = "localhost:9092"
topic = "flights"
[transform]
sql = "SELECT value.*, partition, offset FROM flights"
[sink]
format = "iceberg"
{}
[delivery]
checkpoint = "./cp"
"""


def read_sink(sink: str) -> SinkSpec:
    (one,) = read_text(Path("/jobs/flights.toml"), FILE.format(sink), {}).pipelines
    return one.sink


def test_a_pipeline_file_has_a_table_with_keys() -> None:
    found = read_sink('target = "lake.db.flights"\nkeys = "id"\npartition_by = ["day"]')
    assert found == IcebergSpec("lake.db.flights", keys=("id",), partition_by=("day",))
    assert found.folder is None
    assert found.keeps_rejects


@pytest.mark.parametrize(
    ("sink", "words"),
    [
        (
            'target = "./lake/flights"',
            "sink.target: './lake/flights': write the name of an Iceberg",
        ),
        ('target = "a.b"\nhistory = true', "sink.history: is not for a table of Iceberg: leave it"),
        ('target = "a.b"\ndeletes = "mark"', "sink.deletes: is for a table with keys"),
    ],
)
def test_what_a_pipeline_file_may_not_have(sink: str, words: str) -> None:
    with pytest.raises(FileError) as refused:
        read_sink(sink)
    assert words in str(refused.value)
