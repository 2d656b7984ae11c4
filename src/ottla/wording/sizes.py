"""Sizes for people: `1.2 GB`."""

from __future__ import annotations

from typing import Final

UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB")
STEP: Final = 1000


def size_text(size_bytes: int) -> str:
    """Three digits at least from 1 kB on: `999 B`, `1.5 kB`, `12.0 MB`, `1.2 TB`."""
    size = float(size_bytes)
    for unit in UNITS:
        # What rounds to 1000 is shown in the next unit.
        if size < STEP - 0.05 or unit == UNITS[-1]:
            return f"{size_bytes} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= STEP
    raise AssertionError("the last unit returns")


class Size(int):
    """A number of bytes that tables show with its unit, aligned as a number."""

    def __str__(self) -> str:
        return size_text(int(self))


def shown_size(size_bytes: int | None) -> Size | None:
    """For a cell of a table; None is unknown."""
    return None if size_bytes is None else Size(size_bytes)
