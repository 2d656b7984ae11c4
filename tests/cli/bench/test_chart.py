"""The chart of a run, and the lines where it cannot be drawn."""

from __future__ import annotations

import pytest

from ottla.cli.bench.chart import Chart, bars, chart
from ottla.messaging.load.meter import Meter


def test_bars_have_the_height_of_their_values() -> None:
    assert bars([0, 4, 8, 16], 10, 2) == ["   █", " ▄██"]
    assert bars([1, 2, 3, 4], 2, 1) == ["▆█"]
    assert bars([], 5, 1) == [""]
    assert bars([0, 0], 5, 1) == [""]


def test_a_chart_fits_its_columns() -> None:
    meter = Meter(0)
    for second in range(1, 200):
        meter.add(second * 1000, second * 100_000)
        meter.add_latency(second * 100)
        meter.sample(second)
    for columns in (39, 79, 199):
        lines = chart("producing to t", meter, columns)
        assert max(map(len, lines)) <= columns
        assert lines[:3] == [
            "producing to t",
            "199 s, 19,900,000 records",
            "199,000 records/s, at most 199,000",
        ]
    assert any(text.startswith("p99 ") for text in lines)
    assert chart("t", Meter(0), 40) == ["t"]


def test_without_a_terminal_there_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    meter = Meter(0)
    with Chart("t", meter, wanted=True) as shown:
        for second in range(1, 12):
            meter.add(10, 1000)
            meter.sample(second)
            shown.show()
    printed = capsys.readouterr()
    assert printed.out == ""
    assert [each.split(":")[0] for each in printed.err.splitlines()] == ["5 s", "10 s"]
    with Chart("t", meter, wanted=False) as silent:
        silent.show()
    assert capsys.readouterr().err == ""
