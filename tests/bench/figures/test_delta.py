"""How the figures of the pipelines are computed."""

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from bench.figures.delta_job import row
from bench.measure import Bench, ClientError

from bench.figures import delta

FOUND = {
    "cpu_before": 10.0,
    "batches": [[100, 9000, 30.0], [100, 500, 31.0], [100, 1000, 32.0], [300, 1000, 33.5]],
}


def test_the_warm_up_batches_do_not_count() -> None:
    assert delta.rate(FOUND, 1) == 200
    assert delta.batch_time(FOUND, 1) == 1000


def test_too_few_batches_raise() -> None:
    with pytest.raises(ClientError, match="only 4 batches, of which 3 warm up"):
        delta.rate(FOUND, 3)


def test_cpu_is_that_of_the_batches_after_the_warm_up() -> None:
    assert delta.cpu_us(FOUND, 1) == 3.5e6 / 500
    assert delta.cpu_us(FOUND, 0) == 23.5e6 / 600


def test_bad_rows_are_measured_first_as_often_as_second() -> None:
    figure = delta.BadRows()

    names = ["delta, clean batches", "delta, one bad row a batch", "delta, bad row, share"]
    assert [one.name for one in figure.measures] == names
    assert figure.measures[2].limit == 0.9
    assert figure.runs % 2 == 0


def test_a_row_is_json_of_the_schema() -> None:
    assert row(7, "n") == b'{"id":7,"name":"row 7","amount":1.0,"note":"n"}'


def test_the_class_archive_is_measured_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def seconds(job: str, address: str, environ: Mapping[str, str]) -> float:
        asked.append(environ.get("OTTLA_CLASS_ARCHIVE", "on"))
        return 15.0 if environ else 11.0

    made: list[str] = []
    monkeypatch.setattr(delta, "broker_of", lambda *_: nullcontext("address"))
    monkeypatch.setattr(delta, "fill", lambda *_: None)
    monkeypatch.setattr(delta, "make_archive", made.append)
    monkeypatch.setattr(delta, "whole_seconds", seconds)
    figure, bench = delta.ClassArchive(), Bench(None, Path(), quick=False)

    values = [figure.measure("Ottla", bench) for _ in range(2)]

    assert list(values[0].values()) == [15.0, 11.0, 4.0]
    assert values[0] == values[1]
    assert {one.name for one in figure.measures} == values[0].keys()
    assert [one.limit for one in figure.measures] == [None, None, 3.0]
    assert asked == ["off", "on", "on", "off"]
    assert made == ["address"]


def test_the_environment_of_a_job_is_added_to(monkeypatch: pytest.MonkeyPatch) -> None:
    programs: list[list[str]] = []

    def run(program: list[str], *_: Any) -> str:
        programs.append(program)
        return 'warnings\n{"rows": 1}'

    monkeypatch.setattr("bench.rdkafka.run", run)
    assert delta.run_job("ottla", {}, "address", "rows", {"NAME": "value"}) == {"rows": 1}
    assert programs[0][:2] == ["env", "NAME=value"]
