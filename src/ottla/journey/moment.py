"""A moment as the journey's document has it."""

from typing import Any

from ottla.journey.lookup import When

Document = dict[str, Any]


def moment(when: When) -> Document:
    """`since_ms` and `until_ms`, null for a side of which nothing is known."""
    return {"since_ms": when.since_ms, "until_ms": when.until_ms, "exact": when.is_exact}
