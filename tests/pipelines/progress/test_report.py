"""A pipeline's place and its Delta versions, told to a consumer group."""

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines import PipelineError, report_progress, to_delta, topic
from ottla.pipelines.progress.report import offsets_of

pytestmark = pytest.mark.spark

WAIT_S = 30


class Group:
    """A group that a pipeline reports to."""

    def __init__(self, spark: Any, bootstrap: str) -> None:
        self.name = f"group-{uuid.uuid4().hex[:8]}"
        self.bootstrap = bootstrap
        self.spark = spark
        self.listener = report_progress(spark, bootstrap_servers=bootstrap, group=self.name)

    def told(self, topic_name: str) -> tuple[list[int], dict[str, Any]]:
        """What the group was told, once all events are delivered and committed."""
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
def group(spark, bootstrap: str) -> Iterator[Group]:
    made = Group(spark, bootstrap)
    yield made
    spark.streams.removeListener(made.listener)
    made.listener.reporter.committer.close()


def test_a_group_learns_lag_and_delta_version_also_after_a_restart(
    spark,
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
    offsets, said = group.told(name)
    assert offsets == [3, 1]
    assert (said["ottla.pipeline"], said["query"], said["batch"]) == (1, "flights", 0)
    assert said["delta"] == {"table": str(table), "version": 0}

    # A run whose end nobody reports, as when the process is killed at that moment.
    spark.streams.removeListener(group.listener)
    run(2)
    assert group.told(name)[0] == [3, 1]

    # Somebody else's commits in between: the versions are the batches' own all the same.
    spark.sql(f"DELETE FROM delta.`{table}` WHERE offset = 0")
    spark.streams.addListener(group.listener)
    run(1)
    offsets, said = group.told(name)
    assert offsets == [6, 3]
    assert (said["batch"], said["delta"]["version"]) == (2, 3)


def test_a_start_reports_what_the_last_run_could_not(
    spark,
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

    assert group.told(name)[0] == [2, 0]
    assert [(told.batch, told.version, told.offsets[name][0]) for told in reported] == [
        (0, 0, 1),
        (1, 1, 2),
    ]


def test_a_query_with_deltas_own_sink_is_reported_too(
    spark,
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

    offsets, said = group.told(name)

    assert offsets == [0, 1]
    assert said["delta"] == {"table": str(tmp_path / "t"), "version": 0}


def test_offsets_of_kafka_sources_only() -> None:
    sources = [
        {"description": "KafkaV2[Subscribe[a]]", "endOffset": {"a": {"0": 5, "1": 7}}},
        {"description": "KafkaV2[Subscribe[b]]", "endOffset": {"b": {"0": 1}}},
        {"description": "KafkaV2[Subscribe[c]]", "endOffset": None},
        {"description": "RateStreamV2[...]", "endOffset": 17},
    ]
    assert offsets_of(sources) == {"a": {0: 5, 1: 7}, "b": {0: 1}}


def test_a_group_needs_a_name(spark) -> None:
    with pytest.raises(PipelineError, match="needs a group's name"):
        report_progress(spark, bootstrap_servers="localhost:9092", group=" ")
