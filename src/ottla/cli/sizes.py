"""Sizes and rates for people: `1.2 GB`, and `10MB` as bytes."""

from __future__ import annotations

import re
from typing import Final

from ottla.cli.failures import UsageFailed

UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB")
STEP: Final = 1000
WORDS: Final = {
    "": 1,
    "b": 1,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
    "kib": 1024,
    "mib": 1024**2,
    "gib": 1024**3,
}
FORM: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.ASCII | re.IGNORECASE)


def size_text(size_bytes: int) -> str:
    """Three digits at least from 1 kB on: `999 B`, `1.5 kB`, `12.0 MB`, `1.2 TB`."""
    size = float(size_bytes)
    for unit in UNITS:
        # What rounds to 1000 is shown in the next unit.
        if size < STEP - 0.05 or unit == UNITS[-1]:
            return f"{size_bytes} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= STEP
    raise AssertionError("the last unit returns")


def parse_size(option: str, text: str) -> int:
    """`10MB`, `512KiB` or a number of bytes. Raises UsageFailed."""
    found = FORM.fullmatch(text.strip())
    factor = WORDS.get(found[2].lower()) if found else None
    size = int(float(found[1]) * factor) if found and factor else 0
    if size < 1:
        raise UsageFailed(
            f"{option}: {text!r} is not a size.",
            f"For example: {option} 10MB; also B, kB, GB, KiB, MiB, GiB.",
        )
    return size


class Size(int):
    """A number of bytes that tables show with its unit, aligned as a number."""

    def __str__(self) -> str:
        return size_text(int(self))


def shown_size(size_bytes: int | None) -> Size | None:
    """For a cell of a table; None is unknown."""
    return None if size_bytes is None else Size(size_bytes)
