"""Rows as records, in tasks that depend on the rows alone."""

import itertools
import time
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines import PipelineError
from ottla.pipelines.checkpoint.identity import FILE, Identity
from ottla.pipelines.delivery import DeliveryGuarantee
from ottla.pipelines.kafka.settings import read_settings
from ottla.pipelines.sinks.topic import task as topic_task
from ottla.pipelines.sinks.topic.columns import RecordColumns
from ottla.pipelines.sinks.topic.sink import (
    DEFAULT_MARKS_KEPT_MIN,
    TASKS,
    TopicSink,
    TopicTarget,
    fields_of,
    group_of,
    in_tasks,
    kept_tasks,
)
from ottla.pipelines.spark.jvm.files import Files

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


def test_a_batch_with_another_schema_has_columns_of_its_own(spark: Any, tmp_path: Path) -> None:
    target = TopicTarget("t", read_settings("127.0.0.1:9"), RecordColumns("id"))
    sink = TopicSink(spark, target, tmp_path)

    def written(values: list[Any], schema: str) -> list[tuple[bytes, bytes]]:
        rows = sink._records(spark.createDataFrame(values, schema)).collect()
        return [(bytes(row["key"]), bytes(row["value"])) for row in rows]

    assert written([(1, "a")], "id INT, name STRING") == [(b"1", b'{"id":1,"name":"a"}')]
    made = sink._made
    assert written([(2, "b")], "id INT, name STRING") == [(b"2", b'{"id":2,"name":"b"}')]
    assert sink._made is made
    assert written([("3", 4)], "id STRING, more INT") == [(b"3", b'{"id":"3","more":4}')]
    assert written([(bytearray(b"5"),)], "id BINARY") == [(b"5", b'{"id":"NQ=="}')]


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


def test_a_batch_older_than_its_marks_is_not_repeated(spark: Any, bootstrap: str) -> None:
    sink = TopicSink(spark, TopicTarget("late", read_settings(bootstrap)), "place")
    kept_ms = DEFAULT_MARKS_KEPT_MIN * 60_000  # the broker tells its own, which is the default
    now_ms = int(time.time() * 1_000)
    sink.check_repeat(DeliveryGuarantee.EXACTLY_ONCE, now_ms - kept_ms + 600_000, "place")
    sink.check_repeat(DeliveryGuarantee.AT_MOST_ONCE, now_ms - kept_ms - 1, "place")
    with pytest.raises(PipelineError, match="Start once with delivery='at-least-once'"):
        sink.check_repeat(DeliveryGuarantee.EXACTLY_ONCE, now_ms - kept_ms - 1, "place")


def test_the_number_of_tasks_stays(spark: Any, tmp_path: Path) -> None:
    files = Files(spark, str(tmp_path))
    assert TASKS.read(files) is None
    TASKS.write(files, 7)
    assert TASKS.read(files) == 7
    assert files.read(TASKS.name) == '{"version": 1, "tasks": 7}\n'
    for damaged in ("{}", "no JSON", '{"version": 1, "tasks": 0}'):
        files.write(TASKS.name, damaged)
        with pytest.raises(PipelineError, match="is damaged"):
            TASKS.read(files)


class Kept:
    """A folder in memory."""

    location = "file:/cp"

    def __init__(self, **files: str) -> None:
        self.files = files

    def read(self, name: str) -> str | None:
        return self.files.get(name)

    def write(self, name: str, text: str) -> None:
        self.files[name] = text

    def delete(self, name: str) -> None:
        del self.files[name]


def test_a_checkpoint_that_has_lost_its_number_of_tasks_is_refused() -> None:
    folder = Kept()
    assert kept_tasks(folder) is None
    TASKS.write(folder, 3)
    folder.write(FILE, "{}")
    assert kept_tasks(folder) == 3
    folder.delete(TASKS.name)
    with pytest.raises(PipelineError, match=r"^file:/cp/ottla-topic\.json is missing, which says"):
        kept_tasks(folder)


def test_a_checkpoint_belongs_to_one_topic() -> None:
    spark: Any = None
    kafka = read_settings("localhost:9092")
    first, second = (
        TopicSink(spark, TopicTarget("late", kafka), "place", topic_id=topic_id)
        for topic_id in ("id-1", "id-2")
    )
    kept = Identity("cluster", {}, "id-1", "topic late", "exactly-once")
    assert first.wrong_owner(None, "place") is None
    assert first.wrong_owner(kept, "place") is None
    assert "deleted and created again" in (second.wrong_owner(kept, "place") or "")
    table = Identity("cluster", {}, "id-3", "file:/lake/late", "exactly-once")
    assert "belongs to file:/lake/late, not to topic late" in (
        second.wrong_owner(table, "place") or ""
    )
