"""Sizes, times and durations as text. Pure; times are UTC unless a zone is given."""

from datetime import UTC, datetime, tzinfo
from typing import Final

_SPANS: Final = (
    (86_400_000, "day"),
    (3_600_000, "hour"),
    (60_000, "minute"),
    (1000, "second"),
)
_UNITS: Final = ("KiB", "MiB", "GiB", "TiB")


def format_moment(ms: int, zone: tzinfo = UTC) -> str:
    """A time to the millisecond: `2026-01-31 12:00:00.123 UTC`; a time outside the calendar as a
    number.
    """
    try:
        moment = datetime.fromtimestamp(ms // 1000, zone)
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{ms % 1000:03} {moment.tzname()}"


def format_span(ms: int) -> str:
    """A duration in its largest whole unit: `7 days`, `90 minutes`, `1500 ms`."""
    for size, name in _SPANS:
        if ms >= size and ms % size == 0:
            count = ms // size
            return f"{count} {name}" if count == 1 else f"{count} {name}s"
    return f"{ms} ms"


def format_bytes(count: int) -> str:
    """`512 B`, `1.0 GiB`: with one decimal from 1 KiB."""
    if abs(count) < 1024:
        return f"{count} B"
    size, unit = count / 1024, 0
    while abs(size) >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f} {_UNITS[unit]}"


def format_elapsed(ms: int) -> str:
    """How long something took: `12 ms`, `1.3 s`, `4 min 5 s`, `3 h 10 min`, `2 days 4 h`."""
    if ms < 1000:
        return f"{ms} ms"
    if ms < 60_000:
        return f"{ms // 100 / 10:.1f} s"
    seconds = ms // 1000
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    if seconds < 86_400:
        return f"{seconds // 3600} h {seconds % 3600 // 60} min"
    days = seconds // 86_400
    return f"{days} {'day' if days == 1 else 'days'} {seconds % 86_400 // 3600} h"


def one_of(noun: str, first: int, last: int) -> str:
    """`version 7`, or a bound: `one of version 5 to 7`."""
    return f"{noun} {last}" if first == last else f"one of {noun} {first} to {last}"
