"""A pipeline that is killed, at every kind of moment, keeps the promise of its delivery.

On Ottla and on Apache Kafka. Each run kills its second batch; the next run on the same checkpoint
continues from what the kill left. A last run takes the rest, then the tables are compared with what
was produced.
"""

from __future__ import annotations

import collections
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest
from components.apache_kafka import ApacheKafka
from components.child import Child
from components.postgres import Postgres
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.pipelines.jars import fetch_jars_once
from tests.system.pipeline_job import GROUP

from components import fixture
from ottla.testing.ports import free_ports

kafka_jars, apache_kafka = fixture.kafka_jars, fixture.apache_kafka
postgres = fixture.postgres
pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

PARTITIONS = (0, 1)
RUN_WITHIN_S = 200
START_WAIT_MS = 60_000
KILLED = -signal.SIGKILL


class Feed:
    """Produces numbers without end, each seventh a record that does not parse."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.good: list[int] = []
        self.bad = 0
        self._topic = topic
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(60) == 0

    def _run(self) -> None:
        for number in itertools.count():
            if self._stop.wait(0.02):
                return
            partition = number % len(PARTITIONS)
            if number % 7 == 0:
                self.bad += 1
                self._producer.produce(self._topic, b"\xff", partition=partition)
            else:
                self.good.append(number)
                self._producer.produce(self._topic, json.dumps({"id": number}), partition=partition)
            self._producer.poll(0)


class KeyedFeed(Feed):
    """Produces records of a few keys without end, each fifth a tombstone.

    `records` has key, value and position of each, in the order of its partition.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(bootstrap, topic)
        self.records: list[tuple[int, int | None, int, int]] = []

    def _run(self) -> None:
        for number in itertools.count():
            if self._stop.wait(0.02):
                return
            key, value = number * 7 % 20, None if number % 5 == 0 else number
            partition = key % len(PARTITIONS)
            offset = sum(one[2] == partition for one in self.records)
            self.records.append((key, value, partition, offset))
            text = None if value is None else json.dumps({"n": value})
            self._producer.produce(self._topic, text, json.dumps({"id": key}), partition=partition)
            self._producer.poll(0)

    def rows(self) -> list[list[int | None]]:
        """The last record of each key that is no tombstone: computed from all at once."""
        last = {record[0]: record for record in self.records}
        return [[*record] for record in sorted(last.values()) if record[1] is not None]


class KeyedFeedWithRejects(KeyedFeed):
    """Of these each eleventh record does not parse; `rejected` has their positions."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(bootstrap, topic)
        self.rejected: list[list[int]] = []

    def _run(self) -> None:
        ends = [0] * len(PARTITIONS)
        for number in itertools.count():
            if self._stop.wait(0.02):
                return
            key, value = number * 7 % 20, None if number % 5 == 0 else number
            partition = key % len(PARTITIONS)
            text: str | bytes | None = None if value is None else json.dumps({"n": value})
            if number % 11 == 0:
                text = b"\xff"
                self.rejected.append([partition, ends[partition]])
            else:
                self.records.append((key, value, partition, ends[partition]))
            ends[partition] += 1
            self._producer.produce(self._topic, text, json.dumps({"id": key}), partition=partition)
            self._producer.poll(0)


class Ottla:
    """`ottla serve` on a port that stays the same over a kill."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_ports(1)[0]
        self.child: Child

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        serve = ["serve", "--listen", self.address, "--data", str(self.folder / "data")]
        self.child = Child([sys.executable, "-m", "ottla", *serve], self.folder / "broker.log")


@pytest.fixture(
    params=["ottla", pytest.param("kafka", marks=[pytest.mark.kafka, pytest.mark.full])]
)
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ottla | ApacheKafka]:
    """A broker of each kind in turn."""
    if request.param == "kafka":
        yield request.getfixturevalue("apache_kafka")
        return
    ottla = Ottla(tmp_path / "broker")
    ottla.start()
    try:
        ottla.child.wait_for_port(ottla.port, START_WAIT_MS)
        yield ottla
    finally:
        ottla.child.stop()


def kill_and_start(broker: Ottla | ApacheKafka) -> None:
    broker.child.process.kill()
    broker.child.process.wait()
    broker.start()
    broker.child.wait_for_port(broker.port, START_WAIT_MS)


@dataclass
class Pipeline:
    """A topic, and the folder with the table, the rejected rows and the checkpoint."""

    bootstrap: str
    topic: str
    folder: Path
    delivery: str

    def start(self, *options: str) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "tests.system.pipeline_job"]
        words += [self.bootstrap, self.topic, str(self.folder), "--delivery", self.delivery]
        return subprocess.Popen(
            [*words, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            cwd=Path(__file__).parents[2],
        )

    def finish(self, job: subprocess.Popen[str]) -> tuple[int, str, str]:
        try:
            out, errors = job.communicate(timeout=RUN_WITHIN_S)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            _, errors = job.communicate()
            pytest.fail(f"the job did not end: {errors[-2000:]}")
        return job.returncode, out, errors

    def die(self, moment: str, seed: int = 0, *options: str) -> None:
        job = self.start("--die", moment, "--seed", str(seed), *options)
        code, _, errors = self.finish(job)
        if moment == "jvm":
            assert code > 0, errors[-2000:]
        else:
            assert code == KILLED, errors[-2000:]

    def pauses(self, job: subprocess.Popen[str]) -> None:
        """Wait until the job pauses. Fails if it ends instead."""
        until = time.monotonic() + RUN_WITHIN_S
        while not self.paused.exists():
            if job.poll() is not None or time.monotonic() > until:
                os.killpg(job.pid, signal.SIGKILL)
                pytest.fail(f"the job did not pause: {job.communicate()[1][-2000:]}")
            time.sleep(0.01)

    @property
    def paused(self) -> Path:
        return self.folder / "paused"

    def take_the_rest(self, *options: str) -> tuple[dict[str, Any], str]:
        code, out, errors = self.finish(self.start(*options))
        assert code == 0, errors[-2000:]
        return json.loads(out.splitlines()[-1]), errors


@pytest.fixture
def new_pipeline(
    broker: Ottla | ApacheKafka, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    fetch_jars_once(tmp_path_factory)

    def make(delivery: str) -> Pipeline:
        name = f"numbers-{delivery}-{uuid.uuid4().hex[:8]}"
        admin = AdminClient({"bootstrap.servers": broker.address})
        admin.create_topics([NewTopic(name, len(PARTITIONS), 1)])[name].result(timeout=30)
        return Pipeline(broker.address, name, tmp_path, delivery)

    return make


def group_position(pipeline: Pipeline) -> tuple[list[int], dict[str, Any]]:
    admin = AdminClient({"bootstrap.servers": pipeline.bootstrap})
    asked = [TopicPartition(pipeline.topic, partition) for partition in PARTITIONS]
    futures = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP, asked)])
    positions = futures[GROUP].result(timeout=30).topic_partitions
    return [position.offset for position in positions], json.loads(positions[0].metadata)


def all_positions(feed: Feed) -> list[list[int]]:
    count = len(feed.good) + feed.bad
    return [[number % 2, number // 2] for number in sorted(range(count), key=lambda n: (n % 2, n))]


def check_each_arrived_once(pipeline: Pipeline, feed: Feed) -> None:
    found, _ = pipeline.take_the_rest()
    check_positions(found["positions"], feed)
    check_group(pipeline, feed)
    metadata = group_position(pipeline)[1]
    assert metadata["delta"]["table"] == str(pipeline.folder / "table")
    assert str(metadata["delta"]["version"]) in found["versions"]


def check_positions(positions: dict[str, Any], feed: Feed) -> None:
    assert positions["ids"] == [[number] for number in feed.good]
    assert len(positions["table_rejected"]) == feed.bad
    assert sorted(positions["table"] + positions["table_rejected"]) == all_positions(feed)


def check_group(pipeline: Pipeline, feed: Feed) -> None:
    count = len(feed.good) + feed.bad
    assert group_position(pipeline)[0] == [(count + 1) // 2, count // 2]


@pytest.mark.full
def test_exactly_once_each_record_arrives_once_whatever_the_kill_cuts_off(
    new_pipeline: Any,
) -> None:
    pipeline = new_pipeline("exactly-once")
    with Feed(pipeline.bootstrap, pipeline.topic) as feed:
        for moment in (
            "before the commit",
            "inside the commit",
            "between tables",
            "before the checkpoint",
            "between batches",
        ):
            pipeline.die(moment)
    check_each_arrived_once(pipeline, feed)


@pytest.mark.full
def test_exactly_once_holds_when_each_kill_takes_the_checkpoint_as_well(
    new_pipeline: Any,
) -> None:
    pipeline = new_pipeline("exactly-once")
    from_table = ("--starting", "table")
    with Feed(pipeline.bootstrap, pipeline.topic) as feed:
        # After the second of these the table has a batch whose rejected rows were not written.
        for moment in ("before the commit", "between tables", "before the checkpoint"):
            pipeline.die(moment, 0, *from_table)
            shutil.rmtree(pipeline.folder / "checkpoint")
    found, _ = pipeline.take_the_rest(*from_table)

    positions = found["positions"]
    assert positions["ids"] == [[number] for number in feed.good]
    assert sorted(positions["table"] + positions["table_rejected"]) == all_positions(feed)


@pytest.mark.parametrize("what", ["jvm", pytest.param("python", marks=pytest.mark.full)])
def test_exactly_once_each_record_arrives_once_whatever_is_killed(
    broker: Ottla | ApacheKafka, new_pipeline: Any, what: str
) -> None:
    pipeline = new_pipeline("exactly-once")
    with Feed(pipeline.bootstrap, pipeline.topic) as feed:
        pipeline.die(what, 0)
        # The broker, in the middle of a run; the run continues, and is then killed as well.
        job = pipeline.start("--die", "seeded", "--seed", "3")
        kill_and_start(broker)
        code, _, errors = pipeline.finish(job)
        assert code == KILLED, errors[-2000:]
    check_each_arrived_once(pipeline, feed)


@pytest.mark.full
@pytest.mark.parametrize(
    ("table", "delivery"),
    [("upsert", "exactly-once"), ("upsert", "at-least-once"), ("history", "exactly-once")],
)
def test_a_table_with_keys_equals_the_batch_computation_after_kills(
    new_pipeline: Any, table: str, delivery: str
) -> None:
    pipeline = new_pipeline(delivery)
    how = ("--table", table)
    with KeyedFeed(pipeline.bootstrap, pipeline.topic) as feed:
        for seed, moment in enumerate(
            ("before the commit", "inside the commit", "between tables", "before the checkpoint")
        ):
            pipeline.die(moment, seed, *how)
    found, _ = pipeline.take_the_rest(*how)

    assert len(feed.records) > len(feed.rows())
    assert found["positions"]["current"] == feed.rows()
    if table == "history":
        assert found["positions"]["table"] == sorted([*record[2:]] for record in feed.records)


@pytest.mark.full
def test_a_history_and_its_rejected_rows_are_whole_after_ten_kills(new_pipeline: Any) -> None:
    pipeline = new_pipeline("exactly-once")
    draw = random.Random(29)
    how = ("--table", "history")
    with KeyedFeedWithRejects(pipeline.bootstrap, pipeline.topic) as feed:
        for seed in range(10):
            pipeline.die(draw.choice((*OF_THE_BATCH, "seeded", "seeded", "python")), seed, *how)
    found, _ = pipeline.take_the_rest(*how)

    positions = found["positions"]
    assert positions["current"] == feed.rows()
    assert positions["table"] == sorted([*record[2:]] for record in feed.records)
    assert positions["table_rejected"] == sorted(feed.rejected)


OF_THE_BATCH = ("before the commit", "inside the commit", "between tables", "before the checkpoint")


@pytest.mark.full
def test_files_have_each_record_once_for_spark_whatever_is_killed(new_pipeline: Any) -> None:
    pipeline = new_pipeline("exactly-once")
    how = ("--sink", "files")
    with Feed(pipeline.bootstrap, pipeline.topic) as feed:
        for seed, moment in enumerate((*OF_THE_BATCH, "jvm", "python", "seeded")):
            pipeline.die(moment, seed, *how)
    found, _ = pipeline.take_the_rest(*how)

    check_positions(found["positions"], feed)
    check_group(pipeline, feed)


def check_appended(pipeline: Pipeline, feed: Feed, found: dict[str, Any]) -> None:
    check_positions(found["positions"], feed)
    check_group(pipeline, feed)


def check_upserted(pipeline: Pipeline, feed: KeyedFeed, found: dict[str, Any]) -> None:
    assert len(feed.records) > len(feed.rows())
    assert found["positions"]["current"] == feed.rows()


of_each_table = pytest.mark.parametrize(
    ("table", "feed_of", "check"),
    [("append", Feed, check_appended), ("upsert", KeyedFeed, check_upserted)],
    ids=["append", "upsert"],
)
of_each_way = pytest.mark.parametrize(
    ("how", "feed_of", "check"),
    [
        (("--table", "append"), Feed, check_appended),
        # As a batch is copied after a large one, while Spark computes it.
        (("--table", "append", "--streamed"), Feed, check_appended),
        (("--table", "upsert"), KeyedFeed, check_upserted),
    ],
    ids=["append", "streamed", "upsert"],
)


@pytest.mark.full
@of_each_table
def test_an_iceberg_table_has_each_record_once_whatever_is_killed(
    new_pipeline: Any, table: str, feed_of: Any, check: Any
) -> None:
    pipeline = new_pipeline("exactly-once")
    how = ("--table", table, "--sink", "iceberg")
    with feed_of(pipeline.bootstrap, pipeline.topic) as feed:
        for seed, moment in enumerate((*OF_THE_BATCH, "jvm", "python", "seeded")):
            pipeline.die(moment, seed, *how)
    check(pipeline, feed, pipeline.take_the_rest(*how)[0])


@pytest.mark.full
@of_each_way
def test_a_database_has_each_record_once_whatever_of_spark_is_killed(
    new_pipeline: Any, postgres: Postgres, how: tuple[str, ...], feed_of: Any, check: Any
) -> None:
    pipeline = new_pipeline("exactly-once")
    how = (*how, "--sink", "database", "--url", postgres.url)
    with feed_of(pipeline.bootstrap, pipeline.topic) as feed:
        moments = (*OF_THE_BATCH, "inside the copy", "between batches", "jvm", "python", "seeded")
        for seed, moment in enumerate(moments):
            pipeline.die(moment, seed, *how)
    check(pipeline, feed, pipeline.take_the_rest(*how)[0])


@pytest.mark.full
@of_each_way
def test_a_database_has_each_record_once_when_its_server_is_killed(
    new_pipeline: Any, postgres: Postgres, how: tuple[str, ...], feed_of: Any, check: Any
) -> None:
    pipeline = new_pipeline("exactly-once")
    how = (*how, "--sink", "database", "--url", postgres.url)
    # Before the transaction, in it, and after its commit.
    moments = ("before the commit", "inside the copy", "inside the commit", "between tables")
    pauses = [word for moment in moments for word in ("--pause", moment)]
    delays = random.Random(1)
    with feed_of(pipeline.bootstrap, pipeline.topic) as feed:
        job = pipeline.start(*pauses, *how)
        for _ in moments:
            pipeline.pauses(job)
            postgres.kill()
            postgres.start()
            pipeline.paused.unlink()
        for _ in range(4):
            wait_for_a_batch(job, postgres)
            time.sleep(delays.uniform(0, 1))
            postgres.kill()
            postgres.start()
        wait_for_a_batch(job, postgres)
        os.killpg(job.pid, signal.SIGKILL)
        pipeline.finish(job)
    check(pipeline, feed, pipeline.take_the_rest(*how)[0])


def wait_for_a_batch(job: subprocess.Popen[str], database: Postgres) -> None:
    """Wait until the table has one batch more. Fails if the job ends instead."""
    newest = "SELECT max(batch) FROM ottla_batches WHERE query <> ''"
    before = database.query(newest)
    until = time.monotonic() + RUN_WITHIN_S
    while database.query(newest) == before:
        if job.poll() is not None or time.monotonic() > until:
            os.killpg(job.pid, signal.SIGKILL)
            pytest.fail(f"no batch is written: {job.communicate()[1][-2000:]}")
        time.sleep(0.05)


@pytest.mark.full
def test_at_least_once_loses_nothing_and_doubles_the_batch_that_was_cut_off(
    new_pipeline: Any,
) -> None:
    pipeline = new_pipeline("at-least-once")
    with Feed(pipeline.bootstrap, pipeline.topic) as feed:
        for moment in ("before the commit", "before the checkpoint", "seeded"):
            pipeline.die(moment, seed=5)
    found, _ = pipeline.take_the_rest()

    counts = collections.Counter(number for (number,) in found["positions"]["ids"])
    assert sorted(counts) == feed.good
    assert max(counts.values()) > 1
    rejected = {tuple(position) for position in found["positions"]["table_rejected"]}
    assert len(rejected) == feed.bad


@pytest.mark.full
def test_at_most_once_doubles_nothing_and_names_what_the_kill_lost(new_pipeline: Any) -> None:
    pipeline = new_pipeline("at-most-once")
    with Feed(pipeline.bootstrap, pipeline.topic) as feed:
        for moment in ("before the checkpoint", "seeded", "before the commit"):
            pipeline.die(moment, seed=7)
    found, errors = pipeline.take_the_rest()

    ids = [number for (number,) in found["positions"]["ids"]]
    assert len(set(ids)) == len(ids)
    assert set(ids) < set(feed.good)
    assert "at-most-once does not write it again" in errors
    positions = [tuple(position) for position in found["positions"]["table_rejected"]]
    assert len(set(positions)) == len(positions)
