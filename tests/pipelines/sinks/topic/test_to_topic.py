"""A stream into a topic: each row once, also when a batch is tried again."""

import json
import logging
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.pipelines import PipelineError, to_delta, to_topic, topic
from ottla.pipelines.checkpoint import topic_watch
from ottla.pipelines.failures.table import BROKER
from ottla.pipelines.run import supervisor
from ottla.pipelines.sinks.topic import sink as topic_sink
from ottla.pipelines.sinks.topic.jvm import BatchProducer
from ottla.pipelines.sinks.topic.sink import TASKS

pytestmark = pytest.mark.spark

SCHEMA = "id BIGINT NOT NULL, word STRING"
WITHIN_S = 90


def good(start: int, stop: int) -> list[tuple[Any, ...]]:
    return [
        (str(number), json.dumps({"id": number, "word": f"w{number}"}), [("h", b"\x01")])
        for number in range(start, stop)
    ]


def read(bootstrap: str, name: str) -> list[Any]:
    """Return the messages that a read_committed consumer sees in both partitions."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(name, number, 0) for number in (0, 1)])
    found = []
    ends: set[int] = set()
    try:
        while len(ends) < 2:
            message = consumer.poll(30)
            assert message is not None, "the consumer got nothing for 30 s"
            if message.error() is not None:
                ends.add(message.partition())
            else:
                found.append(message)
    finally:
        consumer.close()
    return found


class Job:
    """A copy of a topic with another value; `run` takes all there is and ends."""

    def __init__(self, spark: Any, bootstrap: str, source: str, target: str, folder: Path) -> None:
        self.source, self.target = source, target
        self.bootstrap = bootstrap
        self.frame = topic(spark, source, bootstrap_servers=bootstrap, schema=SCHEMA)
        self.checkpoint = folder / "checkpoint"

    def run(self, **arguments: Any) -> Any:
        given = {"key": "key", "value": "value.word", "headers": "headers"} | arguments
        query = to_topic(
            given.pop("df", self.frame),
            given.pop("name", self.target),
            bootstrap_servers=self.bootstrap,
            checkpoint=self.checkpoint,
            trigger={"availableNow": True},
            **given,
        )
        query.awaitTermination()
        return query

    def words(self) -> list[str]:
        return sorted(message.value().decode() for message in read(self.bootstrap, self.target))

    def forget_last_commit(self) -> None:
        """Leave the checkpoint as a kill before Spark's note of the last batch leaves it."""
        last = max((self.checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
        last.unlink()
        last.with_name(f".{last.name}.crc").unlink(missing_ok=True)


@pytest.fixture
def job(spark: Any, bootstrap: str, new_topic: Callable[..., str], tmp_path: Path) -> Job:
    return Job(spark, bootstrap, new_topic(), new_topic(), tmp_path)


def test_rows_arrive_once_also_when_a_batch_is_tried_again(
    job: Job, produce: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    produce(job.source, [*good(0, 40), ("bad", b"\xff")])
    with caplog.at_level(logging.WARNING, "ottla.pipelines"):
        first = job.run(group=f"group-of-{job.source}")
    assert "rows that do not parse: 1 in this batch. They are not written" in caplog.text
    produce(job.source, good(40, 60))
    job.run()
    job.forget_last_commit()
    second = job.run()

    assert first.id == second.id
    assert job.words() == sorted(f"w{number}" for number in range(60))
    message = next(each for each in read(job.bootstrap, job.target) if each.value() == b"w7")
    assert (message.key(), message.headers()) == (b"7", [("h", b"\x01")])
    assert json.loads((job.checkpoint / TASKS.name).read_text()) == {"version": 1, "tasks": 2}


@pytest.mark.parametrize(("delivery", "written"), [("at-least-once", 10), ("at-most-once", 5)])
def test_other_deliveries_double_or_drop_a_batch_that_was_cut_off(
    job: Job, produce: Callable[..., None], delivery: str, written: int
) -> None:
    produce(job.source, good(0, 5))
    job.run(delivery=delivery)
    job.forget_last_commit()
    job.run(delivery=delivery)
    assert len(job.words()) == written


def test_what_does_not_fit_is_refused(
    job: Job,
    spark: Any,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    def refusal(**arguments: Any) -> str:
        with pytest.raises(PipelineError) as caught:
            job.run(**arguments)
        return str(caught.value)

    assert "is no topic's name" in refusal(name="a b")
    assert "There is no topic 'not-there'" in refusal(name="not-there")
    assert "would write to it without end" in refusal(name=job.source)
    assert "takes a streaming frame" in refusal(df=spark.range(3))
    assert "delivery='twice' is unknown" in refusal(delivery="twice")
    assert "kafka= does not know the setting 'acks'" in refusal(kafka={"acks": "1"})
    assert "key='kye' is no column" in refusal(key="kye")
    produce(job.source, good(0, 1))
    job.run()
    assert f"belongs to topic {job.target}, not to topic" in refusal(name=new_topic())
    with pytest.raises(PipelineError, match=f"belongs to the table topic {job.target}"):
        to_delta(job.frame, tmp_path / "table", checkpoint=job.checkpoint)
    (job.checkpoint / TASKS.name).write_text("{}")
    (job.checkpoint / f".{TASKS.name}.crc").unlink(missing_ok=True)
    assert "is damaged" in refusal()


CHANGED = {
    "spark.sql.ansi.enabled": "false",  # a cast of DECIMAL to STRING
    "spark.sql.session.timeZone": "Asia/Tokyo",  # times in JSON
    "spark.sql.jsonGenerator.ignoreNullFields": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.shuffle.partitions": "7",
    "spark.sql.adaptive.enabled": "false",
}


def test_settings_that_change_while_the_query_runs_change_no_record(
    spark: Any, job: Job, produce: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each start of the query, also one after a failure, takes a copy of the user's session."""
    schema = "amount DECIMAL(20,10), at TIMESTAMP, word STRING"
    frame = topic(spark, job.source, bootstrap_servers=job.bootstrap, schema=schema)
    query = to_topic(
        frame.select("value.*"),
        job.target,
        bootstrap_servers=job.bootstrap,
        checkpoint=job.checkpoint,
        key="amount",
    )
    write = topic_sink.TopicSink.write
    failed: list[bool] = []

    def fail_once(self: Any, *batch: Any) -> int:
        if not failed:
            failed.append(True)
            raise RuntimeError("the broker is away for a moment")
        return write(self, *batch)

    def take() -> None:
        produce(job.source, [("k", '{"amount": "0.0000000000", "at": "2026-01-01T20:00:00Z"}')])
        query.processAllAvailable()

    before = {name: spark.conf.get(name, None) for name in CHANGED}
    try:
        take()
        for name, value in CHANGED.items():
            spark.conf.set(name, value)
        take()
        monkeypatch.setattr(supervisor, "passes_by_itself", lambda *_: BROKER)
        monkeypatch.setattr(topic_sink.TopicSink, "write", fail_once)
        take()
        assert {name: spark.conf.get(name) for name in CHANGED} == CHANGED, "they are the user's"
    finally:
        for name, former in before.items():
            spark.conf.unset(name) if former is None else spark.conf.set(name, former)
        query.stop()
    assert failed
    found = [(message.key(), message.value()) for message in read(job.bootstrap, job.target)]
    record = b'{"amount":0E-10,"at":"2026-01-01T20:00:00.000000Z"}'
    assert found == [(b"0.0000000000", record)] * 3


def test_a_task_that_is_refused_is_one_line(job: Job, produce: Callable[..., None]) -> None:
    produce(job.source, good(0, 1))
    with pytest.raises(PipelineError) as caught:
        job.run(kafka={"transaction.timeout.ms": 99_999_999})
    assert "refused the rows for topic" in str(caught.value)
    assert "INVALID_TRANSACTION_TIMEOUT" in str(caught.value)
    assert job.words() == []


@pytest.mark.parametrize(
    "delivery", ["exactly-once", pytest.param("at-most-once", marks=pytest.mark.full)]
)
def test_a_checkpoint_that_is_older_than_its_topic_is_refused(
    job: Job, produce: Callable[..., None], tmp_path: Path, delivery: str
) -> None:
    produce(job.source, good(0, 10))
    job.run(delivery=delivery)
    shutil.copytree(job.checkpoint, tmp_path / "backup")
    produce(job.source, good(10, 20))
    job.run(delivery=delivery)
    produce(job.source, good(20, 30))
    job.checkpoint = tmp_path / "backup"
    with pytest.raises(PipelineError, match="was set back, for example by a backup") as refused:
        job.run(delivery=delivery)
    assert "has batch 1 of this query, and the checkpoint has batches up to 0" in str(refused.value)
    assert len(job.words()) == 20


@dataclass
class Live:
    """A query that copies `source` to `target` until it is stopped."""

    spark: Any
    bootstrap: str
    source: str
    target: str
    checkpoint: Path
    produce: Callable[..., None]
    query: Any = None

    def start(self) -> Any:
        rows = topic(
            self.spark, self.source, bootstrap_servers=self.bootstrap, schema="id BIGINT"
        ).select("value.*")
        self.query = to_topic(
            rows,
            self.target,
            bootstrap_servers=self.bootstrap,
            checkpoint=self.checkpoint,
            key="id",
        )
        return self.query

    def send(self, *numbers: int) -> None:
        self.produce(self.source, [(str(one), json.dumps({"id": one})) for one in numbers])

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 3})

    def delete(self) -> None:
        admin = self.admin()
        admin.delete_topics([self.target])[self.target].result(timeout=30)
        until = time.monotonic() + 30
        while self.target in admin.list_topics(timeout=30).topics:
            assert time.monotonic() < until
            time.sleep(0.05)

    def recreate(self) -> None:
        self.delete()
        admin = self.admin()  # a client that nobody holds forgets what it was asked
        admin.create_topics([NewTopic(self.target, 2, 1)])[self.target].result(timeout=30)

    def failure(self) -> str:
        with pytest.raises(PipelineError) as caught:
            self.query.awaitTermination(WITHIN_S)
        return str(caught.value)

    def refusal(self) -> str:
        with pytest.raises(PipelineError) as caught:
            self.start().awaitTermination(WITHIN_S)
        return str(caught.value)

    def ids(self) -> list[int]:
        frame = (
            self.spark.read.format("kafka")
            .option("kafka.bootstrap.servers", self.bootstrap)
            .option("subscribe", self.target)
            .option("kafka.isolation.level", "read_committed")
            .load()
        )
        rows = frame.selectExpr("CAST(key AS STRING) AS key").collect()
        return sorted(int(row.key) for row in rows)


@pytest.fixture
def live(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Live]:
    def refuse(*_: Any) -> None:
        raise AssertionError("the batch is written by tasks")

    monkeypatch.setattr(topic_sink, "fields_of", refuse)
    monkeypatch.setattr(topic_watch, "INTERVAL_S", 0.0)
    made = Live(spark, bootstrap, new_topic(), new_topic(), tmp_path / "checkpoint", produce)
    yield made
    if made.query is not None and made.query.isActive:
        made.query.stop()


def test_a_topic_that_was_created_again_gets_no_further_batch(live: Live) -> None:
    live.start()
    live.send(1, 2)
    live.query.processAllAvailable()
    assert live.ids() == [1, 2]
    live.recreate()
    live.send(3)
    assert "was deleted and created again while the query ran" in live.failure()
    assert live.ids() == []
    assert "was deleted and created again since the checkpoint" in live.refusal()


def test_a_topic_that_was_deleted_ends_the_query(live: Live) -> None:
    live.start()
    live.send(1, 2)
    live.query.processAllAvailable()
    live.delete()
    live.send(3)
    assert "it was deleted" in live.failure()
    assert f"There is no topic {live.target!r}" in live.refusal()


def test_a_topic_that_is_created_again_within_a_batch_is_noticed(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = BatchProducer.write
    batches: list[str] = []

    def write_and_recreate(self: BatchProducer, records: Any, name: str) -> None:
        write(self, records, name)
        batches.append(name)
        if len(batches) == 2:
            live.recreate()

    monkeypatch.setattr(BatchProducer, "write", write_and_recreate)
    live.send(1, 2)  # before the start: a query that runs may read them in two batches
    live.start()
    live.query.processAllAvailable()
    live.send(3)
    with suppress(PipelineError):  # its commit may fail; else the next batch notices
        live.query.processAllAvailable()
    live.send(4)
    assert "was deleted and created again while the query ran" in live.failure()
    assert live.ids() == []
    assert "was deleted and created again since the checkpoint" in live.refusal()
