"""A batch that was planned before its topic got more partitions."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from ottla.pipelines import PipelineError, to_delta, topic
from ottla.pipelines.kafka.brokers import TopicState
from ottla.pipelines.run.cut_off import ALONE, CutOffFirst
from ottla.pipelines.sinks.delta.sink import DeltaSink

NOW = {"availableNow": True}


@pytest.mark.parametrize(
    ("trigger", "begun_ms", "partitions", "alone"),
    [
        (NOW, 1, 2, True),
        (NOW, 1, 1, False),
        (NOW, None, 2, False),
        ({"processingTime": "1 second"}, 1, 2, False),
        (None, 1, 2, False),
    ],
)
def test_it_is_run_alone_where_spark_would_refuse_it(
    trigger: dict[str, Any] | None, begun_ms: int | None, partitions: int, *, alone: bool
) -> None:
    checkpoint: Any = SimpleNamespace(
        begun_ms=lambda: begun_ms, begins=lambda is_delivered: {"t": {0: 5}}
    )
    offsets = dict.fromkeys(range(partitions), 9)
    triggers = CutOffFirst(
        trigger, checkpoint, lambda: {"t": TopicState("t", "id", offsets, offsets)}
    )
    assert triggers.next() == (ALONE if alone else trigger or {})
    assert triggers.is_alone == alone


@pytest.mark.spark
def test_what_there_is_arrives_though_partitions_came_after_a_batch_that_was_cut_off(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = new_topic(1)

    def send(first: int, partition: int) -> None:
        values = [(None, json.dumps({"id": first + number})) for number in range(3)]
        produce(name, values, partition=partition)

    def run() -> None:
        rows = topic(spark, name, bootstrap_servers=bootstrap, schema="id BIGINT")
        place: dict[str, Any] = {"checkpoint": tmp_path / "cp", "trigger": NOW}
        to_delta(rows.select("value.id"), tmp_path / "table", **place).awaitTermination()

    def cut_off(*_: Any) -> None:
        raise PipelineError("cut off")

    send(0, 0)
    with monkeypatch.context() as patch:
        patch.setattr(DeltaSink, "write", cut_off)
        with pytest.raises(PipelineError, match="cut off"):
            run()
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 3})
    admin.create_partitions([NewPartitions(name, 2)])[name].result(timeout=30)
    send(3, 1)
    run()
    rows = spark.read.format("delta").load(str(tmp_path / "table")).collect()
    assert sorted(row["id"] for row in rows) == list(range(6))
