"""The hint for a setting whose value has a unit: `retention.ms=7d`.

Kafka's settings are plain numbers, and the unit is the end of their name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from typing import Final

from ottla.wording.errors import ReportedError

_VALUE: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?) *([A-Za-z]+)")
_TIME_UNITS: Final = {
    "millisecond": 1,
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
}
"""In milliseconds."""
_SHORT: Final = {
    "ms": "millisecond",
    "s": "second",
    "sec": "second",
    "m": "minute",
    "min": "minute",
    "h": "hour",
    "d": "day",
    "w": "week",
}
_SIZES: Final = {"k": 1, "m": 2, "g": 3, "t": 4}
"""Powers of 1,024, or of 1,000 before a B alone."""
_TIMES: Final = {"ms": "millisecond", "seconds": "second", "minutes": "minute", "hours": "hour"}
"""The last words of names, and their unit."""


@contextmanager
def unit_hint_for(settings: Mapping[str, str]) -> Iterator[None]:
    """A ReportedError that leaves the block without a hint gets that for one of the settings."""
    try:
        yield
    except ReportedError as failure:
        if failure.hint is None:
            hints = (unit_hint(name, value) for name, value in settings.items())
            failure.hint = next(filter(None, hints), None)
        raise


def unit_hint(name: str, value: str) -> str | None:
    """`retention.ms is a number of milliseconds; 7 days is 604800000`; None if the value has no
    unit.
    """
    found = _VALUE.fullmatch(value.strip())
    if found is None:
        return None
    number, unit = Fraction(found[1]), found[2].lower()
    last = name.rpartition(".")[2]
    if last == "bytes":
        return _size_hint(name, number, unit)
    own = _TIMES.get(last)
    given = _SHORT.get(unit) or unit.removesuffix("s")
    if own is None or given not in _TIME_UNITS:
        return None
    said = f"{name} is a number of {own}s"
    exact = number * _TIME_UNITS[given] / _TIME_UNITS[own]
    if exact.denominator != 1:
        return said
    return f"{said}; {_shown(number)} {given}{'' if number == 1 else 's'} is {exact}"


def _size_hint(name: str, number: Fraction, unit: str) -> str | None:
    said = f"{name} is a number of bytes"
    if unit in ("b", "byte", "bytes"):
        return said
    power, rest = _SIZES.get(unit[0]), unit[1:]
    if power is None or rest not in ("", "b", "ib"):
        return None
    letter = unit[0].upper() if rest != "b" or unit[0] != "k" else "k"
    word = f"{letter}B" if rest == "b" else f"{letter}iB"
    exact = number * (1_000 if rest == "b" else 1_024) ** power
    if exact.denominator != 1:
        return said
    return f"{said}; {_shown(number)} {word} is {exact}"


def _shown(number: Fraction) -> str:
    return str(number) if number.denominator == 1 else f"{float(number):g}"
