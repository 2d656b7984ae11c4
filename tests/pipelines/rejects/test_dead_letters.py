"""Rejected rows as records of a dead-letter topic."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from ottla.pipelines import PipelineError, to_delta, topic
from ottla.pipelines.rejects.dead_letters import dead_letters

pytestmark = [pytest.mark.spark, pytest.mark.full]

REJECTED = (
    "topic string, partition int, offset bigint, key binary, value binary, reason string, "
    "headers array<struct<key string, value binary>>, row string"
)


def test_a_record_keeps_what_it_has_and_says_where_it_was(spark: Any) -> None:
    rows = [
        ("f", 1, 7, b"k", b"\xff", "value is not UTF-8 text", [("trace", b"1")], None),
        (None, 1, 8, None, None, "violates", None, '{"id": 8}'),
    ]
    frame = dead_letters(spark.createDataFrame(rows, REJECTED).coalesce(1), "late")

    found = [
        (row["key"], row["value"], {one["key"]: bytes(one["value"]) for one in row["headers"]})
        for row in frame.collect()
    ]

    errors = "__connect.errors."
    place = {f"{errors}partition": b"1", f"{errors}connector.name": b"late"}
    assert found == [
        (
            b"k",
            b"\xff",
            place
            | {
                "trace": b"1",
                f"{errors}topic": b"f",
                f"{errors}offset": b"7",
                f"{errors}exception.message": b"value is not UTF-8 text",
            },
        ),
        (
            None,
            b'{"id": 8}',
            place
            | {
                f"{errors}offset": b"8",
                f"{errors}exception.message": b"violates",
                "ottla.row": b"true",
            },
        ),
    ]


def test_rejected_rows_are_in_the_table_and_in_the_topic(
    spark: Any, bootstrap: str, new_topic: Any, produce: Any, tmp_path: Path
) -> None:
    name, dead = new_topic(1), new_topic(1)
    produce(name, [(b"a", b'{"n": 1}'), (b"b", b"none", [("trace", b"1")])])
    rows = topic(spark, name, bootstrap_servers=bootstrap, schema="n INT").select("value.*")
    places: Any = {"target": tmp_path / "table", "checkpoint": tmp_path / "checkpoint"}
    with pytest.raises(PipelineError, match="it would read its own rejected rows"):
        to_delta(rows, **places, dead_letters=name)
    with pytest.raises(PipelineError, match="nowhere"):
        to_delta(rows, **places, dead_letters="nowhere")

    query = to_delta(rows, **places, dead_letters=dead, trigger={"availableNow": True})
    query.awaitTermination()

    kept = spark.read.format("delta").load(f"{tmp_path}/table_rejected").collect()
    record_time_ms = round(kept[0]["timestamp"].timestamp() * 1_000)
    assert [(row["offset"], bytes(row["value"])) for row in kept] == [(1, b"none")]
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    consumer.assign([TopicPartition(dead, 0, 0)])
    (record,) = consumer.consume(1, 30)
    consumer.close()
    assert (record.key(), record.value()) == (b"b", b"none")
    headers = dict(record.headers())
    assert headers["trace"] == b"1"
    assert headers["__connect.errors.offset"] == b"1"
    assert int(headers["ottla.timestamp"]) == record_time_ms
    assert headers["__connect.errors.exception.message"].startswith(b"value is not a JSON object")
