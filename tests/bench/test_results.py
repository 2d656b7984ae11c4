from pathlib import Path

import pytest
from bench.measure import KAFKA, OTTLA, Measure
from bench.results import Row, number, rows, spread

from bench import results

RATE = Measure("rate", "MB/s", more_is_better=True, ratio=1.0)
START = Measure("start", "s", more_is_better=False, ratio=1.0, limit=0.5)


def test_the_ratio_is_of_medians() -> None:
    row = Row(RATE, [10.0, 300.0, 200.0], [100.0, 90.0, 999.0])
    assert row.ratio == pytest.approx(2.0)
    assert row.met is True


@pytest.mark.parametrize(
    ("ottla", "kafka", "met"),
    [([0.4], [1.9], True), ([0.6], [1.9], False), ([0.4], [0.3], False), ([0.4], [], True)],
)
def test_a_goal_with_limit_and_ratio_requires_both(
    ottla: list[float], kafka: list[float], met: bool
) -> None:
    assert Row(START, ottla, kafka).met is met


def test_without_values_there_is_no_verdict() -> None:
    row = Row(RATE, [], [1.0])
    assert row.ratio is None
    assert row.met is None
    assert Row(Measure("cpu", "s/GB", more_is_better=False), [1.0], [1.0]).goal() == ""


def test_goals_in_words() -> None:
    assert Row(START, [], []).goal() == "≤ 0.5 s"
    assert Row(RATE, [], []).goal() == "≥ 1.0 × Kafka"


def test_rows_find_each_broker_by_name() -> None:
    found = rows([RATE], {OTTLA: {"rate": [1.0]}, KAFKA: {"rate": [2.0], "other": [9.0]}})
    assert (found[0].ottla, found[0].kafka) == ([1.0], [2.0])
    assert rows([RATE], {})[0].ottla == ()


@pytest.mark.parametrize(
    ("value", "text"),
    [(1234567.8, "1,234,568"), (241.04, "241.0"), (3.14159, "3.14"), (0.5, "0.500")],
)
def test_numbers_have_about_three_significant_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_spread() -> None:
    assert spread([]) == "–"
    assert spread([2.0]) == "2.00"
    assert spread([3.0, 1.0, 2.0]) == "2.00 (1.00–3.00)"


def test_new_runs_of_a_figure_replace_earlier_ones(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    assert results.load(file) == {}
    results.keep(file, "start", {"runs": 1})
    results.keep(file, "memory", {"runs": 2})
    results.keep(file, "start", {"runs": 3})
    assert results.load(file) == {"start": {"runs": 3}, "memory": {"runs": 2}}
