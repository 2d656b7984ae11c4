"""The operators of a batch that has a state and leaves out late rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines.spark.jvm.execution import Execution
from ottla.pipelines.spark.jvm.operators import operators

pytestmark = pytest.mark.spark

SCHEMA = "id INT, at TIMESTAMP"
BATCHES = (["2026-01-31 01:00:00"], ["2026-01-31 02:00:00"], ["2026-01-31 00:30:00"])


def test_what_an_operator_left_out_and_what_it_read(spark: Any, tmp_path: Path) -> None:
    for number, times in enumerate(BATCHES):
        rows = spark.sql(f"SELECT {number} AS id, TIMESTAMP '{times[0]}' AS at").coalesce(1)
        rows.write.mode("append").json(str(tmp_path / "in"))
    found: dict[int, tuple[Any, ...]] = {}

    def look(frame: Any, number: int) -> None:
        frame.count()
        (query,) = spark.streams.active
        plan = Execution(spark, query.id).plan()
        (state,) = (one for one in operators(plan) if one.has_state())
        (shuffle,) = state.children
        assert state.drops_late_rows()
        assert not shuffle.drops_late_rows()
        found[number] = (
            state.kind,
            state.dropped(),
            state.late_watermark_ms(),
            shuffle.kind,
            shuffle.schema.names,
            [row["id"] for row in shuffle.rows(frame.sparkSession).collect()],
        )

    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    once = (
        stream.json(str(tmp_path / "in"))
        .withWatermark("at", "10 minutes")
        .dropDuplicatesWithinWatermark(["id"])
    )
    writer = once.writeStream.option("checkpointLocation", str(tmp_path / "c"))
    writer.trigger(availableNow=True).foreachBatch(look).start().awaitTermination()

    kinds = ("StreamingDeduplicateWithinWatermarkExec", "ShuffleExchangeExec")
    watermark_ms = 1_769_820_600_000  # 00:50 in UTC: that of the batch before
    assert found[2] == (kinds[0], 1, watermark_ms, kinds[1], ["id", "at"], [2])
    assert found[0][1] == 0
