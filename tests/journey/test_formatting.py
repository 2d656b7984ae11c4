from datetime import timedelta, timezone

import pytest

from ottla.journey.formatting import format_bytes, format_elapsed, format_moment, format_span


def test_times_have_milliseconds() -> None:
    assert format_moment(0) == "1970-01-01 00:00:00.000 UTC"
    assert format_moment(1_700_000_000_007) == "2023-11-14 22:13:20.007 UTC"
    east = timezone(timedelta(hours=2), "EAST")
    assert format_moment(1_700_000_000_007, east) == "2023-11-15 00:13:20.007 EAST"
    assert format_moment(-1) == "1969-12-31 23:59:59.999 UTC"
    assert format_moment(2**62) == f"{2**62} ms"


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (604_800_000, "7 days"),
        (86_400_000, "1 day"),
        (5_400_000, "90 minutes"),
        (1000, "1 second"),
        (1500, "1500 ms"),
        (0, "0 ms"),
    ],
)
def test_durations_use_their_largest_whole_unit(ms: int, said: str) -> None:
    assert format_span(ms) == said


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (2**30, "1.0 GiB"), (2**60, "1048576.0 TiB")],
)
def test_sizes(count: int, said: str) -> None:
    assert format_bytes(count) == said


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (12, "12 ms"),
        (1399, "1.3 s"),
        (245_000, "4 min 5 s"),
        (11_400_000, "3 h 10 min"),
        (90_000_000, "1 day 1 h"),
        (187_200_000, "2 days 4 h"),
    ],
)
def test_how_long_it_took(ms: int, said: str) -> None:
    assert format_elapsed(ms) == said
