"""How the figures of the pipelines are computed."""

import pytest
from bench.figures.delta_job import row
from bench.measure import ClientError

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
