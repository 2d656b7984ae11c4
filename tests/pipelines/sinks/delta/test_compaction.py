"""Small files are joined while a query runs, and its batches do not notice."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines.sinks.delta import compaction
from ottla.pipelines.sinks.delta.compaction import LOOK_EVERY, Compacted, Compaction
from ottla.pipelines.sinks.delta.sink import DeltaSink
from ottla.pipelines.sinks.delta.target import find_target
from ottla.pipelines.spark.jvm.delta_log import count_files
from ottla.pipelines.target.port import Batch

pytestmark = pytest.mark.spark


def test_files_are_joined_after_so_many_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    files = iter((90, 105, 120, 150))
    joined: list[int] = []

    def compact(session: Any, location: str) -> Compacted:
        joined.append(len(joined))
        return Compacted(removed=100, added=2)

    monkeypatch.setattr(compaction, "count_files", lambda session, location: next(files))
    monkeypatch.setattr(compaction, "compact", compact)
    table = Compaction("file:/lake", 100)

    done = [table.batch_written(None) for _ in range(4 * LOOK_EVERY)]

    # 105 files become 7; 120 are 113 more, 150 only 128 more than the 22 after the second time.
    assert [index + 1 for index, one in enumerate(done) if one] == [32, 48, 64]


@pytest.mark.full
def test_a_query_keeps_its_versions_and_its_rows(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(compaction, "LOOK_EVERY", 2)
    caplog.set_level(logging.INFO, "ottla.pipelines")
    frame = spark.range(3)
    sink = DeltaSink(spark, find_target(spark, tmp_path / "t"), frame.schema, compact_after=2)
    sink.make()
    location = sink.target.location

    versions = [sink.write(frame.coalesce(1), Batch("q", number, "")) for number in range(4)]

    # Version 0 is the empty table; the versions between are those of OPTIMIZE.
    assert versions == [1, 2, 4, 5]
    assert count_files(spark, location) == 1
    assert sink.write(frame, Batch("q", 3, "")) is None
    assert spark.read.format("delta").load(str(tmp_path / "t")).count() == 12
    assert f"2 small files of {location} are now 1" in caplog.messages
    assert "spark.databricks.delta.optimize.minFileSize" not in spark.conf.getAll


def test_a_failure_is_logged_and_the_batch_counts(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(compaction, "LOOK_EVERY", 1)
    monkeypatch.setattr(compaction, "count_files", lambda session, location: 200)
    table = Compaction(f"file:{tmp_path}/nothing", 100)

    assert table.batch_written(spark) is None

    (line,) = caplog.messages
    assert line.startswith(f"The small files of file:{tmp_path}/nothing were not joined: ")
