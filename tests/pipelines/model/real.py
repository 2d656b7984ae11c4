"""What can happen around a pipeline, against a real broker, Spark, Delta, PostgreSQL and files.

`RealWorld` has an action for each thing that can happen. A run that ends by itself has each record
in the target once; one that is refused says why in one sentence, and then it goes on as a user
would: where the table ends, or with a new target.
"""

from __future__ import annotations

import collections
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from components.postgres import PASSWORD, USER, Postgres, fetched_driver
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from ottla.pipelines import PipelineError, to_delta, to_files, to_postgresql, to_topic, topic
from ottla.pipelines.checkpoint import lease
from ottla.pipelines.sinks.delta.sink import DeltaSink
from ottla.pipelines.sinks.files.sink import FilesSink
from ottla.pipelines.sinks.postgresql.sink import JdbcSink
from ottla.pipelines.sinks.topic.sink import TopicSink
from ottla.pipelines.target.delta_table import DeltaTable

SCHEMA = "id BIGINT NOT NULL"
MAX_PARTITIONS = 3
CUT = "cut off by the test"
WITHIN_S = 120
BEAT_S = 0.2
SHORT = "100 milliseconds"
SINKS: dict[str, Any] = {
    "delta": DeltaSink,
    "postgresql": JdbcSink,
    "files": FilesSink,
    "topic": TopicSink,
    "upsert": DeltaSink,
}
KEYS = 8
TABLE = '"table"'


class RealWorld:
    """A topic, a target, a checkpoint and its backup; `said` has the refusals."""

    def __init__(
        self, kind: str, spark: Any, bootstrap: str, folder: Path, database: Postgres | None
    ) -> None:
        self.kind, self.spark, self.bootstrap, self.database = kind, spark, bootstrap, database
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 3})
        self.around = folder
        self.topic = f"source-{uuid.uuid4().hex[:8]}"
        self.partitions = 1
        self.last: dict[int, int | None] = {}
        self.said: list[str] = []
        self.number = 0
        self._make_topic(self.topic, 1)
        if database is not None:
            spark.sql(f"ADD JAR '{fetched_driver()}'")
        self.renew()

    @property
    def sent(self) -> list[int]:
        """What the target must have: the number of each record, with keys that of the last one."""
        return sorted(number for number in self.last.values() if number is not None)

    def _make_topic(self, name: str, partitions: int) -> None:
        self.admin.create_topics([NewTopic(name, partitions, 1)])[name].result(timeout=30)

    def renew(self) -> None:
        """The user begins again: another target, and a new checkpoint."""
        self.folder = self.around / f"world-{uuid.uuid4().hex[:8]}"
        self.folder.mkdir()
        self.checkpoint, self.backup = self.folder / "checkpoint", self.folder / "backup"
        if self.database is not None:
            self.database.query(f"DROP TABLE IF EXISTS {TABLE}, kept, kept_batches")
        if self.kind == "topic":
            self.target = f"target-{uuid.uuid4().hex[:8]}"
            self._make_topic(self.target, 2)

    # ---- a run, and what must hold after it

    def run(self, checkpoint: Path | None = None, starting: str = "earliest") -> str:
        """Run the pipeline until it has all; return why it did not, empty where it did."""
        try:
            self._started(checkpoint or self.checkpoint, starting).awaitTermination()
        except PipelineError as error:
            return str(error)
        return ""

    def _started(self, checkpoint: Path, starting: str, *, ends: bool = True) -> Any:
        """Return the pipeline's query. Raises PipelineError."""
        where: dict[str, Any] = {"bootstrap_servers": self.bootstrap}
        trigger: dict[str, Any] = {"availableNow": True} if ends else {"processingTime": SHORT}
        how: dict[str, Any] = {"checkpoint": checkpoint, "trigger": trigger}
        if self.kind == "upsert":
            of_key: dict[str, Any] = {
                "key_schema": SCHEMA,
                "schema": "n BIGINT",
                "tombstones": "mark",
            }
            frame = topic(self.spark, self.topic, starting=starting, **of_key, **where)
            columns = ("key.id", "value.n", "partition", "offset", "timestamp", "tombstone")
            rows = frame.select(*columns)
            how["keys"] = ["id"]
        else:
            frame = topic(self.spark, self.topic, schema=SCHEMA, starting=starting, **where)
            rows = frame.select("value.*", "partition", "offset")
        if self.kind in ("delta", "upsert"):
            query: Any = to_delta(rows, self.folder / "table", **how)
        elif self.kind == "files":
            query = to_files(rows, self.folder / "table", **how)
        elif self.kind == "topic":
            query = to_topic(rows, self.target, value="id", **where, **how)
        else:
            assert self.database is not None
            login: dict[str, Any] = {"url": self.database.url, "user": USER, "password": PASSWORD}
            query = to_postgresql(rows, "table", **login, **how)
        return query

    def ids(self) -> list[int]:
        """Return what the target holds, sorted."""
        if self.kind == "topic":
            return sorted(self._read_topic())
        if self.database is not None:
            is_there = self.database.query(f"SELECT to_regclass('{TABLE}') IS NOT NULL")
            found = self.database.query(f"SELECT id FROM {TABLE}") if is_there == [["t"]] else []
            return sorted(int(row[0]) for row in found)
        table = self.folder / "table"
        if not table.exists():
            return []
        if self.kind == "files":
            if not (table / "_spark_metadata").exists():
                return []
            return sorted(row["id"] for row in self.spark.read.parquet(str(table)).collect())
        DeltaTable(self.spark, f"file:{table}").forget()
        column = "n" if self.kind == "upsert" else "id"
        rows = self.spark.read.format("delta").load(str(table)).collect()
        return sorted(row[column] for row in rows)

    def _read_topic(self) -> list[int]:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "reader",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "log_level": 3,
            }
        )
        consumer.assign([TopicPartition(self.target, number, 0) for number in (0, 1)])
        found, ends = [], 0
        try:
            while ends < 2:
                message = consumer.poll(30)
                assert message is not None, "the consumer got nothing for 30 s"
                if message.error() is not None:
                    ends += 1
                else:
                    found.append(int(message.value() or b"-1"))
        finally:
            consumer.close()
        return found

    def check(self, said: str, checkpoint: Path | None = None) -> None:
        """A run has each record in the target once, or says in one sentence why it has not."""
        found = self.ids()
        if not said:
            assert found == self.sent, self._differs(found)
            return
        twice = [number for number, count in collections.Counter(found).items() if count > 1]
        assert not twice, f"{twice[:5]} are there twice: {said}"
        assert "\n" not in said, said
        assert "Traceback" not in said
        self.said.append(said)
        if checkpoint is None:
            self._go_on()

    def _differs(self, found: list[int]) -> str:
        wanted, has = collections.Counter(self.sent), collections.Counter(found)
        return f"missing {sorted(wanted - has)[:5]}, too many {sorted(has - wanted)[:5]}"

    def _go_on(self) -> None:
        """Do what a refusal says: continue where the table ends, or use a new one."""
        if self.kind in ("delta", "postgresql", "upsert"):
            self.checkpoint = self.folder / f"checkpoint-{uuid.uuid4().hex[:8]}"
            if not self.run(starting="table"):
                found = self.ids()
                assert found == self.sent, self._differs(found)
                return
        self.renew()
        assert self.run() == ""
        assert self.ids() == self.sent

    # ---- what can happen

    def append(self, draw: random.Random) -> None:
        """Somebody produces records."""
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for _ in range(draw.randint(1, 40)):
            self.number += 1
            if self.kind == "upsert":
                key = draw.randrange(KEYS)
                is_deleted = draw.random() < 0.2
                value = None if is_deleted else json.dumps({"n": self.number})
                producer.produce(self.topic, value, json.dumps({"id": key}), partition=0)
                self.last[key] = None if is_deleted else self.number
            else:
                partition = draw.randrange(self.partitions)
                value = json.dumps({"id": self.number})
                producer.produce(self.topic, value, partition=partition)
                self.last[self.number] = self.number
        assert producer.flush(30) == 0

    def run_all(self, draw: random.Random) -> None:
        """A run, as a timer starts it."""
        self.check(self.run())

    def cut(self, draw: random.Random) -> None:
        """A run fails before or after the write of its first batch."""
        sink, is_after = SINKS[self.kind], draw.random() < 0.5

        def write(self: Any, frame: Any, batch: Any) -> Any:
            if is_after:
                shipped(self, frame, batch)
            raise PipelineError(CUT)

        with pytest.MonkeyPatch.context() as patch:
            shipped = sink.write
            patch.setattr(sink, "write", write)
            said = self.run()
        if said and CUT not in said:
            self.check(said)

    def kill(self, draw: random.Random) -> None:
        """A process is killed soon after it has planned a batch, or has done it."""
        if self._has_no_job():
            return
        before = self._planned()
        job = self._job()
        until = time.monotonic() + WITHIN_S
        while job.poll() is None and self._planned() == before and time.monotonic() < until:
            time.sleep(0.005)
        time.sleep(draw.uniform(0, 1))
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
        job.wait()

    def _has_no_job(self) -> bool:
        """Whether `tests.system.pipeline_job` lacks this pipeline.

        `tests/system/test_topic_crashes.py` kills those of topics.
        """
        return self.kind == "topic" or self.checkpoint.name != "checkpoint"

    def _job(self) -> subprocess.Popen[bytes]:
        """Start the pipeline as a process of its own."""
        sink = "database" if self.database is not None else self.kind
        words = [sys.executable, "-m", "tests.system.pipeline_job", self.bootstrap, self.topic]
        words += [str(self.folder), "--sink", "delta" if sink == "upsert" else sink]
        if self.kind == "upsert":
            words += ["--table", "upsert"]
        if self.database is not None:
            words += ["--url", self.database.url]
        with (self.folder / "job.log").open("w") as log:
            return subprocess.Popen(
                words,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=Path(__file__).parents[3],
            )

    def _running(self) -> Any:
        """Return a query that runs until it is stopped, None where its start is refused."""
        try:
            query = self._started(self.checkpoint, "earliest", ends=False)
            query.processAllAvailable()
        except PipelineError as error:
            self.check(str(error))
            return None
        return query

    def lose_lease(self, draw: random.Random) -> None:
        """A run on another host takes the checkpoint from one that runs."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lease, "BEAT_S", BEAT_S)
            query = self._running()
            if query is None:
                return
            self.append(draw)
            file = self.checkpoint / lease.FILE
            other = json.loads(file.read_text()) | {"host": "elsewhere", "token": "of another run"}
            until = time.monotonic() + WITHIN_S
            while query.isActive and time.monotonic() < until:
                # A beat of the run may come between, and stay: the other one beats again.
                (self.folder / lease.FILE).write_text(json.dumps(other))
                (self.checkpoint / f".{lease.FILE}.crc").unlink(missing_ok=True)
                (self.folder / lease.FILE).replace(file)
                time.sleep(BEAT_S)
            with pytest.raises(PipelineError, match="was taken by process"):
                query.awaitTermination()
        file.unlink()  # the other run ends, and has done nothing
        self.check(self.run())

    def second_process(self, draw: random.Random) -> None:
        """Another process starts on the checkpoint of one that runs; some find it free."""
        if self._has_no_job():
            return
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lease, "BEAT_S", BEAT_S)
            query = self._running()
            if query is None:
                return
            is_free = draw.random() < 0.5
            if is_free:
                # As for a process that was stopped: it neither beats nor reads now.
                patch.setattr(lease.Lease, "renew", lambda _: None)
                (self.checkpoint / lease.FILE).unlink()
            job = self._job()
            while job.poll() is None:
                self.append(draw)
                time.sleep(draw.uniform(0, 1))
            said = (self.folder / "job.log").read_text()
            assert is_free or "is in use by process" in said, said
            if is_free:
                query.stop()
                self.check(self.run())
                return
            query.processAllAvailable()
            query.stop()
        assert self.ids() == self.sent, self._differs(self.ids())

    def second_writer(self, draw: random.Random) -> None:
        """A pipeline with a checkpoint of its own writes the topic into the target."""
        if self.kind != "topic":  # a topic takes the records of any producer
            other = self.folder / f"other-{uuid.uuid4().hex[:8]}"
            self.check(self.run(other), other)

    def _planned(self) -> list[str]:
        offsets = self.checkpoint / "offsets"
        return sorted(one.name for one in offsets.glob("[0-9]*")) if offsets.exists() else []

    def back_up(self, draw: random.Random) -> None:
        """The checkpoint is copied."""
        if self.checkpoint.exists():
            shutil.rmtree(self.backup, ignore_errors=True)
            shutil.copytree(self.checkpoint, self.backup)

    def restore(self, draw: random.Random) -> None:
        """The copy takes the place of the checkpoint."""
        if self.backup.exists():
            shutil.rmtree(self.checkpoint, ignore_errors=True)
            shutil.copytree(self.backup, self.checkpoint)

    def run_copy(self, draw: random.Random) -> None:
        """The copy is started beside the checkpoint."""
        if self.backup.exists():
            self.check(self.run(self.backup), self.backup)

    def back_up_target(self, draw: random.Random) -> None:
        """The target is copied: the folder or the database."""
        table, kept = self.folder / "table", self.folder / "kept"
        if self.database is not None:
            if self.database.query(f"SELECT to_regclass('{TABLE}') IS NOT NULL") == [["t"]]:
                self.database.query(
                    "DROP TABLE IF EXISTS kept, kept_batches; "
                    f"CREATE TABLE kept AS SELECT * FROM {TABLE}; "
                    "CREATE TABLE kept_batches AS SELECT * FROM ottla_batches"
                )
        elif table.exists():
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(table, kept)

    def restore_target(self, draw: random.Random) -> None:
        """The copy of the target takes its place."""
        table, kept = self.folder / "table", self.folder / "kept"
        if self.database is not None:
            if self.database.query("SELECT to_regclass('kept') IS NOT NULL") == [["t"]]:
                self.database.query(
                    f"TRUNCATE {TABLE}, ottla_batches; INSERT INTO {TABLE} SELECT * FROM kept; "
                    "INSERT INTO ottla_batches SELECT * FROM kept_batches"
                )
        elif kept.exists():
            shutil.rmtree(table)
            shutil.copytree(kept, table)

    def restore_table(self, draw: random.Random) -> None:
        """RESTORE TABLE to an earlier version."""
        table = self.folder / "table"
        if self.kind in ("delta", "upsert") and table.exists():
            reader = DeltaTable(self.spark, f"file:{table}")
            reader.forget()
            version = draw.randint(0, reader.snapshot().version)
            self.spark.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF {version}")

    def add_partition(self, draw: random.Random) -> None:
        """The topic gets one partition more."""
        if self.partitions < MAX_PARTITIONS:
            self.partitions += 1
            more = NewPartitions(self.topic, self.partitions)
            self.admin.create_partitions([more])[self.topic].result(timeout=30)

    def recreate_topic(self, draw: random.Random) -> None:
        """The topic is deleted and created again, with records."""
        self.admin.delete_topics([self.topic])[self.topic].result(timeout=30)
        until = time.monotonic() + 30
        while self.topic in self.admin.list_topics(timeout=30).topics and time.monotonic() < until:
            time.sleep(0.05)
        self.partitions, self.last = 1, {}
        self._make_topic(self.topic, 1)
        self.append(draw)
        # Rows of the former topic are in the target, if a run has read any.
        said = self.run()
        if said or self.ids() != self.sent:
            assert said, "the former topic's rows are there, and the run said nothing"
            self.said.append(said)
            self.renew()

    def recreate_target(self, draw: random.Random) -> None:
        """The target is dropped."""
        if self.database is not None:
            self.database.query(f"DROP TABLE IF EXISTS {TABLE}, kept, kept_batches")
        else:
            shutil.rmtree(self.folder / "table", ignore_errors=True)
            shutil.rmtree(self.folder / "kept", ignore_errors=True)


Action = Callable[[RealWorld, random.Random], None]
WEIGHTS: dict[Action, int] = {
    RealWorld.append: 4,
    RealWorld.run_all: 5,
    RealWorld.cut: 3,
    RealWorld.back_up: 1,
    RealWorld.restore: 2,
    RealWorld.run_copy: 2,
    RealWorld.second_writer: 1,
    RealWorld.back_up_target: 1,
    RealWorld.restore_target: 2,
    RealWorld.restore_table: 1,
    RealWorld.add_partition: 1,
    RealWorld.recreate_topic: 1,
    RealWorld.recreate_target: 1,
}
STEPS = 10
FIRST: tuple[Action, ...] = (
    RealWorld.append,
    RealWorld.run_all,
    RealWorld.back_up,
    RealWorld.back_up_target,
    RealWorld.append,
    RealWorld.run_all,
)
MUST: tuple[Action, ...] = (RealWorld.kill, RealWorld.lose_lease, RealWorld.second_process)


def walk(world: RealWorld, seed: int) -> list[str]:
    """Take FIRST and STEPS steps, MUST among them, and end with a run; return what was done."""
    draw = random.Random(seed)
    done: list[str] = []
    steps = [*FIRST, *draw.choices(list(WEIGHTS), list(WEIGHTS.values()), k=STEPS)]
    for must, at in zip(MUST, draw.sample(range(len(FIRST), len(steps)), len(MUST)), strict=True):
        steps[at] = must
    for chosen in steps:
        if chosen in (*MUST, RealWorld.restore, RealWorld.restore_target):
            world.append(draw)  # there is something to lose
        done.append(chosen.__name__)
        try:
            chosen(world, draw)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error} after {' '.join(done)}") from error
    world.append(draw)
    try:
        world.check(world.run())
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {error} at the end of {' '.join(done)}") from error
    return done
