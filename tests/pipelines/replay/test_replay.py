"""Rejected rows sent again, into each kind of target, with a kill between any two steps."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from components.postgres import PASSWORD, USER, Postgres, fetched_driver
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql.types import StructType

from components import fixture
from ottla.pipelines import PipelineError
from ottla.pipelines.checkpoint.landmarks import LANDMARKS
from ottla.pipelines.checkpoint.lease import Lease
from ottla.pipelines.file.build import replay_pipeline, start_pipeline
from ottla.pipelines.file.read import read_file
from ottla.pipelines.rejects.table import read_rejected
from ottla.pipelines.replay.note import FOLDER, NOTE
from ottla.pipelines.spark.jvm.files import Files
from ottla.pipelines.spec.pipeline import PipelineSpec

pytestmark = pytest.mark.spark
postgres = fixture.postgres

TEXT = """
[source]
bootstrap_servers = "{bootstrap}"
topic = "{topic}"
{source}
schema = "{schema}"
key_schema = "string"
tombstones = "{tombstones}"

[transform]
view = "numbers"
sql = "{sql}"

[sink]
{sink}

[delivery]
checkpoint = "{folder}/checkpoint"
trigger = "available-now"
on_rejects = "continue"
{more}
"""
BEFORE = "id BIGINT NOT NULL, word STRING"
AFTER = "id STRING NOT NULL, word STRING"
SQL = "SELECT key AS k, value.id, value.word, partition, offset, timestamp FROM numbers"
MENDED = (
    "SELECT key AS k, CAST(replace(value.id, 'n', '') AS BIGINT) AS id, value.word, partition, "
    "offset, timestamp FROM numbers"
)


class KilledError(Exception):
    """A process that ends here."""


class Job:
    """A pipeline file; `file` gives it with another schema."""

    def __init__(self, spark: Any, bootstrap: str, topic: str, folder: Path, sink: str) -> None:
        self.spark, self.bootstrap, self.topic, self.folder = spark, bootstrap, topic, folder
        self.sink, self.more, self.source = sink, "", ""

    def file(self, schema: str = BEFORE, sql: str = SQL, tombstones: str = "skip") -> PipelineSpec:
        path = self.folder / "numbers.toml"
        path.write_text(
            TEXT.format(
                bootstrap=self.bootstrap, topic=self.topic, schema=schema, sql=sql,
                tombstones=tombstones, sink=self.sink, folder=self.folder, more=self.more,
                source=self.source,
            )
        )  # fmt: skip
        return read_file(path, {}).pipelines[0]

    def run(self, **how: Any) -> None:
        start_pipeline(self.spark, self.file(**how)).awaitTermination()

    def replay(self, kill_at: int | None = None, **how: Any) -> Any:
        told: list[str] = []

        def tell(line: str) -> None:
            told.append(line)
            if kill_at is not None and len(told) > kill_at:
                raise KilledError

        reasons, dry_run = how.pop("reasons", ()), how.pop("dry_run", False)
        dead = how.pop("dead_letters", False)
        spec = self.file(**{"schema": AFTER, "sql": MENDED} | how)
        return replay_pipeline(
            self.spark, spec, reasons=reasons, dead_letters=dead, dry_run=dry_run, tell=tell
        )

    def rows(self) -> Any:
        spec = self.file()
        frame = spec.sink.rejected(self.spark)
        return replace_target(frame).rows()

    def rejected(self) -> Any:
        found = read_rejected(self.file().sink.rejected(self.spark), 100, self.topic)
        assert found is not None
        return found


def replace_target(rejected: Any) -> Any:
    """The target beside which these rejected rows lie."""
    name = rejected.name.removesuffix("_rejected")
    kind = type(rejected)
    if kind.__name__ == "DeltaSink":
        from ottla.pipelines.sinks.delta.target import find_target

        return kind(rejected.spark, find_target(rejected.spark, name), StructType())
    if kind.__name__ == "FilesSink":
        return kind(rejected.spark, name, StructType(), rejected.format)
    if kind.__name__ == "IcebergSink":
        return kind(rejected.spark, name, StructType())
    table = replace(rejected.table, table=rejected.table.table.removesuffix("_rejected"))
    return replace(rejected, table=table)


@pytest.fixture(autouse=True)
def no_views_left(spark: Any) -> Iterator[None]:
    yield
    spark.catalog.dropTempView("numbers")


@pytest.fixture
def job(
    request: pytest.FixtureRequest,
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    tmp_path: Path,
) -> Job:
    topic = new_topic(1)
    sink = f'target = "{tmp_path}/numbers"'
    if request.param == "json":
        sink += '\nformat = "json"'
    elif request.param == "iceberg":
        catalog = request.getfixturevalue("catalog")
        sink = f'format = "iceberg"\ntarget = "{catalog}.db.{topic.replace("-", "_")}"'
    elif request.param == "postgresql":
        database: Postgres = request.getfixturevalue("postgres")
        spark.sql(f"ADD JAR '{fetched_driver()}'")
        name = topic.replace("-", "_")
        sink = f'target = "{name}"\nurl = "{database.url}"\nuser = "{USER}"\n'
        sink += f'password = "{PASSWORD}"'
    return Job(spark, bootstrap, topic, tmp_path, sink)


def value(id_: Any, word: str = "w") -> str:
    return json.dumps({"id": id_, "word": word})


@pytest.mark.parametrize(
    ("job", "every"),
    [
        ("delta", 1),
        ("json", 2),
        ("iceberg", 2),
        *(pytest.param(sink, 1, marks=pytest.mark.full) for sink in ("json", "iceberg")),
        pytest.param("postgresql", 1, marks=pytest.mark.full),
    ],
    indirect=["job"],
)
def test_each_row_arrives_once_although_each_step_is_killed(
    job: Job, produce: Callable[..., None], every: int
) -> None:
    """Each or, where the steps are as those of Delta, each second one."""
    produce(job.topic, [("a", value(n if n % 3 else f"n{n}")) for n in range(12)])
    produce(job.topic, [("a", b"\xff"), ("a", value(None))])
    job.run()
    assert job.rejected().rows == 6

    kill_at = 0
    while True:
        try:
            job.replay(kill_at)
            break
        except KilledError:
            kill_at += every
    assert kill_at >= 4

    assert sorted(row["id"] for row in job.rows().select("id").collect()) == list(range(12))
    left = job.rejected()
    assert {(one.reason, one.rows) for one in left.reasons} == {
        ("value is not a JSON object of the schema", 1),
        ("value lacks the field id, which is NOT NULL", 1),
    }
    files = Files(job.spark, str(job.folder / "checkpoint"))
    assert not files.exists(NOTE.name)
    assert not files.exists(FOLDER)

    # A second replay finds nothing new, and the pipeline goes on where it was.
    again = job.replay()
    assert (again.rows, again.sent, again.kept, again.written) == (2, 0, 2, 0)
    produce(job.topic, [("a", value(12)), ("a", value("n13"))])
    job.run()
    job.replay()
    job.run()
    assert sorted(row["id"] for row in job.rows().select("id").collect()) == list(range(14))
    assert job.rejected().rows == 2


@pytest.fixture
def table(spark: Any, bootstrap: str, new_topic: Callable[..., str], tmp_path: Path) -> Job:
    return Job(spark, bootstrap, new_topic(1), tmp_path, f'target = "{tmp_path}/numbers"')


def test_an_older_record_replaces_no_newer_row_of_its_key(
    table: Job, produce: Callable[..., None]
) -> None:
    table.sink += '\nkeys = ["k"]'
    produce(table.topic, [("a", value("n1")), ("b", value("n2")), ("a", value(3)), ("c", b"?")])
    produce(table.topic, [("b", value("n4"))])
    table.run()

    found = table.replay()

    assert (found.rows, found.sent, found.kept, found.written) == (4, 3, 1, 3)
    rows = table.rows().select("k", "id", "offset").collect()
    assert sorted(map(tuple, rows)) == [("a", 3, 2), ("b", 4, 4)]


def test_a_history_has_a_late_record_at_its_place(table: Job, produce: Callable[..., None]) -> None:
    table.sink += '\nkeys = ["k"]\nhistory = true'
    produce(table.topic, [("a", value(1)), ("a", value("n2")), ("a", value(3))])
    table.run()

    table.replay()

    rows = table.rows().select("id", "is_current").orderBy("offset").collect()
    assert [tuple(row) for row in rows] == [(1, False), (2, False), (3, True)]
    assert table.rows().where("valid_to IS NULL").count() == 1


def test_a_table_whose_deletions_leave_nothing_is_refused(
    table: Job, produce: Callable[..., None]
) -> None:
    sql = SQL.replace("timestamp", "timestamp, tombstone")
    table.sink += '\nkeys = ["k"]'
    produce(table.topic, [("a", value("n1")), ("a", None)])
    table.run(sql=sql, tombstones="mark")
    with pytest.raises(PipelineError, match="could bring the row back"):
        table.replay(sql=MENDED.replace("timestamp", "timestamp, tombstone"), tombstones="mark")
    assert table.rejected().rows == 1


def test_a_row_that_a_constraint_refused_is_read_again_from_the_topic(
    table: Job, produce: Callable[..., None]
) -> None:
    produce(table.topic, [("a", value(1)), ("a", value("n2"))])
    table.run()
    where = f"delta.`{table.folder}/numbers`"
    table.spark.sql(f"ALTER TABLE {where} ADD CONSTRAINT small CHECK (id < 10)")
    produce(table.topic, [("a", value(n)) for n in (3, 20, 30)])
    table.run()
    table.replay(reasons=["bigint"])
    assert sorted(row["id"] for row in table.rows().collect()) == [1, 2, 3]
    table.spark.sql(f"ALTER TABLE {where} DROP CONSTRAINT small")
    table.spark.sql(f"ALTER TABLE {where} ADD CONSTRAINT small CHECK (id < 25)")

    files = Files(table.spark, str(table.folder / "checkpoint"))
    kept = LANDMARKS.read(files)
    assert kept is not None
    other = replace(kept[table.topic], records={0: (99, 1)})  # no record was later than 1 ms
    LANDMARKS.write(files, {table.topic: other})
    assert table.replay(dry_run=True).not_found == 2, "the brokers lost records: others are there"
    LANDMARKS.write(files, kept)

    looked = table.replay(dry_run=True)
    assert sorted(row["id"] for row in table.rows().collect()) == [1, 2, 3]
    found = table.replay()

    assert (found.rows, found.sent, found.kept, found.not_found) == (2, 1, 1, 0)
    assert replace(looked, table=found.table) == found
    assert sorted(row["id"] for row in table.rows().collect()) == [1, 2, 3, 20]
    (reason,) = table.rejected().reasons
    assert (reason.reason, reason.rows) == ("violates the CHECK constraint small (id < 25)", 1)
    assert reason.reason == found.kept_reasons[0][0]


@pytest.mark.parametrize("checkpoint", ["checkpoint", "another"])
def test_a_record_of_a_topic_that_was_created_again_is_not_taken_for_the_refused_one(
    table: Job, produce: Callable[..., None], checkpoint: str
) -> None:
    produce(table.topic, [("a", value(1)), ("a", value(8))])
    table.run()
    where = f"delta.`{table.folder}/numbers`"
    table.spark.sql(f"ALTER TABLE {where} ADD CONSTRAINT small CHECK (id < 10)")
    produce(table.topic, [("a", value(n)) for n in (30, 2)])
    table.run()
    admin = AdminClient({"bootstrap.servers": table.bootstrap})
    admin.delete_topics([table.topic])[table.topic].result(timeout=30)
    admin.create_topics([NewTopic(table.topic, 1, 1)])[table.topic].result(timeout=30)
    produce(table.topic, [("a", value(n)) for n in (3, 4, 5)])
    table.more = 'on_lost = "skip"'
    if checkpoint == "another":
        shutil.move(table.folder / "checkpoint", table.folder / "former")
        table.source = 'starting = "table"'
    table.run()
    there = [1, 2, 3, 4, 5, 8]
    assert sorted(row["id"] for row in table.rows().collect()) == there

    table.spark.sql(f"ALTER TABLE {where} DROP CONSTRAINT small")
    found = table.replay(schema=BEFORE, sql=SQL)

    assert (found.rows, found.sent, found.not_found) == (1, 0, 1)
    assert sorted(row["id"] for row in table.rows().collect()) == there
    assert table.rejected().rows == 1


def test_a_dry_run_counts_by_reason_and_changes_nothing(
    table: Job, produce: Callable[..., None]
) -> None:
    bad = [("a", value("n1")), ("a", value("n2")), ("a", b"?")]
    produce(table.topic, [("a", value(0)), *bad])
    table.run()

    found = table.replay(dry_run=True)

    assert (found.rows, found.sent, found.kept, found.written) == (3, 2, 1, 2)
    assert [(one.reason, one.rows, one.sent, one.kept) for one in found.reasons] == [
        ("value.id is not a bigint", 2, 2, 0),
        ("value is not a JSON object of the schema", 1, 0, 1),
    ]
    assert found.kept_reasons == (("value is not a JSON object of the schema", 1),)
    assert table.rows().count() == 1
    assert table.rejected().rows == 3
    files = Files(table.spark, str(table.folder / "checkpoint"))
    assert not [name for name in files.names() if name.startswith(FOLDER)]
    only = table.replay(reasons=["JSON object"])
    assert (only.rows, only.sent, only.kept) == (1, 0, 1)
    assert table.rejected().rows == 3


def test_what_cannot_be_sent_again_is_refused(table: Job, produce: Callable[..., None]) -> None:
    assert table.replay().rows == 0  # it has never run
    produce(table.topic, [("a", value(0)), ("a", value("n1"))])
    table.run()
    with pytest.raises(PipelineError, match="has DISTINCT, in which a record counts together"):
        table.replay(sql=MENDED.replace("SELECT", "SELECT DISTINCT"))

    lease = Lease(Files(table.spark, str(table.folder / "checkpoint")))
    lease.acquire()
    active = [True]
    lease.keep(lambda: active[0], lambda reason: None)
    try:
        with pytest.raises(PipelineError, match="is in use by process"):
            table.replay()
    finally:
        active[0] = False
        lease.release()
    assert table.rejected().rows == 1


def test_rows_of_a_dead_letter_topic_are_sent_once(
    table: Job, new_topic: Callable[..., str], produce: Callable[..., None]
) -> None:
    produce(table.topic, [("a", value(0))])
    table.run()
    with pytest.raises(PipelineError, match="has no topic for rejected rows"):
        table.replay(dead_letters=True)
    dead = new_topic(1)
    table.more = f'dead_letters = "{dead}"'
    where = f"delta.`{table.folder}/numbers`"
    table.spark.sql(f"ALTER TABLE {where} ADD CONSTRAINT small CHECK (id < 10)")
    produce(table.topic, [("a", value("n1")), ("a", value("n2")), ("a", value(20)), ("a", b"?")])
    table.run()
    table.spark.sql(f"ALTER TABLE {where} DROP CONSTRAINT small")

    table.replay(reasons=["n1"])
    found = table.replay(dead_letters=True)

    assert (found.rows, found.sent, found.kept) == (3, 2, 1)
    assert sorted(row["id"] for row in table.rows().collect()) == [0, 1, 2, 20]
    again = [table.replay(dead_letters=dead_letters) for dead_letters in (True, False)]
    assert [(one.rows, one.sent, one.written) for one in again] == [(1, 0, 0), (1, 0, 0)]
    assert table.rejected().rows == 1


def test_a_replay_whose_rows_were_restored_away_is_not_ended_as_if_they_were_there(
    table: Job, produce: Callable[..., None]
) -> None:
    produce(table.topic, [("a", value(0)), ("a", value("n1"))])
    table.run()
    where = f"delta.`{table.folder}/numbers`"
    version = table.spark.sql(f"DESCRIBE HISTORY {where} LIMIT 1").first()[0]
    with pytest.raises(KilledError):
        table.replay(4)  # the rows are written, and not marked
    assert table.rows().count() == 2
    table.spark.sql(f"RESTORE TABLE {where} TO VERSION AS OF {version}")

    with pytest.raises(PipelineError, match=r"its 1 rows were taken out of .* by RESTORE TABLE"):
        table.replay()

    assert table.rejected().rows == 1
    Files(table.spark, str(table.folder / "checkpoint")).delete(NOTE.name)
    table.replay()
    assert sorted(row["id"] for row in table.rows().select("id").collect()) == [0, 1]


def test_rows_that_a_replay_of_another_checkpoint_has_written_are_not_written_again(
    table: Job, produce: Callable[..., None]
) -> None:
    produce(table.topic, [("a", value(0)), ("a", value("n1"))])
    table.run()
    checkpoint = table.folder / "checkpoint"
    shutil.copytree(checkpoint, table.folder / "backup")
    with pytest.raises(KilledError):
        table.replay(4)  # the rows are written, and not marked
    shutil.move(checkpoint, table.folder / "begun")
    shutil.copytree(table.folder / "backup", checkpoint)

    with pytest.raises(PipelineError, match=r"written rows to .* this checkpoint does not know"):
        table.replay()
    assert sorted(row["id"] for row in table.rows().select("id").collect()) == [0, 1]

    shutil.rmtree(checkpoint)
    shutil.move(table.folder / "begun", checkpoint)
    table.replay()
    assert (table.rows().count(), table.rejected().rows) == (2, 0)


def test_a_table_that_was_made_again_gets_no_rows_of_the_former_one(
    table: Job, produce: Callable[..., None]
) -> None:
    produce(table.topic, [("a", value(0)), ("a", value("n1"))])
    table.run()
    table.replay(dry_run=True)
    path = f"{table.folder}/numbers"
    columns = table.rows()
    shutil.rmtree(path)
    columns.sparkSession.createDataFrame([], columns.schema).write.format("delta").save(path)

    with pytest.raises(PipelineError, match="was deleted and created again"):
        table.replay()
    assert table.rows().count() == 0


def test_a_replay_that_was_cut_off_lacks_columns_that_a_merge_needs(
    table: Job, produce: Callable[..., None]
) -> None:
    table.sink += '\nkeys = ["k"]\nschema_changes = "add"'
    produce(table.topic, [("a", value(0)), ("b", value("n1"))])
    table.run()
    with pytest.raises(KilledError):
        table.replay(3)  # the rows are kept, and not written

    with pytest.raises(PipelineError, match="the rows that it has computed lack the column more"):
        table.replay(sql=MENDED.replace("SELECT", "SELECT 1 AS more,"))

    table.replay()
    assert sorted(row["id"] for row in table.rows().select("id").collect()) == [0, 1]


def test_a_table_that_lost_batches_gets_no_rows_which_a_new_checkpoint_reads_again(
    table: Job, produce: Callable[..., None]
) -> None:
    produce(table.topic, [("a", value(0))])
    table.run()
    where = f"delta.`{table.folder}/numbers`"
    version = table.spark.sql(f"DESCRIBE HISTORY {where} LIMIT 1").first()[0]
    produce(table.topic, [("a", value(1)), ("a", value("n2"))])
    table.run()
    table.spark.sql(f"RESTORE TABLE {where} TO VERSION AS OF {version}")

    with pytest.raises(PipelineError, match="was set back by RESTORE TABLE"):
        table.replay()

    assert [row["id"] for row in table.rows().collect()] == [0]
    assert table.rejected().rows == 1


def test_a_run_between_the_checks_of_a_replay_and_its_beginning_is_noticed(
    table: Job, produce: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(table.topic, [("a", value(0)), ("a", value("n1"))])
    table.run()
    produce(table.topic, [("a", value(2))])
    acquire = Lease.acquire

    def after_a_run(lease: Lease, **how: Any) -> None:
        monkeypatch.undo()
        table.run()
        acquire(lease, **how)

    monkeypatch.setattr(Lease, "acquire", after_a_run)
    with pytest.raises(PipelineError, match="Another run has written to the checkpoint"):
        table.replay()
    assert sorted(row["id"] for row in table.rows().select("id").collect()) == [0, 2]
    table.replay()
    assert sorted(row["id"] for row in table.rows().select("id").collect()) == [0, 1, 2]


def test_a_replayed_row_that_is_older_than_a_truncation_stays_away(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    sink = (
        f'target = "{tmp_path}/t"\nkeys = ["k"]\norder_by = "offset"\n'
        "apply_as_truncates = \"word = 't'\""
    )
    job = Job(spark, bootstrap, new_topic(1), tmp_path, sink)
    values = {"a": 1, "b": "n2", "t": 3, "c": 4, "d": "n5"}
    produce(job.topic, [(k, json.dumps({"id": v, "word": k})) for k, v in values.items()])
    job.run()

    def keys() -> list[str]:
        return sorted(row["k"] for row in job.rows().select("k").collect())

    assert keys() == ["c"]

    def replay(killed_at: str) -> None:
        def tell(line: str) -> None:
            if line.startswith(killed_at):
                raise KilledError

        spec = job.file(AFTER, MENDED)
        replay_pipeline(spark, spec, reasons=(), dead_letters=False, dry_run=False, tell=tell)

    for line in ("Rows to write", "Marking"):  # before the rows are written, and after that
        with pytest.raises(KilledError):
            replay(line)
    found = job.replay()
    assert found.finished == 2
    assert keys() == ["c", "d"]
