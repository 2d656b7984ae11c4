"""Records from the future in a table with keys: rejected, or said."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines import to_delta, topic

pytestmark = pytest.mark.spark

SCHEMA = "id BIGINT, word STRING, at TIMESTAMP, score DOUBLE"
NOW, LATER, FUTURE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "9000-01-01T00:00:00Z"


def record(number: int, word: str, at: str, score: float = 0.0) -> tuple[str, str]:
    return str(number), json.dumps({"id": number, "word": word, "at": at, "score": score})


class Job:
    def __init__(self, spark: Any, bootstrap: str, name: str, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        rows = topic(spark, name, bootstrap_servers=bootstrap, schema=SCHEMA)
        self.rows = rows.select("value.*", "partition", "offset")
        self.name = name

    def run(self, rows: Any = None, table: str = "t", **how: Any) -> None:
        to_delta(
            self.rows if rows is None else rows,
            self.folder / table,
            checkpoint=self.folder / f"cp-{table}",
            trigger={"availableNow": True},
            keys="id",
            **how,
        ).awaitTermination()

    def words(self, table: str = "t") -> dict[int, str]:
        rows = self.spark.read.format("delta").load(str(self.folder / table)).collect()
        return {row["id"]: row["word"] for row in rows}

    def reasons(self, table: str = "t") -> list[str]:
        place = str(self.folder / f"{table}_rejected")
        return [row["reason"] for row in self.spark.read.format("delta").load(place).collect()]


@pytest.fixture
def job(spark: Any, bootstrap: str, new_topic: Callable[..., str], tmp_path: Path) -> Job:
    return Job(spark, bootstrap, new_topic(1), tmp_path)


def test_a_record_from_the_future_is_said_or_rejected(
    job: Job, produce: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    produce(job.name, [record(1, "first", NOW), record(1, "from the future", FUTURE)])
    for table, how in (("t", {}), ("u", {"max_ahead": "1 hour"})):
        job.run(table=table, order_by="at", **how)
    produce(job.name, [record(1, "last", LATER)])
    for table, how in (("t", {}), ("u", {"max_ahead": "1 hour"})):
        job.run(table=table, order_by="at", **how)

    assert job.words("t") == {1: "from the future"}
    said = [text for text in caplog.messages if "ahead of the clock, up to" in text]
    assert said == [
        "batch 0 has records whose column at is more than 1 hour ahead of the clock, up to "
        "9000-01-01 00:00:00: 1. No record of their keys is newer until then. To reject such "
        "records, write max_ahead='1 hour'"
    ]
    assert job.words("u") == {1: "last"}
    assert job.reasons("u") == [
        "the column at, which orders the records of a key, is more than 1 hour ahead of the clock"
    ]


def test_the_clock_is_that_of_the_batch(job: Job, produce: Callable[..., None]) -> None:
    """A batch that runs again rejects the same rows, though its record is no longer ahead."""
    produce(job.name, [record(1, "near", NOW)])
    rows = job.rows.selectExpr(
        "id", "word", "current_timestamp() + INTERVAL '3' SECOND AS at", "partition", "offset"
    )
    job.run(rows, order_by="at", max_ahead="1 second")
    assert (job.words(), len(job.reasons())) == ({}, 1)

    # As after a kill between the commits of the two tables, when the record is ahead no more.
    shutil.rmtree(job.folder / "t_rejected")
    for file in (job.folder / "cp-t/commits").iterdir():
        file.unlink()
    time.sleep(3)
    job.run(rows, order_by="at", max_ahead="1 second")
    assert (job.words(), len(job.reasons())) == ({}, 1)


def test_what_is_no_number_has_no_order(job: Job, produce: Callable[..., None]) -> None:
    produce(job.name, [record(1, "a number", NOW, 1.0), record(1, "none", NOW, 2.0)])
    rows = job.rows.selectExpr(
        "id", "word", "IF(score = 2, double('NaN'), score) AS score", "partition", "offset"
    )
    job.run(rows, order_by="score", on_rejects="continue")
    assert job.words() == {1: "a number"}
    assert job.reasons() == ["the column score, which orders the records of a key, is NaN"]
