import pytest
from bench.figures.latency import percentile


@pytest.mark.parametrize(("share", "value"), [(0.0, 1.0), (0.5, 51.0), (0.99, 100.0), (1.0, 100.0)])
def test_percentiles(share: float, value: float) -> None:
    assert percentile([float(number) for number in range(100, 0, -1)], share) == value
