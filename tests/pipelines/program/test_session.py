"""Running the pipelines of a file, without Spark and without a terminal.

`tests/system/test_pipeline_exit_codes.py` has every way in which a run can end.
"""

import signal
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn, cast

import pytest
from tests.pipelines.program.one_file import FILE, Lags
from tests.pipelines.progress.runs import RUN

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.file.read import read_file
from ottla.pipelines.program.ending import Ending
from ottla.pipelines.program.session import Session
from ottla.pipelines.program.snapshot import Snapshot
from ottla.pipelines.progress.commits import Delivered
from ottla.pipelines.progress.query_reporter import QueryReporter
from ottla.pipelines.progress.status import Lag


class Views:
    """Keeps the notices, and shows nothing."""

    shows_inside = False

    def __init__(self) -> None:
        self.notices: list[str] = []

    def show(self, snapshots: Sequence[Snapshot]) -> None:
        pass

    def tell(self, line: str) -> None:
        self.notices.append(line)

    def close(self, snapshots: Sequence[Snapshot]) -> None:
        pass


def test_the_lag_is_that_of_the_last_batch_when_the_queries_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "numbers.toml"
    file.write_text(FILE)
    monkeypatch.setattr("ottla.pipelines.program.session.LagReader", Lags)
    session = Session(read_file(file, {}), Views())
    (pipeline,) = session.pipelines
    latest = Delivered("numbers", "id-1", 7, {"numbers": {0: 3}})
    pipeline.reporter = cast("QueryReporter", SimpleNamespace(run=RUN, latest=latest))

    session._queries_have_ended.set()
    session._watch_lag(pipeline)

    assert pipeline.snapshot().lag == Lag(0, 0)
    pipeline.forget_lag()
    assert pipeline.snapshot() == Snapshot("numbers", RUN, latest)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, None])
def test_a_start_that_a_signal_ends_has_not_failed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int | None,
) -> None:
    """systemd and Ctrl-C send the signal to Spark's process as well."""
    file = tmp_path / "numbers.toml"
    file.write_text(FILE)
    monkeypatch.setattr("ottla.pipelines.program.session.LagReader", Lags)
    monkeypatch.setattr("ottla.pipelines.program.session.SIGNAL_S", 0.01)
    view = Views()
    session = Session(read_file(file, {}), view)
    ends: list[tuple[str, dict[str, str]]] = []
    (pipeline,) = session.pipelines
    monkeypatch.setattr(pipeline.starting, "end", lambda how, **why: ends.append((how, why)))

    def fail() -> NoReturn:
        if number is not None:
            session.signal = number
            session._is_stopping.set()
        raise PipelineError("Spark did not start")

    monkeypatch.setattr(session, "_start", fail)
    monkeypatch.setattr("ottla.pipelines.program.session.end_at_once", lambda code: None)
    if number is None:
        with pytest.raises(PipelineError, match="Spark did not start"):
            session.run()
        assert ends[-1] == ("failed", {"failure": "Spark did not start"})
    else:
        assert session.run() == (Ending.INTERRUPTED if number == signal.SIGINT else Ending.DONE)
        assert {how for how, _ in ends} == {"stopped"}
        assert "Spark did not start" in view.notices[-1]
