"""The kinds of destinations, as people call them."""

from typing import Final

_NAMES: Final = {
    "delta": "Delta",
    "parquet": "Parquet files",
    "json": "JSON files",
    "postgresql": "PostgreSQL",
    "topic": "a topic",
}


def name_of(kind: str) -> str:
    """The name of a kind; one that is not known here has its own."""
    return _NAMES.get(kind, kind)
