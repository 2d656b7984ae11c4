"""Moments as they are said."""

from ottla.journey.words.clock import NO_TIME, Clock


def test_without_a_publishing_time_the_clock_shows_dates() -> None:
    clock = Clock({"published": None})
    assert clock.at(0) == "1970-01-01 00:00:00.000"
    assert clock.moment(None) == NO_TIME
    assert clock.after({"since_ms": 1, "until_ms": 1, "exact": True}) == ""


def test_a_clock_leaves_out_the_day_of_the_publishing() -> None:
    clock = Clock({"published": {"timestamp_ms": 1000}})
    assert clock.at(2000) == "00:00:02.000"
    assert clock.after({"since_ms": 1500, "until_ms": 1500, "exact": True}) == "  +500 ms"
