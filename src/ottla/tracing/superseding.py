"""Finds the record that supersedes another one when the log is compacted: a later one with its key.

Aborted records do not count: the cleaner drops them without looking at their keys. Nor does one at
or beyond the last stable offset, where the cleaner stops: its transaction may abort, or the record
may be lost with its leader.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.log.log import Log
from ottla.tracing.key_search import find_later
from ottla.tracing.segment_search import BUDGET_BYTES
from ottla.tracing.transaction_search import find_marker


class Superseding(NamedTuple):
    """`by`: the first later record that counts; `undecided`: that of one whose fate is open.

    The log was searched up to `searched_to`.
    """

    by: int | None
    searched_to: int
    undecided: int | None = None


async def find_superseding(
    log: Log, key: bytes, offset: int, last_stable_offset: int, budget_bytes: int = BUDGET_BYTES
) -> Superseding:
    """Raises ApiError KAFKA_STORAGE_ERROR or CORRUPT_MESSAGE if the log cannot be read."""
    after = offset
    while True:
        later = await find_later(log, key, after, budget_bytes)
        if later.header is None:
            return Superseding(None, later.searched_to)
        if later.offset >= last_stable_offset:
            return Superseding(None, later.offset, later.offset)
        budget_bytes = later.left_bytes
        if not later.header.is_transactional:
            return Superseding(later.offset, later.offset)
        marker, _, budget_bytes = await find_marker(log, later.header, budget_bytes)
        if marker is None and budget_bytes <= 0:
            return Superseding(None, later.offset)
        # Compaction removes the marker of a committed transaction in time, but aborted records
        # before it.
        if marker is None or marker.is_commit:
            return Superseding(later.offset, later.offset)
        after = later.header.last_offset
