"""What a batch is written with, and what becomes of one that is not written again."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from ottla.pipelines.checkpoint.checkpoint import Checkpoint
from ottla.pipelines.checkpoint.identity import Offsets
from ottla.pipelines.checkpoint.next_batch import Held
from ottla.pipelines.delivery import DeliveryGuarantee
from ottla.pipelines.rejects.rejects import Rejects
from ottla.pipelines.run.batch import BatchRunner
from ottla.pipelines.spark.jvm.files import Files
from ottla.pipelines.target.port import Sink

pytestmark = pytest.mark.spark

ADAPTIVE = "spark.sql.adaptive.enabled"
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"


class Rows(Sink):
    """A sink that writes with `write_rows`; it has no version of a batch that was cut off."""

    name = short_name = shown = location = "rows"
    kind = "delta"
    called = "Delta"

    def __init__(
        self,
        write_rows: Callable[[Any], None],
        *,
        has_it: bool = False,
        held: Offsets | None = None,
        adaptive: bool = True,
    ) -> None:
        """`has_it`: it has each batch already, up to the offsets `held`."""
        self.adaptive = adaptive
        self.write_rows = write_rows
        self.has_it = has_it
        self.ends = {} if held is None else held
        self.batch: Any = None

    @property
    def is_adaptive(self) -> bool:
        return self.adaptive

    def write(self, frame: Any, batch: Any) -> int | None:
        self.batch = batch
        self.write_rows(frame)
        return None if self.has_it else batch.number + 1

    def held(self, query_id: str) -> Held:
        return Held("the table rows", self.batch and self.batch.number, self.ends)

    def check(self) -> list[str]:
        return []

    def make(self) -> None: ...

    def table_id(self) -> str:
        return ""


class Job:
    """Streams the distinct ids of JSON files, which keeps state, through a BatchRunner."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark = spark
        self.rows = folder / "rows"
        self.rows.mkdir()
        self.files = Files(spark, str(folder / "checkpoint"))
        self.sessions: list[dict[str, str]] = []

    def add(self, name: str, *ids: int) -> None:
        (self.rows / name).write_text("".join(json.dumps({"id": one}) + "\n" for one in ids))

    def run(
        self, delivery: DeliveryGuarantee, write_rows: Callable[[Any], None], **has: Any
    ) -> BatchRunner:
        sink = Rows(write_rows, **has)
        unwatched: Any = SimpleNamespace(check=lambda: None)
        runner = BatchRunner(
            self.spark,
            sink,
            Checkpoint(self.files),
            delivery,
            Rejects(self.spark, sink, self.files, (), {}),
            unwatched,
            "cluster",
            {},
        )
        frame = self.spark.readStream.schema("id BIGINT").json(str(self.rows)).distinct()
        writer = frame.writeStream.foreachBatch(runner).outputMode("update")
        writer = writer.option("checkpointLocation", self.files.location)
        writer.trigger(availableNow=True).start().awaitTermination()
        return runner


@pytest.fixture
def job(spark: Any, tmp_path: Path) -> Job:
    return Job(spark, tmp_path)


def test_a_batch_is_written_adaptively_with_a_shuffle_partition_for_each_core(job: Job) -> None:
    settings: dict[str, str] = {}
    sessions: list[Any] = []
    plans: list[str] = []

    def write(frame: Any) -> None:
        sessions.append(frame.sparkSession)
        for name in (ADAPTIVE, SHUFFLE_PARTITIONS):
            settings[name] = frame.sparkSession.conf.get(name)
        shuffled = frame.repartition("id")
        shuffled.collect()
        plans.append(shuffled._jdf.queryExecution().executedPlan().toString())

    job.add("one", 1, 2, 2)
    runner = job.run(DeliveryGuarantee.EXACTLY_ONCE, write)

    assert settings == {ADAPTIVE: "true", SHUFFLE_PARTITIONS: "2"}
    assert plans[0].startswith("AdaptiveSparkPlan isFinalPlan=true")
    # Spark's own choice holds for the stream: off, as the query keeps state. The user's session
    # is another one.
    assert sessions[0].conf.get(ADAPTIVE) == "false"
    assert job.spark.conf.get(ADAPTIVE) == "true"
    assert runner.versions == {0: 1}


def test_a_sink_that_only_appends_is_not_written_adaptively(job: Job) -> None:
    found: list[str] = []
    job.add("one", 1)
    job.run(
        DeliveryGuarantee.EXACTLY_ONCE,
        lambda frame: found.append(frame.sparkSession.conf.get(ADAPTIVE)),
        adaptive=False,
    )
    assert found == ["false"]


def test_a_batch_that_is_not_written_again_keeps_its_state(
    job: Job, caplog: pytest.LogCaptureFixture
) -> None:
    found: list[list[int]] = []

    def write(frame: Any) -> None:
        found.append([row["id"] for row in frame.collect()])

    def fail(frame: Any) -> None:
        raise OSError("cut off before the rows were computed")

    job.add("one", 1, 2)
    with pytest.raises(StreamingQueryException, match="cut off"):
        job.run(DeliveryGuarantee.AT_MOST_ONCE, fail)
    job.add("two", 2, 3)
    runner = job.run(DeliveryGuarantee.AT_MOST_ONCE, write)

    # The 2 of the first batch is lost, and known; the place has that batch without its rows.
    assert found == [[], [3]]
    assert runner.versions == {0: None, 1: 2}
    assert "Batch 0 was begun by a run that was cut off" in caplog.text


def test_a_batch_that_the_table_has_ends_where_it_ends_there(job: Job) -> None:
    held: dict[str, dict[int, int]] = {}

    def skip(frame: Any) -> None:
        return None

    def run() -> BatchRunner:
        return job.run(DeliveryGuarantee.EXACTLY_ONCE, skip, has_it=True, held=held)

    job.add("one", 1, 2)
    run()
    # Another query wrote this batch, from a copy of the checkpoint.
    held["t"] = {0: 5}
    job.add("two", 3)
    with pytest.raises(StreamingQueryException, match="was set back, for example by a backup"):
        run()
