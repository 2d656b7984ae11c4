"""Many numbers in few words."""

from __future__ import annotations

from collections.abc import Iterable


def spans(numbers: Iterable[int], separator: str = ",") -> str:
    """Sorted, neighbours joined: "0-2,5"."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return separator.join(
        f"{first}" if first == last else f"{first}-{last}" for first, last in found
    )
