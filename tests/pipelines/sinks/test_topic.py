"""Rows as records, in tasks that depend on the rows alone."""

import itertools
from typing import Any

import pytest

from ottla.pipelines.sinks import topic_task
from ottla.pipelines.sinks.topic import fields_of, group_of, in_tasks
from ottla.pipelines.sinks.topic_columns import RecordColumns

pytestmark = pytest.mark.spark


def tasks_of(records: Any, tasks: int) -> list[list[tuple[Any, ...]]]:
    parts = in_tasks(records, tasks).rdd.mapPartitions(lambda rows: [list(map(tuple, rows))])
    return [
        [(key and bytes(key), bytes(value)) for key, value, _ in part] for part in parts.collect()
    ]


def test_a_row_has_the_same_task_however_spark_cuts_the_batch(spark: Any) -> None:
    rows = [(f"k{number % 7}" if number % 3 else None, f"v{number}") for number in range(200)]
    columns = RecordColumns("key", "value")
    whole, cut, turned = (
        spark.createDataFrame(each, "key STRING, value STRING").repartition(parts)
        for each, parts in ((rows, 1), (rows, 5), (rows[::-1], 3))
    )
    found = [
        [sorted(part, key=str) for part in tasks_of(columns.records(frame), 3)]
        for frame in (whole, cut, turned)
    ]
    assert found[0] == found[1] == found[2]
    assert sorted(itertools.chain(*found[0]), key=str) == sorted(
        ((key and key.encode(), value.encode()) for key, value in rows), key=str
    )
    assert all(found[0]), "a task of 200 rows is empty"


def test_rows_of_a_key_keep_their_order(spark: Any) -> None:
    rows = [(f"k{number % 5}", str(number)) for number in range(1_000)]
    frame = spark.createDataFrame(rows, "key STRING, value STRING").coalesce(1)
    for part in tasks_of(RecordColumns("key", "value").records(frame), 2):
        for wanted in {key for key, _ in part}:
            numbers = [int(value) for key, value in part if key == wanted]
            assert numbers == sorted(numbers)


def test_keys_values_and_headers_reach_a_task_as_they_are(spark: Any) -> None:
    rows = [
        (b"k", b"\0\xff", [("h", b"\0\xfe"), ("h", b""), ("none", None)]),
        (None, b"", []),
        (b"", None, None),
        (b"last", b"v" * 100_000, [('"\n\u00e9', b"1")]),
    ]
    schema = "key BINARY, value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
    frame = spark.createDataFrame(rows, schema).coalesce(1)
    fields = fields_of(RecordColumns("key", "value", "headers").records(frame))
    assert list(topic_task.rows_of(fields.collect())) == rows


def test_a_query_has_one_group() -> None:
    assert group_of("1-2") == "ottla-1-2"
