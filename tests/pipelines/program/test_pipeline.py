"""One pipeline of a session, without Spark."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from tests.pipelines.program.one_file import FILE, Lags
from tests.pipelines.progress.runs import RUN

from ottla.pipelines.file.read import read_file
from ottla.pipelines.program.pipeline import Pipeline
from ottla.pipelines.program.snapshot import Snapshot
from ottla.pipelines.progress.commits import Delivered
from ottla.pipelines.progress.query_reporter import QueryReporter
from ottla.pipelines.progress.running_batch import RunningBatch
from ottla.pipelines.progress.status import Lag, LagReader


def test_a_batch_is_shown_with_the_lag_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "numbers.toml"
    file.write_text(FILE)
    pipeline = Pipeline(read_file(file, {}).pipelines[0])
    first, second = (
        Delivered("numbers", "id-1", batch, {"numbers": {0: offset}})
        for batch, offset in ((7, 1), (8, 3))
    )
    reporter = SimpleNamespace(run=RUN, latest=first)
    pipeline.reporter = cast("QueryReporter", reporter)
    assert pipeline.has_new_batch
    pipeline.read_lag(cast("LagReader", Lags({})))
    assert pipeline.snapshot() == Snapshot("numbers", RUN, first, Lag(2, 0))
    assert not pipeline.has_new_batch

    reporter.latest = second
    assert pipeline.has_new_batch
    assert pipeline.snapshot() == Snapshot("numbers", RUN, first, Lag(2, 0))
    # A new state is not kept back.
    failed = reporter.run = replace(RUN, state="failed")
    assert pipeline.snapshot() == Snapshot("numbers", failed, second)
    reporter.latest = first
    assert pipeline.snapshot() == Snapshot("numbers", failed, first, Lag(2, 0))

    reporter.latest = second
    pipeline.read_lag(cast("LagReader", Lags({})))
    assert pipeline.snapshot() == Snapshot("numbers", failed, second, Lag(0, 0))


def test_how_far_a_batch_has_come_is_shown_when_it_takes_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "numbers.toml"
    file.write_text(FILE)
    pipeline = Pipeline(read_file(file, {}).pipelines[0])
    query = SimpleNamespace(isActive=True, runId="run-1", exception=lambda: None)
    spark = SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: "tracker"))
    found = RunningBatch(2, 1, 200, 34)
    monkeypatch.setattr(
        "ottla.pipelines.program.pipeline.read_running_batch",
        lambda *given: {("tracker", "run-1"): found}[given],
    )
    pipeline.read_inside(spark)
    assert pipeline.snapshot().inside is None, "it has no query yet"
    pipeline.query = query
    pipeline.read_inside(spark)
    assert pipeline.snapshot().inside is None, "a small batch is over at the next look"
    pipeline.read_inside(spark)
    assert pipeline.snapshot().inside == found
    query.isActive = False
    assert pipeline.snapshot().inside is None

    query.isActive = True
    pipeline.read_inside(SimpleNamespace())  # Spark has been stopped
    assert pipeline.snapshot().inside is None
