"""Names of columns, and texts, in Spark's SQL."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Return a column's name as SQL takes it, whatever characters it has."""
    return f"`{name.replace('`', '``')}`"


def text(value: str) -> str:
    """Return a text as SQL takes it, whatever characters it has."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
