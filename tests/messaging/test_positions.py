"""Places in time."""

import pytest

from ottla.messaging.positions import PositionError, parse_start, parse_time
from ottla.messaging.start import Start

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "at_ms"),
    [
        ("1234", 1234),
        (str(2**63 - 1), 2**63 - 1),
        ("500ms", NOW_MS - 500),
        ("15m", NOW_MS - 15 * 60_000),
        ("2h", NOW_MS - 7_200_000),
        ("3d", NOW_MS - 3 * 86_400_000),
        ("99999999d", 0),
        ("2023-11-14T22:13:20Z", NOW_MS),
        ("2023-11-14T22:13:20.250+00:00", NOW_MS + 250),
        ("1960-01-01T00:00Z", 0),
    ],
)
def test_times(text: str, at_ms: int) -> None:
    assert parse_time("--from", text, NOW_MS) == at_ms


def test_time_without_a_zone_is_local(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "Etc/GMT-2")
    time.tzset()
    try:
        assert parse_time("--from", "2023-11-15T00:13:20", NOW_MS) == NOW_MS
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "text", ["15x", "2023-13-01", "", "1e5", "-5", str(2**63), "9" * 5000, "9" * 5000 + "d"]
)
def test_an_invalid_time_lists_the_allowed_forms(text: str) -> None:
    with pytest.raises(PositionError) as failure:
        parse_time("--to-time", text, NOW_MS)
    assert "--to-time" in failure.value.message
    assert "15m" in (failure.value.hint or "")


def test_starts() -> None:
    assert parse_start("Beginning", NOW_MS) == Start("beginning")
    assert parse_start("latest", NOW_MS) == Start("end")
    assert parse_start("1m", NOW_MS) == Start("time", NOW_MS - 60_000)
    assert [Start("end").reset, Start("beginning").reset] == ["latest", "earliest"]


def test_unknown_start_says_what_is_allowed() -> None:
    with pytest.raises(PositionError, match="'soon' is not beginning, end or a time"):
        parse_start("soon", NOW_MS)


@pytest.mark.parametrize("text", ["5", "1700000000"])
def test_a_start_that_is_an_offset_or_seconds_is_refused(text: str) -> None:
    """It would be a time in 1970, and everything would be read."""
    with pytest.raises(PositionError, match=f"--from: {text} is not a time in ms") as failure:
        parse_start(text, NOW_MS)
    assert failure.value.hint is not None
    assert f"--offset {text}. For seconds: --from {text}000" in failure.value.hint
    assert parse_start(f"{NOW_MS}", NOW_MS) == Start("time", NOW_MS)
    assert parse_start("0", NOW_MS) == Start("time", 0)
