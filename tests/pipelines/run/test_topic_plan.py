"""What a plan for a topic finds out before Spark runs."""

from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines import PipelineError
from ottla.pipelines.checkpoint.checkpoint import Checkpoint
from ottla.pipelines.checkpoint.identity import Identity
from ottla.pipelines.kafka.settings import read_settings
from ottla.pipelines.run.topic_plan import (
    DEFAULT_MARKS_KEPT_MIN,
    FILE,
    check_marks,
    keep_tasks,
    read_tasks,
    wrong_topic,
)
from ottla.pipelines.sinks.topic import TopicSink
from ottla.pipelines.spark.jvm.files import Files


@pytest.mark.spark
def test_a_batch_older_than_its_marks_is_not_repeated(
    spark: Any, bootstrap: str, tmp_path: Path
) -> None:
    checkpoint = Checkpoint(Files(spark, str(tmp_path)))
    kafka = read_settings(bootstrap)
    assert checkpoint.begun_ms() is None
    check_marks(checkpoint, "place", kafka, 1e15)

    for batch, begun_ms in ((0, 1_000), (1, 2_000)):
        (tmp_path / "offsets").mkdir(exist_ok=True)
        text = f'v1\n{{"batchWatermarkMs":0,"batchTimestampMs":{begun_ms},"conf":{{}}}}\n{{}}\n'
        (tmp_path / f"offsets/{batch}").write_text(text)
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits/0").write_text("v1\n{}\n")
    assert checkpoint.begun_ms() == 2_000
    kept_ms = DEFAULT_MARKS_KEPT_MIN * 60_000  # the broker tells its own, which is the default
    check_marks(checkpoint, "place", kafka, 2_000 + kept_ms)
    with pytest.raises(PipelineError, match="Start once with delivery='at-least-once'"):
        check_marks(checkpoint, "place", kafka, 2_001 + kept_ms)
    (tmp_path / "commits/1").write_text("v1\n{}\n")
    assert checkpoint.begun_ms() is None


@pytest.mark.spark
def test_the_number_of_tasks_stays(spark: Any, tmp_path: Path) -> None:
    files = Files(spark, str(tmp_path))
    assert read_tasks(files) is None
    keep_tasks(files, 7)
    assert read_tasks(files) == 7
    for damaged in ("{}", "no JSON", '{"version": 1, "tasks": 0}', '{"version": 2, "tasks": 7}'):
        files.write(FILE, damaged)
        with pytest.raises(PipelineError, match="is damaged"):
            read_tasks(files)


def test_a_checkpoint_belongs_to_one_topic() -> None:
    sink = TopicSink("late", read_settings("localhost:9092"))
    kept = Identity("cluster", {}, "id-1", "topic late", "exactly-once")
    assert wrong_topic(None, "place", sink, "id-1") is None
    assert wrong_topic(kept, "place", sink, "id-1") is None
    assert "deleted and created again" in (wrong_topic(kept, "place", sink, "id-2") or "")
    table = Identity("cluster", {}, "id-3", "file:/lake/late", "exactly-once")
    assert "belongs to file:/lake/late, not to topic late" in (
        wrong_topic(table, "place", sink, "id-2") or ""
    )
