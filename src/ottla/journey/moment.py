"""The form of a moment in the journey's document."""

from typing import Any

from ottla.journey.offset_history import When

Document = dict[str, Any]


def moment(when: When) -> Document:
    """`since_ms` and `until_ms`, null for an unknown side."""
    return {"since_ms": when.since_ms, "until_ms": when.until_ms, "exact": when.is_exact}
