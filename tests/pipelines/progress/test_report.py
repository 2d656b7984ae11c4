"""A pipeline's offsets and Delta versions, reported to a consumer group."""

import json
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.pipelines import PipelineError, report_progress, to_delta, topic
from ottla.pipelines.progress import reporter as reporting
from ottla.pipelines.progress.group import Group as KafkaGroup
from ottla.pipelines.progress.group import GroupError
from ottla.pipelines.progress.offset_metadata import OffsetMetadata, Run
from ottla.pipelines.progress.query_reporter import QueryReporter
from ottla.pipelines.progress.report import report_query
from ottla.pipelines.progress.requests import StopRequest, put_request
from ottla.pipelines.progress.starting_run import new_run
from ottla.pipelines.progress.status import read_status
from ottla.pipelines.rejected_offsets import RejectedOffsets, RejectedRange, Told
from ottla.pipelines.running import QUERIES
from ottla.pipelines.unknown_fields import UnknownFields

pytestmark = pytest.mark.spark

WAIT_S = 30


class Group:
    """A group that a pipeline reports to."""

    def __init__(self, spark: Any, bootstrap: str) -> None:
        self.name = f"group-{uuid.uuid4().hex[:8]}"
        self.bootstrap = bootstrap
        self.spark = spark
        self.listener = report_progress(spark, bootstrap_servers=bootstrap, group=self.name)

    def committed(self, topic_name: str) -> tuple[list[int], dict[str, Any]]:
        """Return offsets, and metadata of partition 0, once all events are committed."""
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
        from confluent_kafka.admin import AdminClient

        self.spark._jsc.sc().listenerBus().waitUntilEmpty(WAIT_S * 1_000)
        assert self.listener.reporter.committer.drain(WAIT_S)
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        asked = [TopicPartition(topic_name, partition) for partition in (0, 1)]
        request = [ConsumerGroupTopicPartitions(self.name, asked)]
        answers = admin.list_consumer_group_offsets(request)[self.name].result(timeout=WAIT_S)
        metadata = answers.topic_partitions[0].metadata
        return [answer.offset for answer in answers.topic_partitions], json.loads(metadata or "{}")


@pytest.fixture
def group(spark: Any, bootstrap: str) -> Iterator[Group]:
    made = Group(spark, bootstrap)
    yield made
    spark.streams.removeListener(made.listener)
    made.listener.reporter.committer.close()


def test_a_group_learns_lag_and_delta_version_also_after_a_restart(
    spark: Any,
    bootstrap: str,
    group: Group,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    name = new_topic()
    table = tmp_path / "flights"

    def run(records: int) -> None:
        produce(name, [(None, "a")] * records, partition=0)
        produce(name, [(None, "b")], partition=1)
        frame = topic(spark, name, bootstrap_servers=bootstrap)
        trigger = {"availableNow": True}
        to_delta(frame, table, checkpoint=tmp_path / "cp", trigger=trigger).awaitTermination()

    run(3)
    offsets, metadata = group.committed(name)
    assert offsets == [3, 1]
    assert (metadata["ottla.pipeline"], metadata["query"], metadata["batch"]) == (1, "flights", 0)
    assert metadata["delta"] == {"table": str(table), "version": 1}
    assert metadata["from"] == 0

    # A run whose end nobody reports, as when the process is killed at that moment.
    spark.streams.removeListener(group.listener)
    run(2)
    assert group.committed(name)[0] == [3, 1]

    # Somebody else's commits in between: the versions are the batches' own all the same.
    spark.sql(f"DELETE FROM delta.`{table}` WHERE offset = 0")
    spark.streams.addListener(group.listener)
    run(1)
    offsets, metadata = group.committed(name)
    assert offsets == [6, 3]
    assert (metadata["batch"], metadata["delta"]["version"]) == (2, 4)
    assert "from" not in metadata


def test_a_start_reports_what_the_last_run_could_not(
    spark: Any,
    bootstrap: str,
    group: Group,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    name = new_topic()
    reported: list[Any] = []
    put = group.listener.reporter.committer.put
    spark.streams.removeListener(group.listener)

    def run() -> None:
        frame = topic(spark, name, bootstrap_servers=bootstrap)
        query = to_delta(
            frame, tmp_path / "t", checkpoint=tmp_path / "cp", trigger={"availableNow": True}
        )
        query.awaitTermination()

    for _ in range(2):
        produce(name, [(None, "a")], partition=0)
        run()
    group.listener.reporter.committer.put = lambda what: (reported.append(what), put(what))
    spark.streams.addListener(group.listener)
    run()  # nothing new to read

    assert group.committed(name)[0] == [2, 0]
    assert [(one.batch, one.version, one.offsets[name][0]) for one in reported] == [
        (0, 1, 1),
        (1, 2, 2),
    ]


def test_a_query_with_deltas_own_sink_is_reported_too(
    spark: Any,
    bootstrap: str,
    group: Group,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    name = new_topic()
    produce(name, [(None, "a")], partition=1)
    frame = topic(spark, name, bootstrap_servers=bootstrap)
    writer = frame.writeStream.format("delta").option("checkpointLocation", str(tmp_path / "cp"))
    writer.trigger(availableNow=True).start(str(tmp_path / "t")).awaitTermination()

    offsets, metadata = group.committed(name)

    assert offsets == [0, 1]
    assert metadata["delta"] == {"table": str(tmp_path / "t"), "version": 0}


def test_a_group_needs_a_name(spark: Any) -> None:
    with pytest.raises(PipelineError, match="needs a group's name"):
        report_progress(spark, bootstrap_servers="localhost:9092", group=" ")


def wait_for_run(bootstrap: str, group: str, wanted: Callable[[Run, OffsetMetadata], bool]) -> Run:
    """Read the group's state from the broker until it is as wanted."""
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        metadata = read_status({"bootstrap.servers": bootstrap}, group, with_lag=False).metadata
        if metadata is not None and metadata.run is not None and wanted(metadata.run, metadata):
            return metadata.run
        time.sleep(0.1)
    raise AssertionError(f"the group {group} has {metadata}")


def test_two_queries_of_one_session_have_a_group_each(
    spark: Any,
    bootstrap: str,
    new_group: Callable[[], KafkaGroup],
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    settings = {"bootstrap.servers": bootstrap}
    names, groups = [new_topic(), new_topic()], [new_group().name, new_group().name]
    queries: list[Any] = []
    reporters = []
    for name, group in zip(names, groups, strict=True):
        frame = topic(spark, name, bootstrap_servers=bootstrap, schema="n INT NOT NULL")
        query = to_delta(frame, tmp_path / name, checkpoint=tmp_path / f"{name}-cp")
        reporters.append(report_query(spark, query, group=group, settings=settings))
        queries.append(query)
    # Nothing has been delivered yet: the state is there all the same.
    for group in groups:
        wait_for_run(
            bootstrap, group, lambda run, metadata: run.state == "running" and not run.rows
        )

    produce(names[0], [(None, '{"n": 1}'), (None, "no number")], partition=0)
    produce(names[1], [(None, '{"n": 1}')] * 3, partition=1)
    for query in queries:
        query.processAllAvailable()
    first = wait_for_run(bootstrap, groups[0], lambda run, metadata: run.rows == 2)
    assert (first.state, first.rejected) == ("running", 1)
    assert first.rows_per_s
    assert first.batch_ms
    second = wait_for_run(bootstrap, groups[1], lambda run, metadata: run.rows == 3)
    assert (second.state, second.rejected) == ("running", 0)
    status = read_status(settings, groups[1])
    assert status.offsets == {(names[1], 0): 0, (names[1], 1): 3}
    assert status.metadata is not None
    assert status.metadata.table == str(tmp_path / names[1])
    history = spark.sql(f"DESCRIBE HISTORY delta.`{status.metadata.table}` LIMIT 1").first()
    assert status.metadata.version == history["version"]

    # Asked from elsewhere, one of the two ends and says so.
    put_request(
        KafkaGroup(settings, groups[0]),
        [(names[0], 0), (names[0], 1)],
        StopRequest(first.id, "anna@laptop", 1),
    )
    run = wait_for_run(bootstrap, groups[0], lambda run, metadata: run.has_ended)
    assert (run.state, run.by) == ("stopped", "anna@laptop")
    assert [query.isActive for query in queries] == [False, True]
    queries[1].stop()
    assert (
        wait_for_run(bootstrap, groups[1], lambda run, metadata: run.has_ended).state == "stopped"
    )
    for reporter in reporters:
        reporter.finish()


def test_a_query_that_fails_leaves_the_reason(
    spark: Any,
    bootstrap: str,
    new_group: Callable[[], KafkaGroup],
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    name, group = new_topic(), new_group().name
    produce(name, [(None, "a")])
    frame = topic(spark, name, bootstrap_servers=bootstrap)
    frame = frame.selectExpr("CAST(raise_error('the bridge is out') AS STRING) AS broken")
    settings = {"bootstrap.servers": bootstrap}
    query = to_delta(frame, tmp_path / "t", checkpoint=tmp_path / "cp")
    reporter = report_query(spark, query, group=group, settings=settings)

    run = wait_for_run(bootstrap, group, lambda run, metadata: run.has_ended)

    assert run.state == "failed"
    assert run.failure
    assert "\n" not in run.failure
    reporter.finish()


def test_the_last_batch_is_reported_although_spark_reports_it_after_the_querys_end(
    spark: Any,
    bootstrap: str,
    new_group: Callable[[], KafkaGroup],
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name, group = new_topic(), new_group().name
    produce(name, [(None, "a")], partition=0)
    query = to_delta(
        topic(spark, name, bootstrap_servers=bootstrap),
        tmp_path / "t",
        checkpoint=tmp_path / "cp",
        trigger={"availableNow": True},
    )
    at_once = QueryReporter.progressed

    def late(self: QueryReporter, text: str) -> None:
        query.awaitTermination()
        time.sleep(0.5)
        at_once(self, text)

    monkeypatch.setattr(QueryReporter, "progressed", late)
    settings = {"bootstrap.servers": bootstrap}
    reporter = report_query(spark, query, group=group, settings=settings, ends_by_itself=True)
    query.awaitTermination()
    reporter.finish()

    status = read_status(settings, group)
    assert status.offsets[name, 0] == 1
    assert status.metadata is not None
    assert (status.metadata.batch, status.metadata.version) == (0, 1)
    assert status.metadata.run is not None
    assert status.metadata.run.state == "finished"


class LateEvents:
    """A query that has ended with two batches done, whose events Spark has not delivered."""

    id, name, isActive = "query-1", "flights", False  # noqa: N815 - Spark's name

    def __init__(self) -> None:
        self.commits: dict[Any, Any] = {}
        self.fail: Exception | None = None
        self.destination = None
        self.told: dict[int, Told] = {0: {}}
        self.unknown_fields = {"flights": UnknownFields("drop", ("delay_min",))}
        self.table, self.reads_committed = "t", frozenset({"flights"})
        self.rejected_rows, self.dropped, self.truncated = 4, 7, 2
        self.content = {
            "offsets/0": 'v1\n{}\n{"flights":{"0":3}}',
            "offsets/1": 'v1\n{}\n{"flights":{"0":10}}',
        }
        self.files = SimpleNamespace(
            names=lambda folder: ["0", "1"] if folder == "commits" else [],
            read=self.content.get,
        )

    def exception(self) -> None:
        return None

    @property
    def rejected_reason(self) -> str:
        return "value is not a bigint"

    def version_of(self, batch: int) -> int:
        return batch + 1

    def rejected_in(self, batch: int) -> Told | None:
        return self.told.get(batch)

    def commit(self, commits: dict[Any, Any]) -> None:
        if self.fail:
            raise self.fail
        self.commits |= commits

    def progress(self, batch: int, offset: int) -> str:
        source = {"description": "KafkaV2[x]", "endOffset": {"flights": {"0": offset}}}
        return json.dumps(
            {"id": self.id, "name": self.name, "batchId": batch, "sources": [source],
             "durationMs": {"addBatch": 1, "triggerExecution": 2}, "numInputRows": 3}
        )  # fmt: skip


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[LateEvents, QueryReporter]]:
    query: Any = LateEvents()
    monkeypatch.setitem(QUERIES, query.id, query)
    monkeypatch.setattr(reporting, "EXIT_WAIT_S", 0.2)
    group: Any = SimpleNamespace(
        name="g", bootstrap_servers="b:1", commit=query.commit, read_all=dict,
        companion=lambda _suffix: SimpleNamespace(read=lambda _partitions: {}, close=lambda: None),
        close=lambda: None,
    )  # fmt: skip
    spark: Any = SimpleNamespace(_jsc=None)
    reporter = QueryReporter(spark, query, group, new_run("running"), ends_by_itself=True)
    yield query, reporter
    reporter.committer.close()


def test_a_batch_that_spark_has_not_reported_at_the_end_is_committed(
    late: tuple[LateEvents, QueryReporter],
) -> None:
    query, reporter = late
    reporter.progressed(query.progress(0, 3))
    reporter.finish()
    commit = query.commits["flights", 0]
    assert commit.offset == 10
    metadata = json.loads(commit.metadata)
    assert (metadata["batch"], metadata["delta"]["version"]) == (1, 2)
    assert metadata["run"]["state"] == "finished"
    # What the batch of another run rejected is not known.
    assert metadata["rejects"] == {"ranges": [[3, 10, None]]}

    # The event comes when all is over: the state does not go back.
    reporter.progressed(query.progress(1, 10))
    assert reporter.run.rejected_reason == "value is not a bigint"
    # What a constraint refused is not in Spark's count.
    run = reporter.run
    assert (run.rejected, run.dropped, run.truncated) == (4, 7, 2)
    assert reporter.run.state == "finished"


def test_a_commit_says_which_offsets_its_batch_rejected(
    late: tuple[LateEvents, QueryReporter],
) -> None:
    query, reporter = late
    query.told = {
        0: {("flights", 0): RejectedOffsets((RejectedRange(1, 2, "why"),), "kept")},
        1: {},
    }
    reporter.progressed(query.progress(0, 3))
    assert reporter.committer.drain(WAIT_S)
    metadata = json.loads(query.commits["flights", 0].metadata)
    assert metadata["rejects"] == {"ranges": [[1, 2, 0]], "reasons": ["why"], "kept": "kept"}
    assert metadata["isolation"] == "read_committed"
    assert metadata["unknown"] == {"did": "drop", "fields": ["delay_min"]}
    assert metadata["run"]["unknown_fields"] == "delay_min"
    reporter.progressed(query.progress(1, 10))
    assert reporter.committer.drain(WAIT_S)
    assert "rejects" not in json.loads(query.commits["flights", 0].metadata)


def test_a_batch_that_was_reported_is_not_committed_again(
    late: tuple[LateEvents, QueryReporter], monkeypatch: pytest.MonkeyPatch
) -> None:
    query, reporter = late
    reporter.progressed(query.progress(1, 10))
    put: list[Any] = []
    monkeypatch.setattr(reporter.committer, "put", put.append)
    reporter.finish()
    assert put == []


def test_an_end_that_cannot_be_committed_is_said(
    late: tuple[LateEvents, QueryReporter], caplog: pytest.LogCaptureFixture
) -> None:
    query, reporter = late
    query.fail = GroupError("no answer")
    reporter.committer._logged = "no answer"  # as after the first commit that failed
    reporter.finish()
    assert "The last progress of group g is not committed to b:1" in caplog.text
