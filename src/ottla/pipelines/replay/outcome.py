"""What became of rejected rows that were sent again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_REASONS: Final = 100


@dataclass(frozen=True, slots=True)
class ReplayedReason:
    """Rejected rows of one reason: how many records were sent again, and how many were not."""

    reason: str
    rows: int
    sent: int
    kept: int


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of the rejected rows of a pipeline; in a dry run, what would.

    `rows`: those that were due, of which `sent` are in the target or left out by the query, `kept`
    failed again, and `not_found` have no record that could be read. `written`: the rows that the
    target got. `reasons` by the former reason, `kept_reasons` by the new one: at most MAX_REASONS,
    the most frequent first. `finished`: the rows written by a former replay that was cut off.
    """

    table: str
    rows: int = 0
    sent: int = 0
    kept: int = 0
    not_found: int = 0
    written: int = 0
    reasons: tuple[ReplayedReason, ...] = ()
    kept_reasons: tuple[tuple[str, int], ...] = ()
    finished: int | None = None
