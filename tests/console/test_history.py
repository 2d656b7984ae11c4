"""What the console has seen while it ran, and how it is bounded."""

from __future__ import annotations

import pytest

from ottla.console.history import (
    MAX_SAMPLES,
    MAX_SERIES,
    History,
    Trend,
    is_growing,
    rates,
    trend_of,
)


def test_each_series_has_a_number_for_each_sample() -> None:
    history = History()
    history.add(1000, {"lag": {"a": 5}})
    history.add(2000, {"lag": {"b": 7}})
    history.add(3000, {"lag": {"a": 9}, "age": {"a": 20}})
    assert history.read("lag", "a") == ([1000, 2000, 3000], [5, None, 9])
    assert history.read("lag", "b") == ([1000, 2000, 3000], [None, 7, None])
    assert history.read_kinds(["age", "none"], "a") == (
        [1000, 2000, 3000],
        [[None, None, 20], [None, None, None]],
    )
    assert history.trend("lag", "a") == Trend(2.0, 2.0)
    assert history.trend("lag", "b") is None


def test_samples_and_series_are_bounded() -> None:
    history = History()
    history.add(0, {"lag": {"gone": 1}})
    for number in range(1, 2 * MAX_SAMPLES):
        history.add(number, {"lag": {"a": number}})
    times, numbers = history.read("lag", "a")
    assert len(times) == len(numbers) <= MAX_SAMPLES
    assert (times[-1], numbers[-1]) == (2 * MAX_SAMPLES - 1, 2 * MAX_SAMPLES - 1)
    assert times == numbers
    assert set(history.read("lag", "gone")[1]) == {None}
    history.add(10**6, {"end": {str(number): 1 for number in range(MAX_SERIES + 5)}})
    assert history.read("end", str(MAX_SERIES - 1))[1][-1] == 1
    assert history.read("end", str(MAX_SERIES))[1][-1] is None
    # A series that has ended makes room.
    for number in range(2 * MAX_SAMPLES):
        history.add(10**6 + number, {"end": {"late": number}})
    assert history.read("end", "late")[1][-1] == 2 * MAX_SAMPLES - 1


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([1, 2, 2, 5], True),
        ([9, 1, 2, None, 2, 5, 6], True),
        ([5, 5, 5, 5], False),
        ([1, 9, 2, 10], False),
        ([1, 2, 3], False),
        ([], False),
    ],
)
def test_what_grows_has_not_fallen_meanwhile(numbers: list[int | None], expected: bool) -> None:
    assert is_growing(numbers) is expected


def test_rates_are_those_between_samples() -> None:
    assert rates([0, 10_000, 20_000, 30_000, 40_000], [0, 50, None, 70, 10]) == [
        None, 5.0, None, None, None,
    ]  # fmt: skip
    assert trend_of([0, 0], [1, 2]) is None
    assert trend_of([], []) is None
