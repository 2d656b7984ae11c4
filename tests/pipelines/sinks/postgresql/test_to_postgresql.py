"""A stream into a real PostgreSQL: restarts, rejected rows, a database that goes away."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from components.postgres import PASSWORD, USER, Postgres, fetched_driver
from confluent_kafka.admin import AdminClient, NewPartitions

from components import fixture
from ottla.pipelines import PipelineError, to_postgresql, topic
from ottla.pipelines.sinks.postgresql import sink as jdbc

pytestmark = [pytest.mark.spark, pytest.mark.full]
postgres = fixture.postgres

SCHEMA = "id BIGINT NOT NULL, word STRING"


def records(start: int, stop: int) -> list[tuple[str, str]]:
    return [(str(n), json.dumps({"id": n, "word": f"w{n}"})) for n in range(start, stop)]


class Job:
    def __init__(self, spark: Any, bootstrap: str, name: str, database: Postgres) -> None:
        spark.sql(f"ADD JAR '{fetched_driver()}'")
        self.spark, self.bootstrap, self.name, self.database = spark, bootstrap, name, database

    def start(self, checkpoint: Path, trigger: Any = None, **how: Any) -> Any:
        where = {"starting": how.pop("starting", "earliest")}
        login = {"user": USER, "password": how.pop("password", PASSWORD)}
        url = how.pop("url", self.database.url)
        frame = topic(
            self.spark, self.name, bootstrap_servers=self.bootstrap, schema=SCHEMA, **where
        )
        rows = frame.selectExpr(*how.pop("columns", ("value.*", "partition", "offset")))
        return to_postgresql(
            rows, "t", url=url, checkpoint=checkpoint, trigger=trigger, **login, **how
        )

    def run(self, checkpoint: Path, **how: Any) -> Any:
        query = self.start(checkpoint, {"availableNow": True}, **how)
        query.awaitTermination()
        return query

    def ids(self, table: str = "t") -> list[int]:
        return sorted(int(row[0]) for row in self.database.query(f"SELECT id FROM {table}"))


@pytest.fixture
def job(spark: Any, bootstrap: str, new_topic: Callable[..., str], postgres: Postgres) -> Job:
    return Job(spark, bootstrap, new_topic(), postgres)


def test_rows_arrive_once_and_the_checkpoint_holds_no_password(
    job: Job, produce: Callable[..., None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "ottla.pipelines")
    produce(job.name, [*records(0, 20), ("x", "bad")])
    first = job.run(tmp_path / "checkpoint", group=f"group-{job.name}")
    produce(job.name, records(20, 30))
    # As after a kill between the database's commit and Spark's own note that the batch is done.
    for file in (tmp_path / "checkpoint/commits").iterdir():
        file.unlink()
    job.run(tmp_path / "checkpoint")
    assert first.name == "t"
    assert job.ids() == list(range(30))
    assert [row[0] for row in job.database.query("SELECT reason FROM t_rejected")] == [
        "value is not a JSON object of the schema"
    ]
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    traces = [*Path(os.environ["OTTLA_STATE_DIR"]).rglob("*")]
    kept += [path.read_bytes() for path in traces if path.is_file()]
    assert not any(PASSWORD.encode() in text for text in kept)
    assert PASSWORD not in caplog.text

    # The checkpoint is gone: the table knows where it ends.
    with pytest.raises(PipelineError, match=r"holds topic .* already"):
        job.run(tmp_path / "new")
    produce(job.name, records(30, 35))
    job.run(tmp_path / "new", starting="table")
    assert job.ids() == list(range(35))
    with pytest.raises(PipelineError, match="has no unique index on id"):
        job.run(tmp_path / "new", keys=["id"])
    job.database.query("UPDATE ottla_batches SET batch = batch - 1 WHERE batch >= 0")
    with pytest.raises(PipelineError, match="the database was set back"):
        job.run(tmp_path / "new")
    job.database.query("DROP TABLE t")
    with pytest.raises(PipelineError, match="was deleted and created again"):
        job.run(tmp_path / "new")


def test_partitions_that_were_added_need_an_order_where_rows_are_deleted(
    job: Job, produce: Callable[..., None], tmp_path: Path
) -> None:
    columns = ("value.*", "partition", "offset", "timestamp", "value.word = 'w5' AS tombstone")
    how: dict[str, Any] = {"columns": columns, "keys": ["id"]}
    produce(job.name, records(0, 6))
    job.run(tmp_path / "checkpoint", **how)
    admin = AdminClient({"bootstrap.servers": job.bootstrap, "log_level": 3})
    admin.create_partitions([NewPartitions(job.name, 3)])[job.name].result(timeout=30)
    produce(job.name, records(5, 8), partition=2)
    with pytest.raises(PipelineError, match="has got the partition 2 since the last batch"):
        job.run(tmp_path / "checkpoint", **how)
    assert job.ids() == list(range(5))
    job.run(tmp_path / "checkpoint", order_by="timestamp", **how)
    assert job.ids() == [0, 1, 2, 3, 4, 6, 7]


def test_the_query_waits_for_a_database_that_is_away(
    job: Job, produce: Callable[..., None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    produce(job.name, records(0, 5))
    query = job.start(tmp_path / "checkpoint")
    try:
        query.processAllAvailable()
        job.database.kill()
        produce(job.name, records(5, 9))
        until = time.monotonic() + 60
        while "does not answer. Trying again" not in caplog.text and time.monotonic() < until:
            time.sleep(0.1)
        job.database.start()
        query.processAllAvailable()
    finally:
        query.stop()
    assert "The database of public.t in postgresql://" in caplog.text
    assert job.ids() == list(range(9))


def test_a_table_that_is_locked_is_waited_for(
    job: Job, produce: Callable[..., None], tmp_path: Path
) -> None:
    produce(job.name, records(0, 5))
    query = job.start(tmp_path / "checkpoint")
    lock = "BEGIN; LOCK TABLE t, ottla_batches IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(3); COMMIT"
    other = threading.Thread(target=job.database.query, args=(lock,))
    try:
        query.processAllAvailable()
        other.start()
        produce(job.name, records(5, 9))
        query.processAllAvailable()
    finally:
        query.stop()
        other.join()
    assert job.ids() == list(range(9))


def test_rows_that_violate_a_check_are_there_once_when_it_is_gone(
    job: Job, produce: Callable[..., None], tmp_path: Path
) -> None:
    produce(job.name, records(0, 5))
    query = job.start(tmp_path / "checkpoint")
    query.processAllAvailable()
    job.database.query("ALTER TABLE t ADD CONSTRAINT small CHECK (id < 7)")
    produce(job.name, records(5, 9))
    with pytest.raises(PipelineError, match=r"refused a row of public\.t") as raised:
        query.awaitTermination(60)
    assert len(str(raised.value).splitlines()) == 1
    assert job.ids() == list(range(5))

    job.database.query("ALTER TABLE t DROP CONSTRAINT small")
    produce(job.name, records(9, 12))
    job.run(tmp_path / "checkpoint")
    assert job.ids() == list(range(12))


def test_failures_are_one_sentence(job: Job, produce: Callable[..., None], tmp_path: Path) -> None:
    produce(job.name, records(0, 5))
    wrong = {"password": "not-this-one"}
    for how, words in (
        (wrong, "refused the login: password authentication failed.*Check user= and password="),
        ({"url": job.database.url.replace("/lake", "/sea")}, "There is no such database"),
        ({"url": "jdbc:postgresql://127.0.0.1:9/lake"}, "does not answer: Connection to"),
    ):
        with pytest.raises(PipelineError, match=words) as raised:
            job.run(tmp_path / "none", **how)
        assert len(str(raised.value).splitlines()) == 1
        assert "not-this-one" not in str(raised.value)
    assert not (tmp_path / "none").exists()

    job.run(tmp_path / "checkpoint")
    produce(job.name, records(5, 9))
    job.database.query("ALTER TABLE t ADD CHECK (id < 7)")
    with pytest.raises(
        PipelineError, match=r"refused a row of public.t in .*violates check constraint"
    ):
        job.run(tmp_path / "checkpoint")
    job.database.query("ALTER TABLE t DROP CONSTRAINT t_id_check, DROP COLUMN word")
    with pytest.raises(PipelineError, match=r"column word .*does not have"):
        job.run(tmp_path / "checkpoint")
    job.database.query("ALTER TABLE t ADD COLUMN word int")
    with pytest.raises(PipelineError, match="word is string in the rows and integer in the table"):
        job.run(tmp_path / "checkpoint")
    assert job.ids() == list(range(5))


@pytest.mark.parametrize("streamed_bytes", [0, jdbc.STREAMED_BYTES])
def test_a_stop_ends_a_query_inside_a_batch(
    job: Job,
    produce: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    streamed_bytes: int,
) -> None:
    monkeypatch.setattr(jdbc, "STREAMED_BYTES", streamed_bytes)
    produce(job.name, records(0, 5))
    slow = ("value.id", "java_method('java.lang.Thread', 'sleep', 3000L) AS word")
    query = job.start(tmp_path / "checkpoint", columns=slow)
    threading.Event().wait(3)
    query.stop()
    assert query.exception() is None


def test_the_guides_example_runs(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    postgres: Postgres,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    guide = (Path(__file__).parents[4] / "docs/pipeline-sinks.md").read_text()
    (example,) = [
        one for one in re.findall(r"```py\n(.*?)```", guide, re.DOTALL) if "to_postgresql(" in one
    ]
    name = new_topic()
    produce(name, [('{"tailnum": "N1"}', '{"dest": "HNL"}'), ('{"tailnum": "N2"}', "{}")])
    produce(name, [('{"tailnum": "N2"}', None)])
    spark.sql(f"ADD JAR '{fetched_driver()}'")
    monkeypatch.setenv("LAKE_PASSWORD", PASSWORD)
    script = example.replace("localhost:9092", bootstrap).replace('"./', f'"{tmp_path}/')
    script = script.replace("jdbc:postgresql://localhost:5432/lake", postgres.url)
    script = script.replace('    "flights",\n', f'    "{name}",\n')

    exec(compile(script, "docs/pipeline-sinks.md", "exec"), {})

    assert postgres.query("SELECT tailnum, dest FROM aircraft") == [["N1", "HNL"]]


def test_a_checkpoint_that_is_older_than_its_table_is_refused(
    job: Job, produce: Callable[..., None], tmp_path: Path
) -> None:
    produce(job.name, records(0, 10))
    job.run(tmp_path / "checkpoint")
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "backup")
    produce(job.name, records(10, 20))
    job.run(tmp_path / "checkpoint")
    produce(job.name, records(20, 30))
    with pytest.raises(PipelineError, match="was set back, for example by a backup"):
        job.run(tmp_path / "backup")
    assert job.ids() == list(range(20))


def test_a_constraint_that_comes_while_the_query_runs_rejects_rows(
    job: Job, produce: Callable[..., None], tmp_path: Path
) -> None:
    produce(job.name, records(0, 3))
    query = job.start(tmp_path / "checkpoint")
    try:
        query.processAllAvailable()
        job.database.query("ALTER TABLE t ALTER COLUMN word SET NOT NULL")
        produce(job.name, [*records(3, 5), ("9", '{"id": 9}')])
        query.processAllAvailable()
    finally:
        query.stop()
    assert query.exception() is None
    assert job.ids() == [*range(5)]
    assert job.database.query("SELECT reason FROM t_rejected") == [
        ["the column word is null, but NOT NULL"]
    ]


@pytest.mark.parametrize("delivery", ["exactly-once", "at-most-once"])
def test_texts_are_searched_for_u0000_once_the_database_has_refused_one(
    job: Job,
    produce: Callable[..., None],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    delivery: str,
) -> None:
    bad = [(str(n), json.dumps({"id": n, "word": "a\0b"})) for n in (3, 7)]
    query = job.start(tmp_path / "checkpoint", delivery=delivery)
    try:
        produce(job.name, records(0, 3))
        query.processAllAvailable()
        for first, one in ((3, bad[0]), (7, bad[1])):
            produce(job.name, [one, *records(first + 1, first + 4)])
            query.processAllAvailable()
    finally:
        query.stop()
    assert query.exception() is None
    assert job.ids() == [0, 1, 2, 4, 5, 6, 8, 9, 10]
    rejected = job.database.query('SELECT reason, "row" FROM t_rejected ORDER BY "offset"')
    reason = "the column word has the character U+0000, which PostgreSQL cannot store"
    assert [(why, json.loads(row)["id"]) for why, row in rejected] == [(reason, 3), (reason, 7)]
    again = [one for one in caplog.messages if "cannot store a character" in one]
    assert len(again) == 1
    assert "Trying again in 1 s (try 1" in again[0]


def test_a_record_with_u0000_in_place_of_a_number_stops_nothing(
    job: Job, produce: Callable[..., None], tmp_path: Path
) -> None:
    produce(job.name, [("x", json.dumps({"id": "a\0b", "word": "w"})), *records(1, 3)])
    job.run(tmp_path / "checkpoint")
    assert job.ids() == [1, 2]
    assert job.database.query("SELECT reason FROM t_rejected") == [
        ["value.id is not a bigint: a\\u0000b"]
    ]
