"""Times that name no zone, and settings, in a query whose session changes between two runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines import PipelineError, to_delta, to_topic, topic
from ottla.pipelines.spark.defaults import TIME_ZONE

pytestmark = pytest.mark.spark

ANSI = "spark.sql.ansi.enabled"
LOCAL = '{"id": 1, "at": "2026-07-01T12:00:00"}'


def test_a_time_without_a_zone_is_utc_and_stays_that(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    source, target = new_topic(), new_topic()
    produce(source, [("1", LOCAL)])

    def frame() -> Any:
        return topic(spark, source, bootstrap_servers=bootstrap, schema="id BIGINT, at TIMESTAMP")

    def into_table() -> None:
        rows = frame().select("value.*")
        once = {"availableNow": True}
        to_delta(rows, tmp_path / "t", checkpoint=tmp_path / "cp", trigger=once).awaitTermination()

    def into_topic() -> None:
        rows = frame().selectExpr("to_json(value) AS value")
        where: dict[str, Any] = {
            "bootstrap_servers": bootstrap,
            "checkpoint": tmp_path / "cp-topic",
        }
        to_topic(rows, target, trigger={"availableNow": True}, **where).awaitTermination()

    for run in (into_table, into_topic):
        run()
    rows = spark.read.format("delta").load(str(tmp_path / "t")).selectExpr("unix_seconds(at) AS s")
    assert [row["s"] for row in rows.collect()] == [1782907200]  # 12:00 UTC

    changed = {
        TIME_ZONE: ("Asia/Tokyo", "without a zone as UTC, and this session"),
        ANSI: ("false", "rows with spark.sql.ansi.enabled=true, and this session has false"),
    }
    for name, (value, said) in changed.items():
        before = spark.conf.get(name)
        spark.conf.set(name, value)
        try:
            for run in (into_table, into_topic):
                with pytest.raises(PipelineError, match=said):
                    run()
        finally:
            spark.conf.set(name, before)
    into_table()
