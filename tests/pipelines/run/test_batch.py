"""What a batch is written with: the session that Spark gives it, and its settings."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.pipelines.delivery import DeliveryGuarantee
from ottla.pipelines.run.batch import BatchRunner
from ottla.pipelines.run.checkpoint import Checkpoint
from ottla.pipelines.run.rejects import Rejects
from ottla.pipelines.spark.files import Files

pytestmark = pytest.mark.spark

ADAPTIVE = "spark.sql.adaptive.enabled"
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"


class Writes:
    """A sink that shuffles each batch, and keeps with which settings and how Spark did it."""

    name = "rows"
    keyed = None

    def __init__(self) -> None:
        self.session: Any = None
        self.settings: dict[str, str] = {}
        self.plan = ""

    def write(self, frame: Any, batch: Any) -> int:
        self.session = frame.sparkSession
        self.settings = {
            name: self.session.conf.get(name) for name in (ADAPTIVE, SHUFFLE_PARTITIONS)
        }
        counted = frame.groupBy("id").count()
        assert counted.count() == 2
        rows = counted.repartition(counted["count"])
        rows.collect()
        self.plan = rows._jdf.queryExecution().executedPlan().toString()
        return batch.number + 1


def test_a_batch_is_written_adaptively_with_a_shuffle_partition_for_each_core(
    spark: Any, tmp_path: Path
) -> None:
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "one.json").write_text('{"id": 1}\n{"id": 2}\n{"id": 2}\n')
    # Spark switches adaptive execution off in a stream: in 4.0 always, later where it has state.
    frame = spark.readStream.schema("id BIGINT").json(str(tmp_path / "rows")).distinct()
    sink, files = Writes(), Files(spark, str(tmp_path / "checkpoint"))
    runner = BatchRunner(
        spark,
        sink,
        Checkpoint(files),
        DeliveryGuarantee.EXACTLY_ONCE,
        Rejects(spark, sink, files, (), {}),
        SimpleNamespace(check=lambda: None),
        "cluster",
        {},
    )
    before = []

    def write(rows: Any, number: int) -> None:
        before.append(rows.sparkSession.conf.get(ADAPTIVE))
        runner(rows, number)

    writer = frame.writeStream.foreachBatch(write).outputMode("update").trigger(availableNow=True)
    writer.option("checkpointLocation", files.location).start().awaitTermination()

    assert before == ["false"]
    assert sink.settings == {ADAPTIVE: "true", SHUFFLE_PARTITIONS: "2"}
    assert sink.plan.startswith("AdaptiveSparkPlan isFinalPlan=true")
    # The stream's own plan is made with the setting that Spark chose; the user's is not changed.
    assert sink.session.conf.get(ADAPTIVE) == "false"
    assert not sink.session._jsparkSession.equals(spark._jsparkSession)
    assert spark.conf.get(ADAPTIVE) == "true"
    assert runner.versions == {0: 1}
