"""A stream into Delta: each row once, rows that do not parse beside it."""

import json
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions
from pyspark.sql import functions as F  # noqa: N812

from ottla.pipelines import PipelineError, to_delta, topic
from ottla.pipelines.running import QUERIES
from ottla.pipelines.sinks.delta.sink import DeltaSink
from ottla.pipelines.target.delta_table import DeltaTable

pytestmark = pytest.mark.spark

SCHEMA = "id BIGINT NOT NULL, word STRING"


def good(start: int, stop: int) -> list[tuple[Any, ...]]:
    return [
        (str(number), json.dumps({"id": number, "word": f"w{number}"}), [("h", b"\x01")])
        for number in range(start, stop)
    ]


class Job:
    """One pipeline; `run` takes all there is and ends."""

    def __init__(self, spark: Any, bootstrap: str, name: str, folder: Path) -> None:
        self.spark = spark
        self.bootstrap = bootstrap
        self.name = name
        self.frame = topic(spark, name, bootstrap_servers=bootstrap, schema=SCHEMA)
        self.table = folder / "table"
        self.checkpoint = folder / "checkpoint"

    def run(self, **how: Any) -> Any:
        rows = self.frame.select("key", "value.*", "partition", "offset", "headers")
        query = to_delta(
            rows, self.table, checkpoint=self.checkpoint, trigger={"availableNow": True}, **how
        )
        query.awaitTermination()
        return query

    def read(self, suffix: str = "") -> Any:
        return self.spark.read.format("delta").load(f"{self.table}{suffix}")

    def ids(self) -> list[int]:
        rows = self.read().where("id IS NOT NULL").select("id").collect()
        return sorted(row["id"] for row in rows)


@pytest.fixture
def job(spark: Any, bootstrap: str, new_topic: Callable[..., str], tmp_path: Path) -> Job:
    return Job(spark, bootstrap, new_topic(), tmp_path)


def test_rows_arrive_once_with_their_place_over_restarts(
    job: Job, produce: Callable[..., None]
) -> None:
    produce(job.name, good(0, 50))
    first = job.run()
    produce(job.name, good(50, 80))
    second = job.run()
    job.run()  # nothing new

    assert job.ids() == list(range(80))
    positions = job.read().select("partition", "offset").distinct().count()
    assert positions == 80
    row = job.read().where("id = 7").first()
    assert (bytes(row["key"]), row["word"], row["headers"][0]["key"]) == (b"7", "w7", "h")
    assert first.id == second.id
    assert first.name == "table"
    assert QUERIES[first.id].version_of(0) == 1
    assert QUERIES[first.id].version_of(1) == 2
    assert QUERIES[first.id].version_of(9) is None


def test_rows_that_do_not_parse_lie_beside_the_table_whatever_the_projection(
    job: Job, produce: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    produce(job.name, [*good(0, 5), ("a", b"\xffbad", [("h", b"\x02")])])
    job.run()
    produce(job.name, [("b", '{"word": "no id"}'), *good(5, 7), ("t", None)])
    job.run()

    rows = job.read("_rejected").orderBy("key").collect()
    assert job.ids() == [*range(7)]
    assert job.read().where("key = 't'").count() == 0  # a tombstone is neither
    assert [bytes(row["key"]) for row in rows] == [b"a", b"b"]
    assert bytes(rows[0]["value"]) == b"\xffbad"
    assert bytes(rows[0]["headers"][0]["value"]) == b"\x02"
    assert rows[1]["reason"] == "value lacks the field id, which is NOT NULL"
    assert "1 row of" in caplog.text


def test_a_batch_that_runs_twice_arrives_once_rejects_and_all(
    job: Job, produce: Callable[..., None]
) -> None:
    produce(job.name, [*good(0, 10), ("x", "bad")])
    job.run()
    # As after a kill between Delta's commit and Spark's own note that the batch is done.
    (job.checkpoint / "commits" / "0").unlink()
    (job.checkpoint / "commits" / ".0.crc").unlink(missing_ok=True)
    job.run()
    assert (job.ids(), job.read("_rejected").count()) == (list(range(10)), 1)

    # As after a kill between the two tables' commits: the rejected are found again.
    shutil.rmtree(f"{job.table}_rejected")
    (job.checkpoint / "commits" / "0").unlink()
    (job.checkpoint / "commits" / ".0.crc").unlink(missing_ok=True)
    query = job.run()
    assert (job.ids(), job.read("_rejected").count()) == (list(range(10)), 1)
    assert QUERIES[query.id].version_of(0) == 1


def test_a_checkpoint_of_another_table_is_refused(
    job: Job, produce: Callable[..., None], tmp_path: Path
) -> None:
    produce(job.name, good(0, 3))
    job.run()

    with pytest.raises(PipelineError, match="belongs to the table"):
        to_delta(job.frame, tmp_path / "other", checkpoint=job.checkpoint)
    shutil.rmtree(job.table)
    with pytest.raises(PipelineError, match="was deleted and created again"):
        job.run()


def test_two_queries_of_one_name_both_run(job: Job, tmp_path: Path) -> None:
    queries = [
        to_delta(job.frame, tmp_path / name / "flights", checkpoint=tmp_path / name / "cp")
        for name in ("a", "b")
    ]
    try:
        assert [query.name for query in queries] == ["flights", None]
    finally:
        for query in queries:
            query.stop()


def test_a_new_table_is_partitioned_as_asked_and_an_old_one_is_not_changed(
    job: Job, produce: Callable[..., None]
) -> None:
    produce(job.name, good(0, 3))
    options: dict[str, Any] = {"checkpoint": job.checkpoint, "trigger": {"availableNow": True}}
    frame = job.frame.select("value.*")
    to_delta(frame, job.table, partition_by=["word"], **options).awaitTermination()

    detail = job.spark.sql(f"DESCRIBE DETAIL delta.`{job.table}`").first()
    assert detail["partitionColumns"] == ["word"]
    assert job.ids() == [0, 1, 2]
    with pytest.raises(PipelineError, match="is partitioned by word, not by id"):
        to_delta(frame, job.table, partition_by="id", **options)


def test_new_columns_are_refused_or_added_with_a_line_for_each(
    job: Job, produce: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    produce(job.name, good(0, 3))
    options: dict[str, Any] = {"checkpoint": job.checkpoint, "trigger": {"availableNow": True}}
    to_delta(job.frame.select("value.id"), job.table, **options).awaitTermination()
    produce(job.name, good(3, 5))
    wider = job.frame.select("value.*", "offset")

    with pytest.raises(PipelineError, match=r"has the column word \(string\), which the table"):
        to_delta(wider, job.table, **options)
    to_delta(wider, job.table, schema_changes="add", **options).awaitTermination()

    words = sorted((row["id"], row["word"]) for row in job.read().collect())
    assert words == [(0, None), (1, None), (2, None), (3, "w3"), (4, "w4")]
    assert f"The table {job.table} gets the column word (string)" in caplog.text
    assert f"The table {job.table} gets the column offset (bigint)" in caplog.text


def test_too_many_rejected_rows_stop_the_query_and_are_kept(
    job: Job, produce: Callable[..., None]
) -> None:
    produce(job.name, [*good(0, 3), (None, "bad"), (None, "worse")])
    options: dict[str, Any] = {"checkpoint": job.checkpoint, "trigger": {"availableNow": True}}

    with pytest.raises(Exception, match="rows rejected in this run: 2, more than"):
        to_delta(job.frame, job.table, max_rejects=1, **options).awaitTermination()
    assert job.read("_rejected").count() == 2

    to_delta(job.frame, job.table, max_rejects=2, **options).awaitTermination()
    assert job.read("_rejected").count() == 2


def test_a_table_with_keys_follows_its_topic_over_restarts(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    name, table, checkpoint = new_topic(), tmp_path / "users", tmp_path / "checkpoint"
    where: dict[str, Any] = {
        "bootstrap_servers": bootstrap,
        "key_schema": "id BIGINT",
        "schema": "word STRING",
    }

    def user(number: int, word: str | None) -> tuple[str, str | None]:
        return json.dumps({"id": number}), word and json.dumps({"word": word})

    def run(frame: Any = None, **options: Any) -> None:
        rows = topic(spark, name, tombstones="mark", **where) if frame is None else frame
        chosen = rows.select("key.id", "value.word", "partition", "offset", "tombstone")
        always = {"checkpoint": checkpoint, "trigger": {"availableNow": True}}
        to_delta(chosen, table, **{**always, "keys": ["id"], **options}).awaitTermination()

    def rows() -> list[tuple[Any, ...]]:
        found = spark.read.format("delta").load(str(table)).select("id", "word").collect()
        return sorted((row["id"], row["word"]) for row in found)

    produce(name, [user(1, "a"), user(2, "b"), user(1, "c"), ("{}", '{"word": "x"}')])
    run()
    produce(name, [user(2, None), user(3, "d"), ("no key", None)])
    run()
    # As after a kill between Delta's commit and Spark's own note that the batch is done.
    (checkpoint / "commits" / "1").unlink()
    (checkpoint / "commits" / ".1.crc").unlink(missing_ok=True)
    run()
    assert rows() == [(1, "c"), (3, "d")]
    rejected = spark.read.format("delta").load(f"{table}_rejected").collect()
    assert sorted(row["reason"] for row in rejected) == [
        "key is not a JSON object of the schema",
        "the key column id is null",
    ]

    with pytest.raises(PipelineError, match=r"with keys=\['id'\], and this query has keys="):
        run(keys=["id", "word"])

    # What was read is not read again, for it could not be told from what is newer.
    shutil.rmtree(checkpoint)
    again = topic(spark, name, tombstones="mark", starting={0: 0, 1: 0}, **where)
    with pytest.raises(PipelineError, match="older records would replace newer rows"):
        run(again)
    continued = topic(spark, name, tombstones="mark", starting="table", **where)
    produce(name, [user(3, "e")])
    run(continued)
    assert rows() == [(1, "c"), (3, "e")]

    # Another partition: the order of both records is not known.
    for partition in (0, 1):
        produce(name, [user(9, f"p{partition}")], partition=partition)
    with pytest.raises(PipelineError, match=r'The key {"id":9} has records whose order is not'):
        run(continued)
    assert rows() == [(1, "c"), (3, "e")]


def test_a_history_of_two_topics_keeps_the_versions_of_both(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    """Their records have one time, one partition and one offset."""
    names = [new_topic(1), new_topic(1)]
    parts = []
    for name in names:
        produce(name, [("k", json.dumps({"id": 1, "word": name}))], timestamp=1_700_000_000_000)
        frame = topic(spark, name, bootstrap_servers=bootstrap, schema=SCHEMA)
        rows = frame.select("value.*", "partition", "offset", "timestamp")
        parts.append(rows.withColumn("topic", F.lit(name)))
    options: dict[str, Any] = {
        "checkpoint": tmp_path / "cp",
        "trigger": {"availableNow": True},
        "keys": "id",
    }
    united = parts[0].union(parts[1])
    to_delta(united, tmp_path / "table", history=True, **options).awaitTermination()
    found = spark.read.format("delta").load(str(tmp_path / "table")).collect()
    assert sorted(row["word"] for row in found) == sorted(names)
    assert [row["topic"] for row in found if row["is_current"]] == [max(names)]


def test_partitions_that_were_added_bring_no_deleted_key_back(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    """The tombstone of key 99 is in a new partition, and read before the record that it deletes."""
    name, table = new_topic(1), str(tmp_path / "table")
    where: dict[str, Any] = {
        "bootstrap_servers": bootstrap,
        "key_schema": "id BIGINT",
        "schema": "word STRING",
    }
    frame = topic(spark, name, tombstones="mark", max_rows=4, **where)
    columns = ("key.id", "value.word", "partition", "offset", "timestamp", "tombstone")

    def start(**how: Any) -> Any:
        options: dict[str, Any] = {"checkpoint": tmp_path / "cp", "keys": ["id"]}
        return to_delta(frame.select(*columns), table, **options, **how)

    def user(number: int, word: str | None = "a") -> tuple[str, str | None]:
        return json.dumps({"id": number}), word and json.dumps({"word": word})

    def add_partition(count: int) -> None:
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 3})
        admin.create_partitions([NewPartitions(name, count)])[name].result(timeout=30)

    def rows() -> list[int]:
        found = spark.read.format("delta").load(table).select("id").collect()
        return sorted(row["id"] for row in found)

    once = {"trigger": {"availableNow": True}}
    produce(name, [user(1)], partition=0)
    start(**once).awaitTermination()
    produce(name, [*map(user, range(2, 22)), user(99)], partition=0)
    add_partition(2)
    produce(name, [user(99, None)], partition=1)
    with pytest.raises(PipelineError, match="has got the partition 1 since the last batch"):
        start(**once).awaitTermination()
    assert rows() == [1]

    # With an order the record is older than the tombstone: what that means is said at the start.
    start(order_by="timestamp", **once).awaitTermination()
    produce(name, [user(99, None)], partition=1)
    start(order_by="timestamp", **once).awaitTermination()
    query = start()  # the topic gets one more while it runs
    try:
        query.processAllAvailable()
        assert rows() == [*range(1, 22)]
        add_partition(3)
        produce(name, [user(98, None)], partition=2)
        with pytest.raises(PipelineError, match="has got the partition 2 since the last batch"):
            query.processAllAvailable()
    finally:
        query.stop()
    with pytest.raises(PipelineError, match="has got the partition 2 since the last batch"):
        start()


def test_a_table_with_keys_says_what_does_not_fit(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    name = new_topic(1)
    options: dict[str, Any] = {"checkpoint": tmp_path / "cp", "keys": "id"}
    where: dict[str, Any] = {
        "bootstrap_servers": bootstrap,
        "key_schema": "id BIGINT",
        "schema": "word STRING",
    }
    columns = ("key.id", "value.word", "partition", "offset", "timestamp")
    marked = topic(spark, name, tombstones="mark", **where).select(*columns)
    with pytest.raises(PipelineError, match="in the column tombstone, and the frame has no such"):
        to_delta(marked, tmp_path / "t", **options)

    frame = topic(spark, name, **where).select(*columns)
    once: dict[str, Any] = {"trigger": {"availableNow": True}}
    produce(name, [('{"id": 1}', '{"word": "a"}'), ('{"id": 1}', None)])
    to_delta(frame, tmp_path / "t", history=True, **options, **once).awaitTermination()
    assert f"1 tombstones of {name} are skipped, and delete no row of" in caplog.text
    with pytest.raises(PipelineError, match="so it was made with history=True: write history=Tr"):
        to_delta(frame, tmp_path / "t", **options)
    to_delta(frame, tmp_path / "u", checkpoint=tmp_path / "cpu", keys="id", **once).stop()
    with pytest.raises(PipelineError, match="has no valid_from, valid_to, is_current, which"):
        to_delta(frame, tmp_path / "u", history=True, **options)


def test_wrong_arguments_are_refused_in_one_line(spark: Any, job: Job, tmp_path: Path) -> None:
    table, checkpoint = str(tmp_path / "t"), str(tmp_path / "c")
    for frame, target, options, words in (
        (None, table, {"checkpoint": checkpoint}, "takes a DataFrame, not NoneType"),
        (job.frame, table, {"checkpoint": ""}, "needs a checkpoint"),
        (job.frame, table, {"checkpoint": None}, "needs a checkpoint"),
        (job.frame, table, {"checkpoint": table}, "lies inside the table"),
        (job.frame, table, {"checkpoint": f"{table}/cp"}, "lies inside the table"),
        (job.frame, "a b", {"checkpoint": checkpoint}, "write a path with a slash"),
        (job.frame, table, {"checkpoint": checkpoint, "trigger": {"now": 1}}, "write one of"),
        (job.frame, table, {"checkpoint": checkpoint, "trigger": "once"}, "write one of"),
        (job.frame, table, {"checkpoint": checkpoint, "delivery": "twice"}, "is unknown: write"),
        (job.frame, table, {"checkpoint": checkpoint, "on_lost": "cry"}, "'stop' or 'skip'"),
        (job.frame, table, {"checkpoint": checkpoint, "schema_changes": "x"}, "'refuse' or 'add'"),
        (job.frame, table, {"checkpoint": checkpoint, "max_rejects": -1}, "a number of rows"),
        (job.frame, table, {"checkpoint": checkpoint, "group": " "}, "write the name of a group"),
        (job.frame, table, {"checkpoint": checkpoint, "partition_by": "no"}, "is not a column"),
        (job.frame, table, {"checkpoint": checkpoint, "history": True}, "for tables with keys"),
        (job.frame, table, {"checkpoint": checkpoint, "keys": [7]}, "write names of columns"),
        (job.frame, table, {"checkpoint": checkpoint, "keys": "k"}, "has no column 'k'"),
        (job.frame, table, {"checkpoint": checkpoint, "deletes": "no"}, "'remove' or 'mark'"),
        (job.frame, table, {"checkpoint": checkpoint, "compact_after": -1}, "a number of files"),
        (job.frame, table, {"checkpoint": checkpoint, "compact_after": True}, "a number of files"),
        (job.frame, table, {"checkpoint": checkpoint, "deletion_vectors": 0}, "True or False"),
    ):
        with pytest.raises(PipelineError, match=words) as caught:
            to_delta(frame, target, **options)
        assert "\n" not in str(caught.value)
    assert not Path(checkpoint).exists()


def test_at_most_once_numbers_a_batch_also_where_it_leaves_it_out(
    job: Job,
    produce: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    produce(job.name, good(0, 3))
    job.run(delivery="at-most-once")
    produce(job.name, good(3, 6))

    def killed(*_: Any) -> None:
        raise PipelineError("cut off")

    with monkeypatch.context() as patch:
        patch.setattr(DeltaSink, "write", killed)
        with pytest.raises(PipelineError, match="cut off"):
            job.run(delivery="at-most-once")
    produce(job.name, good(6, 9))
    query = job.run(delivery="at-most-once")

    assert job.ids() == [0, 1, 2, 6, 7, 8]
    assert "Batch 1 was begun by a run that was cut off" in caplog.text
    # So a copy of the checkpoint that has not noted batch 1 does not write it.
    table = DeltaTable(job.spark, f"file:{job.table}")
    assert table.snapshot().transactions()[query.id] == 2
    assert table.find(query.id, 1) is not None


@pytest.mark.parametrize(
    "delivery",
    [
        "exactly-once",
        *(pytest.param(one, marks=pytest.mark.full) for one in ("at-least-once", "at-most-once")),
    ],
)
def test_a_checkpoint_that_is_older_than_its_table_is_refused(
    job: Job, produce: Callable[..., None], tmp_path: Path, delivery: str
) -> None:
    produce(job.name, good(0, 10))
    job.run(delivery=delivery)
    shutil.copytree(job.checkpoint, tmp_path / "backup")
    for first in (10, 20):
        produce(job.name, good(first, first + 10))
        job.run(delivery=delivery)
    produce(job.name, good(30, 40))
    shutil.rmtree(job.checkpoint)
    shutil.copytree(tmp_path / "backup", job.checkpoint)

    with pytest.raises(PipelineError, match="was set back, for example by a backup") as refused:
        job.run(delivery=delivery)
    assert "has batch 2 of this query, and the checkpoint has batches up to 0" in str(refused.value)
    assert job.ids() == list(range(30))


def test_rows_of_aborted_transactions_are_not_delivered(
    job: Job, spark: Any, bootstrap: str, tmp_path: Path
) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": job.name})
    producer.init_transactions(30)
    for first, commits in ((0, True), (10, False), (20, True)):
        producer.begin_transaction()
        for key, value, headers in good(first, first + 10):
            producer.produce(job.name, value, key, headers=headers, partition=0)
        producer.flush(30)
        if commits:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    producer.begin_transaction()
    producer.produce(job.name, json.dumps({"id": 99}), partition=0)
    producer.flush(30)

    job.run()
    assert job.ids() == [*range(10), *range(20, 30)]
    # A query that starts at the end starts where the open transaction begins.
    late = topic(
        spark, job.name, bootstrap_servers=bootstrap, schema=SCHEMA, starting="latest"
    ).select("value.*", "partition", "offset")
    how: dict[str, Any] = {
        "checkpoint": tmp_path / "late-checkpoint",
        "trigger": {"availableNow": True},
    }
    to_delta(late, tmp_path / "late", **how).awaitTermination()
    producer.commit_transaction(30)
    to_delta(late, tmp_path / "late", **how).awaitTermination()
    rows = spark.read.format("delta").load(str(tmp_path / "late")).select("id").collect()
    assert [row["id"] for row in rows] == [99]

    everything = {"isolation.level": "read_uncommitted"}
    frame = topic(spark, job.name, bootstrap_servers=bootstrap, schema=SCHEMA, kafka=everything)
    how["checkpoint"] = tmp_path / "all-checkpoint"
    to_delta(
        frame.select("value.*", "partition", "offset"), tmp_path / "all", **how
    ).awaitTermination()
    assert spark.read.format("delta").load(str(tmp_path / "all")).count() == 31


@pytest.mark.parametrize("how", ["VERSION", pytest.param("TIMESTAMP", marks=pytest.mark.full)])
def test_a_restored_table_has_a_hole_that_only_a_new_checkpoint_fills(
    job: Job, spark: Any, produce: Callable[..., None], tmp_path: Path, how: str
) -> None:
    for first in (0, 10, 20):
        produce(job.name, good(first, first + 10))
        job.run()
    options = f"delta.`{job.table}`"
    times = {row.version: row.time for row in spark.sql(f"DESCRIBE HISTORY {options}")
             .selectExpr("version", "CAST(timestamp AS STRING) AS time").collect()}  # fmt: skip
    kept = 1 if how == "VERSION" else f"'{times[1]}'"
    spark.sql(f"RESTORE TABLE {options} TO {how} AS OF {kept}")
    produce(job.name, good(30, 40))
    with pytest.raises(PipelineError, match="was set back by RESTORE TABLE and no longer") as said:
        job.run()
    assert "has the batches 1 to 2 of this query" in str(said.value)

    job.checkpoint = tmp_path / "another"
    job.frame = topic(
        spark, job.name, bootstrap_servers=job.bootstrap, schema=SCHEMA, starting="table"
    )
    job.run()
    assert job.ids() == list(range(40))
    job.run()  # the former query's batches are none of this one's


@pytest.mark.parametrize("keys", [(), ("id",)])
def test_a_column_becomes_as_wide_as_the_rows(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
    keys: tuple[str, ...],
) -> None:
    name, table = new_topic(1), f"delta.`{tmp_path}/t`"
    spark.sql(f"CREATE TABLE {table} (id INT, `partition` INT, `offset` BIGINT) USING delta")
    spark.sql(f"INSERT INTO {table} VALUES (7, 0, 0)")
    produce(name, [("1", '{"id": 5000000000}')])
    rows = topic(spark, name, bootstrap_servers=bootstrap, schema="id BIGINT")
    rows = rows.select("value.*", "partition", "offset")

    def run() -> None:
        how: dict[str, Any] = {"checkpoint": tmp_path / "cp", "trigger": {"availableNow": True}}
        to_delta(rows, tmp_path / "t", schema_changes="add", keys=keys, **how).awaitTermination()

    with pytest.raises(PipelineError, match="have the table widen it"):
        run()
    assert not (tmp_path / "cp").exists()
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    run()
    found = spark.sql(f"SELECT id FROM {table}").collect()
    assert sorted(row.id for row in found) == [7, 5_000_000_000]


@pytest.mark.parametrize(
    "delivery", ["exactly-once", pytest.param("at-most-once", marks=pytest.mark.full)]
)
def test_a_constraint_that_comes_while_the_query_runs_rejects_rows(
    job: Job, produce: Callable[..., None], caplog: pytest.LogCaptureFixture, delivery: str
) -> None:
    produce(job.name, good(0, 3))
    rows = job.frame.select("key", "value.*", "partition", "offset")
    query: Any = to_delta(rows, job.table, checkpoint=job.checkpoint, delivery=delivery)
    try:
        query.processAllAvailable()
        options = f"delta.`{job.table}`"
        job.spark.sql(f"ALTER TABLE {options} ADD CONSTRAINT small CHECK (id < 5)")
        produce(job.name, good(3, 8))
        query.processAllAvailable()
        produce(job.name, good(1, 3))
        query.processAllAvailable()
    finally:
        query.stop()

    assert query.exception() is None
    assert job.ids() == [0, 1, 1, 2, 2, 3, 4]
    reasons = [row["reason"] for row in job.read("_rejected").collect()]
    assert reasons == ["violates the CHECK constraint small (id < 5)"] * 3
    assert "has a new constraint, and rejects rows that violate it" in caplog.text


def test_a_busy_neighbour_does_not_start_an_upsert_again(
    job: Job, produce: Callable[..., None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A neighbour commits twice between what the MERGE of a batch reads and its commit."""
    from pyspark.sql import functions as F  # noqa: N812

    caplog.set_level("INFO", "ottla.pipelines")
    produce(job.name, good(0, 2))
    rows = job.frame.select("value.*", "partition", "offset")
    how: dict[str, Any] = {"keys": "id", "order_by": "offset", "checkpoint": job.checkpoint}
    once = {"availableNow": True}
    to_delta(rows, job.table, trigger=once, **how).awaitTermination()

    @F.udf("string")
    def let_the_neighbour_go(word: str) -> str:
        reached = sum(path.name.startswith("reached") for path in tmp_path.iterdir())
        if word == "w1":
            (tmp_path / f"reached-{reached}").touch()
            while reached < 2 and not (tmp_path / f"done-{reached}").exists():
                time.sleep(0.05)
        return word

    def neighbour() -> None:
        session = job.spark.newSession()
        for number in range(2):
            while not (tmp_path / f"reached-{number}").exists():
                time.sleep(0.05)
            session.sql(f"UPDATE delta.`{job.table}` SET word = 'by the neighbour' WHERE id = 0")
            (tmp_path / f"done-{number}").touch()

    produce(job.name, [*good(1, 4), ("x", "bad")], partition=0)
    thread = threading.Thread(target=neighbour)
    thread.start()
    rows = rows.withColumn("word", let_the_neighbour_go("word")).coalesce(1)
    query: Any = to_delta(rows, job.table, trigger=once, max_rejects=1, **how)
    query.awaitTermination()
    thread.join()

    assert "Trying again" not in caplog.text
    assert caplog.text.count("met another commit") == 2
    words = {row.id: row.word for row in job.read().collect()}
    assert words == {0: "by the neighbour", 1: "w1", 2: "w2", 3: "w3"}
    assert job.read("_rejected").count() == 1
    history = job.spark.sql(f"DESCRIBE HISTORY delta.`{job.table}`").collect()
    assert [row.operation for row in history].count("MERGE") == 2
    assert [row.operation for row in history].count("UPDATE") == 2
    progress = query.lastProgress
    assert progress is not None
    assert progress["numInputRows"] == 4


def test_running_results_count_each_record_once(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    name = new_topic()
    table, checkpoint = tmp_path / "counts", tmp_path / "checkpoint"

    def run(folder: Path = checkpoint, keys: str = "word", **how: Any) -> None:
        frame = topic(spark, name, bootstrap_servers=bootstrap, schema=SCHEMA, **how)
        counts = frame.groupBy("value.word").agg(
            F.count(F.lit(1)).alias("n"), F.max("value.id").alias("last")
        )
        query = to_delta(
            counts,
            table,
            checkpoint=folder,
            trigger={"availableNow": True},
            keys=keys,
            mode="update",
        )
        query.awaitTermination()

    def words(*numbers: int) -> list[tuple[str, str]]:
        return [(str(n), json.dumps({"id": n, "word": f"w{n % 3}"})) for n in numbers]

    def results() -> list[tuple[Any, ...]]:
        rows = spark.read.format("delta").load(str(table)).orderBy("word").collect()
        return [tuple(row) for row in rows]

    produce(name, words(0, 1, 3, 4, 6))
    run()
    assert results() == [("w0", 3, 6), ("w1", 2, 4)]
    produce(name, words(2, 9))
    run()
    assert results() == [("w0", 4, 9), ("w1", 2, 4), ("w2", 1, 2)]
    # As after a kill between the commit and Spark's note that the batch is done.
    last = max(int(file.name) for file in (checkpoint / "commits").iterdir() if file.name.isdigit())
    (checkpoint / "commits" / str(last)).unlink()
    produce(name, words(12, 13))
    run()
    assert results() == [("w0", 5, 12), ("w1", 3, 13), ("w2", 1, 2)]

    for starting in ("earliest", "table"):
        with pytest.raises(PipelineError, match=r"holds topic|none of it"):
            run(tmp_path / "new", starting=starting)
    with pytest.raises(PipelineError, match="has none of it: use that checkpoint"):
        run(tmp_path / "new", starting="table")
    assert results() == [("w0", 5, 12), ("w1", 3, 13), ("w2", 1, 2)]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"keys": ()}, "name the columns of the GROUP BY as the key"),
        ({"order_by": "n"}, "takes each result that comes as the newest"),
        ({"on_lost": "skip"}, "begins a new query without the state"),
        ({"mode": "complete"}, "write 'append' or 'update'"),
        ({"keys": "wrod"}, "no column 'wrod'; did you mean 'word'"),
    ],
)
def test_arguments_that_do_not_fit_running_results(
    job: Job, tmp_path: Path, how: dict[str, Any], said: str
) -> None:
    counts = job.frame.groupBy("value.word").count()
    asked = {"keys": "word", "mode": "update"} | how
    with pytest.raises(PipelineError, match=said):
        to_delta(counts, tmp_path / "t", checkpoint=tmp_path / "c", **asked)
    with pytest.raises(PipelineError, match="is for a query that groups the rows"):
        to_delta(
            job.frame.select("value.word"),
            tmp_path / "t",
            checkpoint=tmp_path / "c",
            keys="word",
            mode="update",
        )


def test_a_condition_says_which_records_delete(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    name = new_topic(1)
    changes = [("a", 1, "c"), ("b", 2, "c"), ("a", 3, "u"), ("b", 2, "d"), ("c", 4, None)]
    produce(name, [(k, json.dumps({"id": n, "op": op})) for k, n, op in changes])
    produce(name, [("a", None)])
    frame = topic(
        spark,
        name,
        bootstrap_servers=bootstrap,
        schema="id BIGINT NOT NULL, op STRING",
        key_schema="string",
        tombstones="mark",
    )
    rows = frame.selectExpr("key", "value.*", "partition", "offset", "timestamp", "tombstone")
    for target in ("last", "all"):
        to_delta(
            rows,
            tmp_path / target,
            checkpoint=tmp_path / f"c-{target}",
            trigger={"availableNow": True},
            keys="key",
            apply_as_deletes="op = 'd'",
            history=target == "all",
        ).awaitTermination()
    last = spark.read.format("delta").load(str(tmp_path / "last")).select("key", "id").collect()
    assert [tuple(row) for row in last] == [("c", 4)]
    every = spark.read.format("delta").load(str(tmp_path / "all"))
    assert [row["key"] for row in every.where("is_current").collect()] == ["c"]
    assert every.count() == 6


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"keys": ()}, "is for tables with keys"),
        ({"apply_as_deletes": "op = 'd'"}, "apply_as_deletes: .* is no condition on a row"),
        ({"apply_as_deletes": "word"}, "apply_as_deletes: 'word' is string, and no condition"),
    ],
)
def test_a_condition_that_deletes_nothing_is_refused(
    job: Job, tmp_path: Path, how: dict[str, Any], said: str
) -> None:
    rows = job.frame.select("value.*", "partition", "offset")
    asked = {"keys": "id", "apply_as_deletes": "word = 'd'"} | how
    with pytest.raises(PipelineError, match=said):
        to_delta(rows, tmp_path / "t", checkpoint=tmp_path / "c", **asked)


@pytest.mark.parametrize("column", ["value.word AS tombstone", "true AS Tombstone"])
def test_a_column_with_the_name_of_the_mark_is_not_replaced(
    job: Job, tmp_path: Path, column: str
) -> None:
    rows = job.frame.selectExpr("value.*", "partition", "offset", column)
    with pytest.raises(PipelineError, match=r"column [Tt]ombstone .* give it another name"):
        to_delta(
            rows,
            tmp_path / "t",
            checkpoint=tmp_path / "c",
            keys="id",
            apply_as_deletes="word = 'd'",
        )
