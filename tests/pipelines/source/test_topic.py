"""A topic as a frame."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from ottla.pipelines import PipelineError, rejected, topic

pytestmark = pytest.mark.spark

NOWHERE = "localhost:9092"


def test_columns_are_what_a_user_expects(spark: Any) -> None:
    frame = topic(spark, "flights", bootstrap_servers=NOWHERE, schema="id BIGINT, s STRING")

    assert frame.isStreaming
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:struct<id:bigint,s:string>,partition:int,offset:bigint,"
        "timestamp:timestamp,headers:array<struct<key:string,value:binary>>>"
    )


def test_a_schema_may_be_a_type_of_sparks(spark: Any) -> None:
    from pyspark.sql.types import IntegerType, StructField, StructType

    frame = topic(
        spark,
        "flights",
        bootstrap_servers=["a:1", "b:2"],
        schema=StructType([StructField("id", IntegerType(), nullable=False)]),
        key_schema="binary",
        starting={0: 5, 1: 7},
    )

    assert frame.schema["key"].dataType.simpleString() == "binary"
    assert frame.schema["value"].dataType.simpleString() == "struct<id:int>"


def test_rejected_rows_keep_their_bytes(spark: Any) -> None:
    frame = rejected(spark, "flights", bootstrap_servers=NOWHERE, schema="id BIGINT")

    assert frame.columns == [
        "topic",
        "partition",
        "offset",
        "timestamp",
        "headers",
        "key",
        "value",
        "reason",
    ]
    assert frame.schema["value"].dataType.simpleString() == "binary"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"name": "no spaces"}, "is no topic's name"),
        ({"bootstrap_servers": "localhost"}, "write host:port"),
        ({"starting": "yesterday"}, "write 'earliest', 'latest', 'table', a datetime"),
        ({"rejects": "drop"}, "write 'separate' or 'keep'"),
        ({"tombstones": "drop"}, "write 'skip', 'keep' or 'mark'"),
        ({"unknown_fields": "ignore"}, "write 'drop', 'keep' or 'reject'"),
        ({"unknown_fields": "keep"}, "is for a value that is a JSON object"),
        ({"unknown_fields": "reject", "schema": "bigint"}, "is for a value that is a JSON object"),
        ({"unknown_fields": "keep", "schema": "_Unknown INT"}, "give that one another name"),
        ({"max_rows": 0}, "write a number of rows, at least 1"),
        ({"max_rows": "9"}, "write a number of rows, at least 1"),
        ({"starting": {}}, "write 'earliest', 'latest', 'table', a datetime"),
    ],
)
def test_wrong_arguments_are_refused(spark: Any, changed: dict[str, Any], words: str) -> None:
    arguments = {"name": "flights", "bootstrap_servers": NOWHERE} | changed
    with pytest.raises(PipelineError, match=words):
        topic(spark, **arguments)


def collect(frame: Any, name: str) -> tuple[list[Any], Any]:
    """Run a frame into memory; gives its rows and the query."""
    writer = frame.writeStream.format("memory").queryName(name).trigger(availableNow=True)
    query = writer.start()
    query.awaitTermination()
    return frame.sparkSession.table(name).collect(), query


MIXED = [
    (b"\x00\xc8", '{"id": 1}'),
    (b"b", '{"id": "two"}'),
    (b"c", None),
    (b"d", '{"id": 4}'),
]


def test_tombstones_of_objects_are_skipped_and_counted(
    spark: Any, bootstrap: str, new_topic: Callable[..., str], produce: Callable[..., None]
) -> None:
    name = new_topic(partitions=1)
    produce(name, MIXED)
    frame = topic(spark, name, bootstrap_servers=bootstrap, schema="id BIGINT")
    rows, query = collect(frame, "skipped")

    assert [(bytes(row["key"]), row["value"]["id"]) for row in rows] == [
        (b"\x00\xc8", 1),
        (b"d", 4),
    ]
    (counts,) = query.lastProgress.observedMetrics.values()
    assert (counts["rejected"], counts["tombstones"]) == (1, 1)


def test_tombstones_may_be_kept_and_plain_types_keep_them(
    spark: Any, bootstrap: str, new_topic: Callable[..., str], produce: Callable[..., None]
) -> None:
    name = new_topic(partitions=1)
    produce(name, MIXED)
    kept = topic(spark, name, bootstrap_servers=bootstrap, schema="id BIGINT", tombstones="keep")
    rows, _ = collect(kept, "kept")
    assert [row["value"] and row["value"]["id"] for row in rows] == [1, None, 4]

    marked = topic(spark, name, bootstrap_servers=bootstrap, schema="id BIGINT", tombstones="mark")
    rows, _ = collect(marked, "marked")
    assert [row["tombstone"] for row in rows] == [False, True, False]

    texts, _ = collect(topic(spark, name, bootstrap_servers=bootstrap), "texts")
    assert [row["value"] for row in texts] == [value for _, value in MIXED]
    skipped = topic(spark, name, bootstrap_servers=bootstrap, tombstones="skip")
    assert len(collect(skipped, "texts_skipped")[0]) == 3


def test_rejects_may_stay_in_the_frame_with_their_reason(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    name = new_topic(partitions=1)
    produce(name, MIXED)
    frame = topic(spark, name, bootstrap_servers=bootstrap, schema="id BIGINT", rejects="keep")
    rows, _ = collect(frame, "with_rejects")

    assert [
        (row["offset"], row["value"] and row["value"]["id"], row["reason"]) for row in rows
    ] == [
        (0, 1, None),
        (1, None, "value.id is not a bigint: two"),
        (3, 4, None),
    ]
    assert "do not parse" not in caplog.text


def test_another_sink_warns_of_rejected_rows_once(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    name = new_topic(partitions=1)
    produce(name, MIXED)
    frame = topic(spark, name, bootstrap_servers=bootstrap, schema="id BIGINT")
    with caplog.at_level(logging.WARNING, logger="ottla.pipelines"):
        collect(frame, "foreign")
        spark._jsc.sc().listenerBus().waitUntilEmpty(30_000)

    (line,) = [record.message for record in caplog.records if name in record.message]
    assert line == (
        f"the topic {name} has rows that do not parse: 1 in this batch. The query foreign does not "
        "keep them: write with to_delta(), stream them with rejected(), or call topic() with "
        "rejects='keep'"
    )


def test_max_rows_limits_a_batch_and_a_time_starts_any_sink(
    spark: Any, bootstrap: str, new_topic: Callable[..., str]
) -> None:
    from confluent_kafka import Producer

    name = new_topic(partitions=1)
    producer = Producer({"bootstrap.servers": bootstrap})
    for second in range(10):
        producer.produce(name, b"x", timestamp=1_700_000_000_000 + second * 1_000)
    assert producer.flush(30) == 0
    frame = topic(
        spark,
        name,
        bootstrap_servers=bootstrap,
        starting=datetime.fromtimestamp(1_700_000_002, UTC),
        max_rows=3,
    )
    rows, query = collect(frame, "limited")

    assert [row["offset"] for row in rows] == [2, 3, 4, 5, 6, 7, 8, 9]
    read = [progress["numInputRows"] for progress in query.recentProgress]
    assert max(read) == 3
    late = topic(
        spark, name, bootstrap_servers=bootstrap, starting=datetime(2100, 1, 1, tzinfo=UTC)
    )
    assert collect(late, "late")[0] == []
