"""What `maintain` did to a table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Maintained:
    """What was done to one table, or would be done.

    `deleted`: files that no version within `kept_hours` refers to.
    """

    table: str
    files_before: int
    files_after: int
    deleted: int
    kept_hours: float
