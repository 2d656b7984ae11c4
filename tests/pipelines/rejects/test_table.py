"""The rejected rows of a table, counted by reason."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StructType

from ottla.pipelines.rejects.table import read_rejected
from ottla.pipelines.sinks.delta.sink import DeltaSink
from ottla.pipelines.sinks.delta.target import find_target
from ottla.pipelines.sinks.files.sink import FilesSink
from ottla.pipelines.target.port import Batch

pytestmark = [pytest.mark.spark, pytest.mark.full]

COLUMNS = (
    "topic string, partition int, offset bigint, timestamp timestamp, value binary, reason string"
)


def row(offset: int, reason: str) -> tuple[Any, ...]:
    return ("f", 0, offset, datetime.fromtimestamp(offset, UTC), b"x", reason)


def write_delta(spark: Any, frame: Any, target: Path) -> DeltaSink:
    frame.write.format("delta").save(f"{target}_rejected")
    return DeltaSink(spark, find_target(spark, target), StructType())


def write_json(spark: Any, frame: Any, target: Path) -> FilesSink:
    sink = FilesSink(spark, str(target), StructType(), "json")
    place = sink.rejected(frame.schema)
    place.make()
    place.write(frame, Batch("query", 0, ""))
    return sink


@pytest.mark.parametrize("write", [write_delta, write_json])
def test_rows_are_counted_by_reason_without_the_value_that_it_quotes(
    spark: Any, tmp_path: Path, write: Any
) -> None:
    rows = [
        row(1, "value.id is not a bigint: one"),
        row(2, "value.id is not a bigint: two: or\nthree"),
        row(3, "value is not UTF-8 text"),
    ]
    frame = spark.createDataFrame(rows, COLUMNS).coalesce(1)
    assert read_rejected(FilesSink(spark, str(tmp_path / "late"), StructType()), 1) is None
    place = write(spark, frame, tmp_path / "late").rejected(StructType())

    found = read_rejected(place, 1)

    assert found is not None
    assert found.rows == 3
    assert [(one.reason, one.rows, one.first_ms, one.last_ms) for one in found.reasons] == [
        ("value.id is not a bigint", 2, 1_000, 2_000),
        ("value is not UTF-8 text", 1, 3_000, 3_000),
    ]
    (newest,) = found.newest
    assert (newest.topic, newest.partition, newest.offset, newest.timestamp_ms) == (
        "f",
        0,
        3,
        3_000,
    )
    assert (newest.key, newest.value, newest.row) == (None, b"x", None)
