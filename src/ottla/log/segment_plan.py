"""Which segments a log has, and when retention removes each. Pure.

Retention removes whole segments, the oldest first and none above the high watermark (see
`log.retention`): a segment goes no earlier than those before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ottla.log.config import LogConfig
from ottla.log.expiry import expires_ms, missing_bytes


class SegmentFacts(NamedTuple):
    """A segment of the log, oldest first. `next_offset`: where the next one begins, or the log
    ends. `largest_ms`: its largest timestamp; None: it is not known now.
    """

    base_offset: int
    next_offset: int
    size_bytes: int
    largest_ms: int | None


class PlannedSegment(NamedTuple):
    """`removed_ms`: the time after which retention removes it for its age; None: it does not, or
    the time of a segment up to it is not known. `missing_bytes`: how much the log must grow until
    retention removes it for the log's size; 0: it may now, None: it does not. `is_active`: it is
    written to.
    """

    base_offset: int
    next_offset: int
    size_bytes: int
    largest_ms: int | None
    removed_ms: int | None
    missing_bytes: int | None
    is_active: bool


def planned_segments(segments: Iterable[SegmentFacts], config: LogConfig) -> list[PlannedSegment]:
    """The same with what retention does."""
    known = list(segments)
    left_bytes = sum(each.size_bytes for each in known)
    found: list[PlannedSegment] = []
    removed_ms: int | None = 0
    for number, each in enumerate(known):
        is_active = number + 1 == len(known)
        left_bytes -= each.size_bytes
        own_ms = None if each.largest_ms is None else expires_ms(each.largest_ms, config)
        missing = missing_bytes(left_bytes, config)
        if is_active and each.size_bytes == 0:
            own_ms = missing = None
        # One that is removed later, or not at all, holds those after it.
        held = removed_ms is None or own_ms is None
        removed_ms = None if held else max(removed_ms or 0, own_ms or 0)
        found.append(
            PlannedSegment(
                *each, removed_ms, None if missing is None else max(0, missing), is_active
            )
        )
    return found
