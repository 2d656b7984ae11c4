"""How the figures of the pipelines are computed."""

import pytest
from bench.figures.delta_job import row
from bench.measure import ClientError

from bench.figures import delta

FOUND = {"batches": [[100, 9000], [100, 500], [100, 1000], [300, 1000]]}


def test_the_warm_up_batches_do_not_count() -> None:
    assert delta.rate(FOUND, 1) == 200
    assert delta.batch_time(FOUND, 1) == 1000


def test_too_few_batches_raise() -> None:
    with pytest.raises(ClientError, match="only 4 batches, of which 3 warm up"):
        delta.rate(FOUND, 3)


def test_the_share_is_ottla_over_plain_and_the_order_alternates() -> None:
    comparison = delta.Comparison("bulk", "rows/s", 1.1, more_is_better=True)
    order: list[str] = []

    def run(job: str) -> float:
        order.append(job)
        return {"plain": 100.0, "ottla": 120.0}[job]

    found = [comparison.measure(run) for _ in range(2)]

    assert found[0] == {"bulk, plain": 100, "bulk, ottla": 120, "bulk, share": 1.2} == found[1]
    assert order == ["plain", "ottla", "ottla", "plain"]
    assert comparison.measures[2].limit == 1.1


def test_bad_rows_are_measured_first_as_often_as_second() -> None:
    figure = delta.BadRows()

    assert [one.name for one in figure.measures] == list(figure.names)
    assert figure.measures[2].limit == 0.9
    assert figure.runs % 2 == 0


def test_other_ways_have_their_own_names() -> None:
    names = ("clean rows", "bad rows", "bad over clean")
    comparison = delta.Comparison(
        "bad-row", "rows/s", 0.9, more_is_better=True, ways=("clean", "bad"), names=names
    )

    found = [comparison.measure({"clean": 100.0, "bad": 90.0}.__getitem__) for _ in range(2)]

    assert found[0] == {"clean rows": 100, "bad rows": 90, "bad over clean": 0.9} == found[1]


def test_a_row_is_json_of_the_schema() -> None:
    assert row(7, "n") == b'{"id":7,"name":"row 7","amount":1.0,"note":"n"}'
