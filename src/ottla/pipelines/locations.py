"""Locations as people see them: Hadoop writes a local path as `file:/lake/flights`."""

from __future__ import annotations

from typing import Final

_LOCAL: Final = "file:"


def shown_location(location: str) -> str:
    """Return a local location as a path, and any other one as it is.

    A URL of a local file may have an empty host: `file:///lake/flights`.
    """
    if not location.startswith(_LOCAL):
        return location
    path = location.removeprefix(_LOCAL)
    return "/" + path.lstrip("/") if path.startswith("//") else path
