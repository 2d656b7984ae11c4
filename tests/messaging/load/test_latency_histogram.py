"""Percentiles of many latencies are near enough to the real ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.messaging.load.latency_histogram import LatencyHistogram


def histogram(*latencies: int) -> LatencyHistogram:
    made = LatencyHistogram()
    for each in latencies:
        made.add(each)
    return made


def test_small_numbers_are_exact() -> None:
    found = histogram(*range(1, 101))
    assert [found.percentile(each) for each in (1, 50, 99, 100)] == [1, 50, 99, 100]
    assert (found.count, found.max_us) == (100, 100)


def test_nothing_has_no_percentile() -> None:
    assert LatencyHistogram().percentile(50) is None


def test_a_clock_that_is_behind_gives_no_negative_latency() -> None:
    assert histogram(-5, -300).percentile(50) == 0


def test_histograms_are_merged() -> None:
    one, other = histogram(1, 2), histogram(500)
    one.merge(other)
    assert (one.count, one.max_us, one.percentile(50)) == (3, 500, 2)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=200), st.integers(1, 99))
def test_a_percentile_is_at_most_a_bucket_below_the_real_one(
    latencies: list[int], percent: int
) -> None:
    real = sorted(latencies)[max(-(-len(latencies) * percent // 100) - 1, 0)]
    found = histogram(*latencies).percentile(percent)
    assert found is not None
    assert real * (1 - 1 / 64) - 1 <= found <= real
