"""Rows older than the watermark: what Spark leaves out is kept, once, or counted."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from ottla.pipelines import deduplicate, to_delta, topic

pytestmark = pytest.mark.spark

ONCE = {"availableNow": True}
SCHEMA = "id BIGINT, at TIMESTAMP"


def minutes(number: int) -> str:
    return f"2026-01-31T{number // 60:02}:{number % 60:02}:00Z"


def event(number: int, minute: int) -> tuple[None, str]:
    return None, json.dumps({"id": number, "at": minutes(minute)})


def test_duplicates_are_left_out_and_late_rows_are_kept_once(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    name, table, checkpoint = new_topic(1), tmp_path / "table", tmp_path / "checkpoint"
    place: dict[str, Any] = {"bootstrap_servers": bootstrap, "schema": SCHEMA, "max_rows": 3}

    def run() -> None:
        rows = topic(spark, name, **place).select("value.*", "offset")
        once = deduplicate(rows, "id", within="10 minutes", time="at")
        to_delta(once, table, checkpoint=checkpoint, trigger=ONCE).awaitTermination()

    produce(name, [event(1, 60), event(2, 61), (None, "bad")])
    produce(name, [event(1, 62), event(3, 120), event(2, 63)])  # the watermark is 1:50 after these
    produce(name, [event(3, 121), event(6, 115), event(6, 116)])
    produce(name, [event(4, 70), event(5, 119), event(3, 121)])
    run()
    # As after a kill between Delta's commit and Spark's own note that the last batch is done.
    for number, folder in ((3, "commits"), (4, "commits"), (4, "offsets")):
        (checkpoint / folder / str(number)).unlink(missing_ok=True)
        (checkpoint / folder / f".{number}.crc").unlink(missing_ok=True)
    run()

    found = spark.read.format("delta").load(str(table)).collect()
    assert sorted(row["id"] for row in found) == [1, 2, 3, 5, 6]
    (late,) = spark.read.format("delta").load(f"{table}_late").collect()
    assert json.loads(late["row"])["id"] == 4
    assert late["offset"] == 9
    shown = [late[column].astimezone().isoformat() for column in ("event_time", "watermark")]
    wanted = [datetime.fromisoformat(minutes(minute)).astimezone() for minute in (70, 110)]
    assert shown == [one.isoformat() for one in wanted]
    assert caplog.text.count("batch 3 has rows that are older than the watermark: 1, kept") == 1
    assert spark.read.format("delta").load(f"{table}_rejected").count() == 1


@pytest.mark.full
def test_late_rows_of_both_sides_of_a_join_are_kept(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    sides = []
    for late in (8, 9):
        name = new_topic(1)
        for batch in ([(1, 60), (2, 61)], [(3, 120), (4, 120)], [(3, 121), (4, 121)], [(late, 70)]):
            produce(name, [event(number, minute) for number, minute in batch])
        rows = topic(spark, name, bootstrap_servers=bootstrap, schema=SCHEMA, max_rows=2)
        sides.append(rows.select("value.*").withWatermark("at", "10 minutes"))
    left, right = sides
    joined = left.join(right.withColumnsRenamed({"id": "other", "at": "then"}),
                       F.expr("id = other AND at = then"))  # fmt: skip

    table = tmp_path / "table"
    to_delta(joined, table, checkpoint=tmp_path / "cp", trigger=ONCE).awaitTermination()

    found = spark.read.format("delta").load(str(table)).collect()
    assert sorted(row["id"] for row in found) == [1, 2, 3, 3, 4, 4]
    late_rows = spark.read.format("delta").load(f"{table}_late").collect()
    rows = [json.loads(row["row"]) for row in late_rows]
    assert sorted(row.get("id") or row["other"] for row in rows) == [8, 9]


@pytest.mark.full
def test_late_rows_of_an_aggregation_are_counted(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    name, table = new_topic(1), tmp_path / "table"
    for batch in ([(1, 60), (2, 61)], [(3, 120), (4, 120)], [(3, 121), (4, 121)], [(9, 70)]):
        produce(name, [event(number, minute) for number, minute in batch])
    rows = topic(spark, name, bootstrap_servers=bootstrap, schema=SCHEMA, max_rows=2)
    marked = rows.select("value.*").withWatermark("at", "10 minutes")
    counted = marked.groupBy(F.window("at", "5 minutes")).count()

    to_delta(
        counted.select("window.start", "count"), table, checkpoint=tmp_path / "cp", trigger=ONCE
    ).awaitTermination()

    assert "batch 3 has rows or groups that are older than the watermark: 1. They" in caplog.text
    assert not Path(f"{table}_late").exists()
