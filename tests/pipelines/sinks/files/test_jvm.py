"""Spark's own sink for files."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import BinaryType, CalendarIntervalType

from ottla.pipelines.sinks.files.jvm import SparkFileSink

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("file_format", ["parquet", "json"])
def test_a_batch_is_written_once_by_its_number(
    spark: Any, tmp_path: Path, file_format: str
) -> None:
    sink = SparkFileSink(spark, file_format)
    frame = spark.createDataFrame([(1, "a"), (2, "b")], "id INT, day STRING")
    frame = frame.selectExpr("*", "TIMESTAMP'2026-01-01 20:00:00.123456' AS at")
    for _ in range(2):
        sink.add_batch(f"file:{tmp_path}/t", ["day"], 0, frame)

    read = spark.read.schema("id INT, day STRING, at TIMESTAMP").format(file_format)
    rows = read.load(str(tmp_path / "t")).selectExpr("id", "day", "unix_micros(at) % 1000000")
    assert sorted(map(tuple, rows.collect())) == [(1, "a", 123456), (2, "b", 123456)]
    assert sorted(path.name for path in (tmp_path / "t").glob("day=*")) == ["day=a", "day=b"]


def test_which_types_a_format_can_hold(spark: Any) -> None:
    sink = SparkFileSink(spark, "parquet")
    assert sink.can_hold(BinaryType())
    assert not sink.can_hold(CalendarIntervalType())
