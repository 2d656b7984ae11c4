"""Running the pipelines of a file, without Spark."""

import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn, cast

import pytest
from tests.cli.test_pipeline_snapshot import RUN

from ottla.cli import pipeline_run
from ottla.cli.failures import Failed
from ottla.cli.pipeline_run import Pipeline, Session, end_at_once, stop_spark, told_log
from ottla.cli.pipeline_snapshot import Snapshot
from ottla.cli.pipeline_view import open_view
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.file.read import read_file
from ottla.pipelines.progress.commits import Delivered
from ottla.pipelines.progress.report import QueryReporter
from ottla.pipelines.progress.running_batch import RunningBatch
from ottla.pipelines.progress.status import Lag, LagReader


def test_what_pipelines_log_is_told_and_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    lines: list[str] = []
    logger = logging.getLogger("ottla.pipelines")
    with told_log(lines):
        logger.warning("%s does not answer", "localhost:9092")
        logger.info("a detail")
    logger_handlers = len(logger.handlers)
    with told_log(lines):
        pass
    assert lines == ["localhost:9092 does not answer"]
    assert len(logger.handlers) == logger_handlers
    assert capsys.readouterr().err == ""


def test_the_end_at_once_does_not_wait(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    left: list[int] = []
    killed: list[bool] = []
    monkeypatch.setattr(pipeline_run, "kill_spark", lambda: killed.append(True))
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    end_at_once(130, left.append)
    assert (left, killed) == ([130], [True])
    # A thread that waited for Spark has nothing to say any more.
    failing = threading.Thread(target=lambda: 1 / 0)
    failing.start()
    failing.join()
    assert capfd.readouterr().err == ""


def test_spark_may_have_ended_before_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[bool] = []
    monkeypatch.setattr(pipeline_run, "kill_spark", lambda: killed.append(True))

    def refuse() -> None:
        raise ConnectionRefusedError

    stop_spark(SimpleNamespace(stop=refuse))
    assert killed == [True]


def test_the_command_line_starts_without_pyspark() -> None:
    code = (
        "import sys; from ottla.cli.main import main\n"
        "try: main(['pipeline', '--help'])\n"
        "finally: print({'pyspark', 'confluent_kafka'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr == "set()\n"


FILE = """
[source]
bootstrap_servers = "localhost:9092"
topic = "numbers"
schema = "n INT"
[sink]
target = "./lake/numbers"
[delivery]
checkpoint = "./cp/numbers"
group = "numbers-delta"
"""


class Lags:
    """Answers with the lag at each offset of one partition that ends at offset 3."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = settings

    def read(self, offsets: Mapping[tuple[str, int], int]) -> Lag:
        return Lag(3 - offsets["numbers", 0], 0)


def test_the_lag_is_that_of_the_last_batch_when_the_queries_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "numbers.toml"
    file.write_text(FILE)
    monkeypatch.setattr(pipeline_run, "LagReader", Lags)
    session = Session(read_file(file, {}), open_view(as_json=True))
    (pipeline,) = session.pipelines
    latest = Delivered("numbers", "id-1", 7, {"numbers": {0: 3}})
    pipeline.reporter = cast("QueryReporter", SimpleNamespace(run=RUN, latest=latest))

    session._queries_have_ended.set()
    session._watch_lag(pipeline)

    assert pipeline.snapshot().lag == Lag(0, 0)
    pipeline.forget_lag()
    assert pipeline.snapshot() == Snapshot("numbers", RUN, latest)


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
        pipeline_run, "read_running_batch", lambda *given: {("tracker", "run-1"): found}[given]
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, None])
def test_a_start_that_a_signal_ends_has_not_failed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: int | None,
) -> None:
    """systemd and Ctrl-C send the signal to Spark's process as well."""
    file = tmp_path / "numbers.toml"
    file.write_text(FILE)
    monkeypatch.setattr(pipeline_run, "LagReader", Lags)
    monkeypatch.setattr(pipeline_run, "SIGNAL_S", 0.01)
    session = Session(read_file(file, {}), open_view(as_json=True))
    ends: list[tuple[str, dict[str, str]]] = []
    (pipeline,) = session.pipelines
    monkeypatch.setattr(pipeline.starting, "end", lambda how, **why: ends.append((how, why)))

    def fail() -> NoReturn:
        if number is not None:
            session.signal = number
            session._is_stopping.set()
        raise PipelineError("Spark did not start")

    monkeypatch.setattr(session, "_start", fail)
    monkeypatch.setattr(pipeline_run, "end_at_once", lambda code: None)
    if number is None:
        with pytest.raises(Failed, match="Spark did not start"):
            session.run()
        assert ends[-1] == ("failed", {"failure": "Spark did not start"})
    else:
        assert session.run() == (130 if number == signal.SIGINT else 0)
        assert {how for how, _ in ends} == {"stopped"}
        assert "Spark did not start" in capsys.readouterr().err
