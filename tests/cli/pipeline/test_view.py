"""The screen of `ottla pipeline run`."""

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console
from tests.pipelines.program.states import LATEST, SNAPSHOT
from tests.pipelines.progress.runs import RUN

from ottla.cli.pipeline import view as pipeline_view
from ottla.cli.pipeline.snapshot import COLUMNS
from ottla.cli.pipeline.view import JsonView, LineView, LiveView, open_view, table_of
from ottla.pipelines.program.snapshot import Snapshot
from ottla.pipelines.progress.running_batch import RunningBatch


def drawn(snapshots: list[Snapshot], width: int) -> str:
    console = Console(width=width, file=io.StringIO(), highlight=False)
    console.print(table_of(snapshots, width))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [40, 80, 200])
def test_nothing_is_cut_at_any_width(width: int) -> None:
    failed = replace(RUN, state="failed", failure="The disk of the lake is full: make room on it")
    text = drawn([SNAPSHOT, Snapshot("weather", failed, LATEST)], width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    assert all(name in text for name in COLUMNS)
    assert "29,268" in text
    assert "The disk of the lake is full: make room on it" in " ".join(text.split())
    # One row each where there is room, otherwise a line for each value.
    assert len(lines) == (4 if width == 200 else 2 * len(COLUMNS) + (2 if width == 40 else 1))


def test_a_batch_under_way_is_a_line_of_the_table_and_none_of_a_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    inside = replace(SNAPSHOT, inside=RunningBatch(3, 1, 1_200, 34))
    text = drawn([inside, Snapshot("weather")], 200)
    assert "flights: this batch: 34 of 1,200 tasks done, 1 of 3 stages" in text
    assert "weather: this batch" not in text

    view = LineView()
    view.show([SNAPSHOT])
    view.show([inside])
    view.close([SNAPSHOT])
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert (LineView.shows_inside, LiveView.shows_inside) == (False, True)


def test_a_line_for_each_batch_and_state(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    view = LineView()
    view.show([Snapshot("flights")])
    view.show([Snapshot("flights")])
    view.show([SNAPSHOT])
    # The next batch comes too soon for a line, the end of the run does not.
    view.show([replace(SNAPSHOT, latest=replace(LATEST, batch=8))])
    view.close([replace(SNAPSHOT, latest=replace(LATEST, batch=9))])
    view.tell("a warning")
    said = capsys.readouterr()
    assert [line.split(" ", 1)[1][:31] for line in said.out.splitlines()] == [
        "flights: starting",
        "flights: running. batch 7 in 41",
        "flights: running. batch 9 in 41",
    ]
    assert said.err == "a warning\n"

    monkeypatch.setattr(pipeline_view, "LINE_S", 0.0)
    view.show([replace(SNAPSHOT, latest=replace(LATEST, batch=10))])
    assert "batch 10" in capsys.readouterr().out


def test_lines_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    view = open_view(as_json=True)
    assert isinstance(view, JsonView)
    view.show([SNAPSHOT])
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["rows"] == 12_000
    assert isinstance(open_view(as_json=False), LineView)
