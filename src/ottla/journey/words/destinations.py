"""The kinds of destinations, as people call them."""

from typing import Final

NAMES: Final = {
    "delta": "Delta",
    "parquet": "Parquet files",
    "json": "JSON files",
    "postgresql": "PostgreSQL",
    "topic": "a topic",
}
