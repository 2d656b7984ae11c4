"""A batch in one transaction: each row once, beside tasks and whatever ends an attempt."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from ottla.pipelines import PipelineError, to_topic, topic
from ottla.pipelines.checkpoint.next_batch import digest
from ottla.pipelines.kafka.settings import KafkaSettings, read_settings
from ottla.pipelines.running import QUERIES
from ottla.pipelines.sinks.topic import one_transaction
from ottla.pipelines.sinks.topic import sink as topic_sink
from ottla.pipelines.sinks.topic.columns import RecordColumns
from ottla.pipelines.sinks.topic.jvm import BatchProducer
from ottla.pipelines.sinks.topic.one_transaction import MAX_REFUSED, OneTransaction
from ottla.pipelines.sinks.topic.sink import TopicSink, TopicTarget, group_of, in_tasks
from ottla.pipelines.sinks.topic.task import (
    Mark,
    NotWrittenError,
    SetBackError,
    TaskOfBatch,
    read_mark,
    whole_batch_id,
)
from ottla.pipelines.target.commit_metadata import CommitMetadata
from ottla.pipelines.target.port import Batch

pytestmark = pytest.mark.spark

COLUMNS = RecordColumns("key", "value")
ISOLATIONS = ("read_committed", "read_uncommitted")


@dataclass
class Output:
    """A topic of two partitions, written by one query; `read` as a read_committed consumer."""

    spark: Any
    kafka: KafkaSettings
    name: str
    query: str

    def sink(self, **producer: str) -> TopicSink:
        target = TopicTarget(self.name, self.kafka, COLUMNS, producer)
        return TopicSink(self.spark, target, "place", tasks=2)

    def rows(self, start: int, stop: int) -> Any:
        return self.spark.range(start, stop, 1, 2).selectExpr(
            "CAST(id AS STRING) AS key", "concat('v', id) AS value"
        )

    def batch(self, number: int, ends: int = 0) -> Batch:
        offsets = {"source": {0: ends}}
        return Batch(self.query, number, commit(self.query, number, offsets))

    def task(self, number: int, ends: int = 0) -> TaskOfBatch:
        client = self.kafka.for_executors()
        end = digest({"source": {0: ends}})
        return TaskOfBatch(self.name, group_of(self.query), number, client, {}, end)

    def write_task(self, frame: Any, number: int, task: int, ends: int = 0) -> list[int]:
        """Write what one task of a batch has, as an executor does."""
        parts = in_tasks(COLUMNS.records(frame), 2).rdd.glom().collect()
        rows = [(bytes(row[0]), bytes(row[1]), None) for row in parts[task]]
        return list(self.task(number, ends).write(task, rows))

    def end(self, where: TopicPartition, isolation: str) -> int:
        """The offset up to which a reader of this isolation gets records."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.kafka.bootstrap_servers,
                "group.id": "reader",
                "isolation.level": isolation,
            }
        )
        try:
            return int(consumer.get_watermark_offsets(where, 30)[1])
        finally:
            consumer.close()

    def values(self, isolation: str = "read_committed") -> list[str]:
        consumer = Consumer(
            {
                "bootstrap.servers": self.kafka.bootstrap_servers,
                "group.id": "reader",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,
                "isolation.level": isolation,
            }
        )
        consumer.assign([TopicPartition(self.name, number, 0) for number in (0, 1)])
        found: list[str] = []
        ends = 0
        try:
            while ends < 2:
                message = consumer.poll(30)
                assert message is not None, "the consumer got nothing for 30 s"
                if message.error() is not None:
                    ends += 1
                else:
                    found.append((message.value() or b"").decode())
        finally:
            consumer.close()
        return sorted(found)


def commit(query: str, number: int, offsets: dict[str, dict[int, int]]) -> str:
    return CommitMetadata("copy", query, number, "cluster", {}, offsets).text()


def values(start: int, stop: int) -> list[str]:
    return sorted(f"v{number}" for number in range(start, stop))


@pytest.fixture
def output(spark: Any, bootstrap: str, new_topic: Callable[..., str]) -> Output:
    name = new_topic()
    return Output(spark, read_settings(bootstrap), name, f"query-of-{name}")


@pytest.fixture
def no_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the batch is written by tasks")

    monkeypatch.setattr(topic_sink, "fields_of", refuse)


@pytest.mark.usefixtures("no_tasks")
def test_each_batch_is_one_transaction_with_all_marks(output: Output) -> None:
    sink = output.sink()
    sink.write(output.rows(0, 50), output.batch(0, 50))
    sink.write(output.rows(50, 90), output.batch(1, 90))
    assert output.values() == values(0, 90)
    marks = sink._brokers.committed(group_of(output.query), output.name, range(2))
    assert [read_mark(text) for text in marks] == [Mark(1, digest({"source": {0: 90}}))] * 2
    with pytest.raises(PipelineError, match="set back"):
        sink.write(output.rows(0, 50), output.batch(0, 50))
    sink.close()


def test_a_batch_that_is_tried_again_is_skipped_here_and_by_tasks(output: Output) -> None:
    frame, batch = output.rows(0, 50), output.batch(0)
    for _ in range(2):
        sink = output.sink()
        for _ in range(2):  # within a run, too: something may fail after the transaction
            sink.write(frame, batch)
        sink.close()
    assert output.write_task(frame, 0, 0) == [0]
    assert output.values() == values(0, 50)


def test_a_producer_that_is_kept_looks_for_its_last_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark gives a batch again where its own commit of it has failed."""
    done: list[str] = []

    class Producer:
        """Notes what is begun and committed."""

        def __init__(self, *_: Any) -> None:
            done.append("made")

        def __getattr__(self, step: str) -> Callable[..., bool]:
            def take(*_: Any) -> bool:
                done.append(step)
                return True

            return take

    monkeypatch.setattr(one_transaction, "BatchProducer", Producer)
    monkeypatch.setattr(one_transaction, "fence", lambda *_: None)
    spark: Any = None
    frame: Any = None
    whole = OneTransaction(spark, {}, 1)
    written = [-1]

    def write(number: int) -> bool:
        batch = TaskOfBatch("t", "g", number, {}, {})
        is_whole = whole.write(frame, batch, lambda: written[-1] == number)
        written.append(number)
        return is_whole

    assert [write(number) for number in (0, 1, 1, 2)] == [True, True, False, True]
    assert (done.count("commit"), done.count("made")) == (3, 2)


def test_a_batch_of_which_a_task_is_written_is_completed(
    output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = output.rows(0, 50)
    (written,) = output.write_task(frame, 0, 1)
    assert 0 < written < 50
    sink = output.sink()
    sink.write(frame, output.batch(0))
    monkeypatch.setattr(topic_sink, "fields_of", None)  # the next batch is a whole one again
    sink.write(output.rows(50, 60), output.batch(1))
    sink.close()
    assert output.values() == values(0, 60)


def test_a_batch_with_other_ends_is_refused(output: Output) -> None:
    output.write_task(output.rows(0, 50), 0, 1, ends=50)
    with pytest.raises(PipelineError, match="set back"):
        output.sink().write(output.rows(0, 60), output.batch(0, 60))


@pytest.mark.parametrize("task", [0, 1])
def test_a_task_of_another_run_ends_a_transaction_that_is_open(output: Output, task: int) -> None:
    """Whichever of the two commits first: the other one must not write the same rows."""
    frame = output.rows(0, 50)
    paused = BatchProducer(output.spark, settings(output))
    paused.start()
    paused.begin()
    paused.write(COLUMNS.records(frame), output.name)
    assert output.values() == []
    output.write_task(frame, 0, task)
    with pytest.raises(Py4JJavaError, match=r"Fenced|InvalidProducerEpoch"):
        paused.commit(group_of(output.query), output.name, range(2), "late")
    paused.close()
    output.write_task(frame, 0, 1 - task)
    assert output.values() == values(0, 50)


def test_two_drivers_write_each_batch_once_between_them(output: Output) -> None:
    """Each takes the transactional id from the other one, then finds the marks."""
    first, second = output.sink(), output.sink()
    for number in range(3):
        frame = output.rows(10 * number, 10 * number + 10)
        for sink in (first, second):
            sink.write(frame, output.batch(number))
    first.close()
    second.close()
    assert output.values() == values(0, 30)


def test_queries_of_one_session_have_producers_of_their_own(
    output: Output, new_topic: Callable[..., str]
) -> None:
    """Also where all their settings are the same."""
    other = Output(output.spark, output.kafka, new_topic(), "another query")
    sinks = output.sink(), other.sink()
    for number in range(2):
        for sink, at in zip(sinks, (output, other), strict=True):
            sink.write(at.rows(10 * number, 10 * number + 10), at.batch(number))
    for sink in sinks:
        sink.close()
    assert output.values() == other.values() == values(0, 20)


def settings(output: Output) -> dict[str, str]:
    name = whole_batch_id(group_of(output.query))
    return {
        "bootstrap.servers": output.kafka.bootstrap_servers,
        "transactional.id": name,
        "client.id": f"{name}-of-the-test",
    }


def test_a_new_producer_ends_tasks_that_run(output: Output) -> None:
    frame = output.rows(0, 50)

    def rows() -> Any:
        yield (b"1", b"a task's row", None)
        sink = output.sink()
        sink.write(frame, output.batch(0))
        sink.close()
        yield (b"2", b"a task's row", None)

    with pytest.raises((NotWrittenError, SetBackError)):
        list(output.task(0).write(0, rows()))
    assert output.values() == values(0, 50)


def test_a_transaction_that_kafka_ends_is_written_by_tasks(
    output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = output.sink()
    frame = output.rows(0, 50)
    write = BatchProducer.write

    def write_and_lose(self: BatchProducer, *arguments: Any) -> None:
        write(self, *arguments)
        other = BatchProducer(output.spark, settings(output))
        other.start()
        other.close()

    monkeypatch.setattr(BatchProducer, "write", write_and_lose)
    sink.write(frame, output.batch(0))
    monkeypatch.undo()
    assert output.values() == values(0, 50)
    sink.write(output.rows(50, 60), output.batch(1))
    sink.close()
    assert output.values() == values(0, 60)


def test_a_batch_that_takes_longer_than_its_transaction_may_is_written_by_tasks(
    output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker ends it. After two such batches the run tries no more."""
    sink = output.sink(**{"transaction.timeout.ms": "1000"})
    write, whole = BatchProducer.write, []

    def write_slowly(self: BatchProducer, records: Any, name: str) -> None:
        write(self, records, name)
        whole.append(name)
        until_no_transaction_is_open(output)

    monkeypatch.setattr(BatchProducer, "write", write_slowly)
    for number in range(3):
        sink.write(output.rows(10 * number, 10 * number + 10), output.batch(number))
    sink.close()
    assert len(whole) == MAX_REFUSED
    assert output.values() == values(0, 30)


def until_no_transaction_is_open(output: Output) -> None:
    """Wait until a read_committed reader gets to the end of the log."""
    for number in (0, 1):
        where = TopicPartition(output.name, number)
        until = time.monotonic() + 60
        while (ends := [output.end(where, how) for how in ISOLATIONS])[0] != ends[1]:
            assert time.monotonic() < until, f"the transaction stays open: {ends}"
            time.sleep(0.1)


def test_rows_that_kafka_refuses_are_refused_by_tasks_in_words(output: Output) -> None:
    """What the caller reads is the same for both ways."""
    sink = output.sink()
    too_large = output.rows(0, 50).selectExpr(
        "key", "if(key = '49', repeat('x', 3000000), value) AS value"
    )
    with pytest.raises((Py4JJavaError, PySparkException), match=r"RefusedError: .*TOO_LARGE"):
        sink.write(too_large, output.batch(0))
    sink.close()
    assert [value for value in output.values() if value.startswith("x")] == []


def test_tasks_get_another_producer_than_the_driver(
    output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a delegation token that is renewed: the batch is written by tasks."""
    sink = output.sink()
    sink.write(output.rows(0, 10), output.batch(0))
    whole = sink._one_transaction
    assert whole is not None
    assert whole._producer is not None
    whole._producer._settings.put("linger.ms", "6")
    monkeypatch.setattr(BatchProducer, "write", None)
    sink.write(output.rows(10, 20), output.batch(1))
    monkeypatch.undo()
    sink.write(output.rows(20, 30), output.batch(2))
    sink.close()
    assert output.values() == values(0, 30)


def test_a_spark_with_other_methods_writes_by_tasks(
    output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(self: BatchProducer, *_: Any) -> None:
        self._client.noSuchMethod()

    monkeypatch.setattr(BatchProducer, "write", write)
    sink = output.sink()
    for number in range(2):
        sink.write(output.rows(10 * number, 10 * number + 10), output.batch(number))
    sink.close()
    assert output.values() == values(0, 20)


@pytest.mark.usefixtures("no_tasks")
def test_nothing_of_a_batch_that_fails_is_visible(output: Output) -> None:
    sink = output.sink()
    failing = output.rows(0, 50).selectExpr(
        "key", "if(key = '49', raise_error('no such value'), value) AS value"
    )
    with pytest.raises((Py4JJavaError, PySparkException), match="no such value"):
        sink.write(failing, output.batch(0))
    assert output.values() == []
    sink.write(output.rows(0, 50), output.batch(0))
    sink.close()
    assert output.values() == values(0, 50)


def test_a_batch_of_a_stream_is_one_transaction(
    output: Output,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = new_topic()
    produce(source, [(f"k{number}", f"v{number}", None) for number in range(20)])
    taken: list[bool] = []
    takes = OneTransaction.takes

    def tell(self: OneTransaction, records: Any) -> bool:
        taken.append(takes(self, records))
        return taken[-1]

    monkeypatch.setattr(OneTransaction, "takes", tell)
    servers = output.kafka.bootstrap_servers
    frame = topic(output.spark, source, bootstrap_servers=servers, schema=None)
    for number, rows in enumerate((frame, frame.dropDuplicates(["key"]))):
        query = to_topic(
            rows.select("key", "value"),
            output.name,
            bootstrap_servers=servers,
            checkpoint=tmp_path / str(number),
            key="key",
            value="value",
            trigger={"availableNow": True},
        )
        query.awaitTermination()
    assert taken[:2] == [True, False]
    assert output.values() == sorted(values(0, 20) * 2)


def test_rows_of_a_transaction_that_kafka_ended_are_counted_once(
    output: Output,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = new_topic()
    produce(source, [(f"k{number}", f"v{number}", None) for number in range(20)])
    write = BatchProducer.write

    def write_and_lose(self: BatchProducer, *arguments: Any) -> None:
        write(self, *arguments)
        other = BatchProducer(output.spark, settings(output) | {"transactional.id": own(self)})
        other.start()
        other.close()

    def own(producer: BatchProducer) -> str:
        return str(producer._settings.get("transactional.id"))

    monkeypatch.setattr(BatchProducer, "write", write_and_lose)
    servers = output.kafka.bootstrap_servers
    frame = topic(output.spark, source, bootstrap_servers=servers, schema=None)
    query: Any = to_topic(
        frame.selectExpr("key", "CAST(value AS STRING) AS value"),
        output.name,
        bootstrap_servers=servers,
        checkpoint=tmp_path / "checkpoint",
        key="key",
        value="value",
        trigger={"availableNow": True},
        expect={"short": "length(value) < 3"},
        on_unexpected="drop",
    )
    query.awaitTermination()
    assert output.values() == values(0, 10)
    assert QUERIES[query.id].dropped == 10
    assert query.lastProgress["numInputRows"] == 20
