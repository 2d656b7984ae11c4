import pytest

from ottla.config.error import ConfigError
from ottla.config.offset_reset import (
    BY_DURATION,
    EARLIEST,
    LATEST,
    OffsetReset,
    duration_ms,
    parse_offset_reset,
)


# As java.time.Duration.parse of a JDK 17 reads them.
@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("PT20.345S", 20_345),
        ("PT15M", 900_000),
        ("PT10H", 36_000_000),
        ("P2D", 172_800_000),
        ("P2DT3H4M", 183_840_000),
        ("pt1s", 1_000),
        ("+PT1H-30M", 1_800_000),
        ("-PT-1S", 1_000),
        ("PT0,5S", 500),
        ("PT0.0009S", 0),
        ("PT0S", 0),
    ],
)
def test_durations(text: str, expected_ms: int) -> None:
    assert duration_ms(text) == expected_ms


@pytest.mark.parametrize(
    "text",
    ["", "P", "PT", "P1DT", "1H", "PT1", "PT-1S", "-PT1S", "P1W", "PT1S ", "P9999999999999999D",
     "PT1M1H", "PT-0.5S"],
)  # fmt: skip
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ConfigError):
        duration_ms(text)


def test_the_three_ways() -> None:
    assert parse_offset_reset("earliest") == OffsetReset(EARLIEST)
    assert parse_offset_reset("latest") == OffsetReset(LATEST)
    assert parse_offset_reset("by_duration:PT5M") == OffsetReset(BY_DURATION, 300_000)
    for text in ("none", "Latest", "by_duration", "by_duration:", "latest:PT1S"):
        with pytest.raises(ConfigError):
            parse_offset_reset(text)
