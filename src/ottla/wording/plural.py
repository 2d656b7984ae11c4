"""Numbers of things in words."""

from __future__ import annotations


def plural(number: int, noun: str) -> str:
    """`1 partition`, `2,000 partitions`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
