"""What changes around a pipeline is never lost or doubled in silence, on Ottla and Apache Kafka.

Each test is named after a defect that this was once: a topic that was created again, a second
checkpoint, a wrong topic, two queries at once, a limit.
"""

from __future__ import annotations

import json
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.pipelines.conftest import spark as spark_session
from tests.pipelines.environment import serve

from components import fixture
from ottla.pipelines import PipelineError, to_delta, topic
from ottla.pipelines.target.commit_metadata import read_metadata

spark = spark_session
kafka_jars, apache_kafka = fixture.kafka_jars, fixture.apache_kafka
pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]

SCHEMA = "id BIGINT NOT NULL"
NOW = {"availableNow": True}
WAIT_S = 30


@pytest.fixture(
    scope="module",
    params=["ottla", pytest.param("kafka", marks=[pytest.mark.kafka, pytest.mark.full])],
)
def address(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A broker of each kind in turn."""
    if request.param == "kafka":
        yield request.getfixturevalue("apache_kafka").address
        return
    with serve(tmp_path_factory.mktemp("broker") / "data") as served:
        yield served


class Lake:
    """A topic, a table and a checkpoint, with fresh names."""

    def __init__(self, spark: Any, address: str, folder: Path) -> None:
        self.spark = spark
        self.address = address
        self.admin = AdminClient({"bootstrap.servers": address})
        self.name = f"topic-{uuid.uuid4().hex[:8]}"
        self.table = folder / "table"
        self.checkpoint = folder / "checkpoint"

    def create(self, name: str | None = None) -> None:
        name = name or self.name
        until = time.monotonic() + WAIT_S
        while True:  # a deletion is carried out after its answer
            future = self.admin.create_topics([NewTopic(name, 1, 1)])[name]
            try:
                future.result(timeout=WAIT_S)
                break
            except Exception as error:
                if "already exists" not in str(error) or time.monotonic() > until:
                    raise
                time.sleep(0.1)
        self.wait_for(lambda: name in self.admin.list_topics(timeout=WAIT_S).topics)

    def delete(self) -> None:
        self.admin.delete_topics([self.name])[self.name].result(timeout=WAIT_S)
        self.wait_for(lambda: self.name not in self.admin.list_topics(timeout=WAIT_S).topics)

    def wait_for(self, there: Callable[[], bool]) -> None:
        until = time.monotonic() + WAIT_S
        while not there():
            assert time.monotonic() < until
            time.sleep(0.05)

    def produce(self, first: int, end: int, *bad: bytes, name: str | None = None) -> None:
        producer = Producer({"bootstrap.servers": self.address})
        for value in [json.dumps({"id": number}).encode() for number in range(first, end)]:
            producer.produce(name or self.name, value)
        for value in bad:
            producer.produce(name or self.name, value)
        assert producer.flush(WAIT_S) == 0

    def frame(self, name: str | None = None, **options: Any) -> Any:
        read = topic(
            self.spark, name or self.name, bootstrap_servers=self.address, schema=SCHEMA, **options
        )
        return read.select("value.*", "offset")

    def run(self, frame: Any = None, **options: Any) -> Any:
        """Run to the end of the topic; returns the query."""
        where: dict[str, Any] = {"checkpoint": self.checkpoint, "trigger": NOW} | options
        query = to_delta(self.frame() if frame is None else frame, self.table, **where)
        assert query.awaitTermination(120)
        return query

    def ids(self) -> list[int]:
        rows = self.spark.read.format("delta").load(str(self.table)).select("id").collect()
        return sorted(row["id"] for row in rows)

    def planned(self) -> list[str]:
        """What Spark has logged of its batches."""
        return sorted(path.name for path in (self.checkpoint / "offsets").glob("[0-9]*"))


@pytest.fixture
def lake(spark: Any, address: str, tmp_path: Path) -> Lake:
    made = Lake(spark, address, tmp_path)
    made.create()
    return made


def test_1_a_topic_created_again_is_refused_and_read_whole_when_asked(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    lake.produce(0, 100)
    lake.run()
    lake.delete()
    lake.create()
    lake.produce(1000, 1150)
    before = lake.planned()

    with pytest.raises(PipelineError) as caught:
        lake.run()
    said = str(caught.value)
    assert "was deleted and created again: the checkpoint stands at offset 100" in said
    assert "the new one has 150 records (some may be in the target" in said
    assert "Write on_lost='skip'" in said
    assert "\n" not in said
    assert lake.planned() == before

    lake.run(on_lost="skip")
    assert lake.ids() == [*range(100), *range(1000, 1150)]
    assert (lake.checkpoint / "replaced-1" / "offsets").is_dir()
    assert "is moved to replaced-1" in caplog.text
    lake.produce(1150, 1160)
    lake.run()
    assert lake.ids() == [*range(100), *range(1000, 1160)]


def test_1_a_topic_made_again_while_the_query_runs_is_not_read_on(lake: Lake) -> None:
    lake.produce(0, 20)
    query: Any = to_delta(lake.frame(), lake.table, checkpoint=lake.checkpoint)
    try:
        lake.wait_for(lambda: query.lastProgress is not None and len(lake.planned()) > 0)
        lake.wait_for(lambda: lake.ids() == [*range(20)])
        lake.delete()
        lake.create()
        time.sleep(1.1)  # ids are looked at once a second
        lake.produce(1000, 1150)
        lake.wait_for(lambda: not query.isActive)
    finally:
        query.stop()
    assert lake.ids() == [*range(20)]

    lake.run(on_lost="skip")
    assert lake.ids() == [*range(20), *range(1000, 1150)]


def test_2_a_new_checkpoint_does_not_double_a_table_that_holds_the_topic(lake: Lake) -> None:
    lake.produce(0, 112, b"no number")
    lake.run()
    shutil.rmtree(lake.checkpoint)
    lake.produce(112, 120)

    with pytest.raises(PipelineError, match=r"holds topic .* already, written by another check"):
        lake.run()
    assert not lake.checkpoint.exists()

    lake.run(lake.frame(starting="table"))
    assert lake.ids() == [*range(120)]
    # The query continues from its checkpoint; the table is asked only when there is none.
    lake.produce(120, 125)
    lake.run(lake.frame(starting="table"))
    assert lake.ids() == [*range(125)]
    history = lake.spark.sql(f"DESCRIBE HISTORY delta.`{lake.table}`").collect()
    last = read_metadata(history[0]["userMetadata"])
    assert last is not None
    assert last.offsets == {lake.name: {0: 126}}


def test_2_a_checkpoint_overtaken_by_retention_is_refused_with_counts(lake: Lake) -> None:
    lake.produce(0, 30)
    lake.run()
    lake.produce(30, 100)
    partition = TopicPartition(lake.name, 0, 50)
    lake.admin.delete_records([partition])[partition].result(timeout=WAIT_S)

    with pytest.raises(PipelineError, match=r"20 records of topic .* not delivered yet are gone"):
        lake.run()
    lake.run(on_lost="skip")
    assert lake.ids() == [*range(30), *range(50, 100)]


def test_3_a_run_with_the_wrong_topic_leaves_the_checkpoint_as_it_was(lake: Lake) -> None:
    lake.produce(0, 10)
    lake.run()
    other = f"{lake.name}-other"
    lake.create(other)
    lake.produce(500, 505, name=other)
    before = lake.planned()

    with pytest.raises(PipelineError, match=f"and the frame reads topic '{other}'"):
        lake.run(lake.frame(other))
    assert lake.planned() == before

    lake.produce(10, 15)
    lake.run()
    assert lake.ids() == [*range(15)]


def test_4_two_queries_into_one_new_path_both_run(lake: Lake, tmp_path: Path) -> None:
    other = f"{lake.name}-other"
    lake.create(other)
    lake.produce(0, 50)
    lake.produce(50, 100, name=other)

    queries = [
        to_delta(lake.frame(name), lake.table, checkpoint=tmp_path / name, trigger=NOW)
        for name in (lake.name, other)
    ]
    for query in queries:
        assert query.awaitTermination(120)
    assert lake.ids() == [*range(100)]


def test_4_a_second_start_on_a_checkpoint_is_refused_and_the_first_goes_on(lake: Lake) -> None:
    lake.produce(0, 10)
    first = to_delta(lake.frame(), lake.table, checkpoint=lake.checkpoint)
    try:
        lake.wait_for(lambda: len(lake.planned()) > 0)
        with pytest.raises(PipelineError, match="Stop that query first"):
            lake.run()
        assert first.isActive
        lake.produce(10, 20)
        lake.wait_for(lambda: lake.ids() == [*range(20)])
    finally:
        first.stop()
    lake.run()
    assert lake.ids() == [*range(20)]


def test_5_rejected_rows_are_kept_under_a_limit(lake: Lake) -> None:
    lake.produce(0, 10, b"bad", b"worse")

    lake.run(lake.frame().limit(3))

    assert len(lake.ids()) == 3
    rejected = lake.spark.read.format("delta").load(f"{lake.table}_rejected").collect()
    assert sorted(bytes(row["value"]) for row in rejected) == [b"bad", b"worse"]


def test_a_table_created_again_is_refused(lake: Lake) -> None:
    lake.produce(0, 10)
    lake.run()
    shutil.rmtree(lake.table)

    with pytest.raises(PipelineError, match="was deleted and created again since the checkpoint"):
        lake.run()
    lake.spark.range(1).selectExpr("id", "id AS offset").write.format("delta").save(str(lake.table))
    with pytest.raises(PipelineError, match="was deleted and created again since the checkpoint"):
        lake.run()
