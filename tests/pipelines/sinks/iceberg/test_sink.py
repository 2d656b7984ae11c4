"""How a batch is written, without Spark."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import StructType

from ottla.pipelines.sinks.iceberg.sink import IcebergSink
from ottla.pipelines.target.port import Batch


class Frame:
    """A frame that notes what is asked of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def ask(*_: object) -> Frame:
            self.asked.append(name)
            return self

        return ask


@pytest.mark.parametrize("is_sampled", [False, True])
def test_rows_that_spark_would_compute_twice_are_kept_while_they_are_written(
    is_sampled: bool,
) -> None:
    """What is rejected or dropped would be counted twice."""
    spark: Any = None
    rows: Any = Frame()
    sink = IcebergSink(spark, "lake.db.t", StructType())
    sink._write(rows, Batch("query", 0, "{}"), is_sampled=is_sampled)
    written = ["writeTo", "option", "append"]
    assert rows.asked == (["persist", *written, "unpersist"] if is_sampled else written)
