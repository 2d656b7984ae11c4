"""How long a measurement runs, which loads are refused, and what the exit code says."""

from __future__ import annotations

import click
import pytest

from ottla.cli.bench.run import DEFAULT_FOR_S, duration, end
from ottla.cli.main import main
from ottla.messaging.load.meter import Meter


@pytest.mark.parametrize(
    ("records", "for_s", "expected"),
    [(None, None, DEFAULT_FOR_S), (5, None, None), (None, 3.0, 3.0), (5, 3.0, 3.0)],
)
def test_ten_seconds_if_nothing_else_limits_it(
    records: int | None, for_s: float | None, expected: float | None
) -> None:
    assert duration(records, for_s) == expected


@pytest.mark.parametrize(("size", "shown"), [("100.1MB", "100.1 MB"), ("1GB", "1.0 GB")])
def test_values_that_no_broker_takes(
    capsys: pytest.CaptureFixture[str], size: str, shown: str
) -> None:
    assert main(["bench", "produce", "t", "--size", size]) == 2
    assert f"--size must be at most 100MB, not {shown}." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("errors", "is_interrupted", "code"),
    [({}, True, 130), ({"full.": 1_200}, False, 1), ({"full": 1_200}, True, 130)],
)
def test_the_exit_code(
    capsys: pytest.CaptureFixture[str],
    errors: dict[str, int],
    is_interrupted: bool,
    code: int,
) -> None:
    meter = Meter(0.0)
    meter.errors.update(errors)
    with pytest.raises(click.exceptions.Exit) as ended:
        end(meter, is_interrupted)
    assert ended.value.exit_code == code
    assert ("1,200 not delivered: full.\n" in capsys.readouterr().err) == bool(errors)


def test_a_measurement_without_errors_just_ends(capsys: pytest.CaptureFixture[str]) -> None:
    end(Meter(0.0), False)
    assert capsys.readouterr().err == ""
