"""Bugs to plant in the log's compiled modules: only in a process that runs their sources.

`python -m tests.log.model.planted_in_compiled MAX FOLDER [rare]` with OTTLA_PURE_PYTHON=1 prints
for each bug the first seed below MAX that finds it, or -1.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from tests.log.model.planted import Patch, first_seed, nothing

from ottla.accelerator import why_from_source
from ottla.log.log import Log
from ottla.log.offset_index import OffsetIndex
from ottla.log.producer_state import ProducerState
from ottla.log.segment import Found, Segment
from ottla.log.time_index import TimeIndex


def a_gap_is_answered_with_the_batch_before(patch: Patch) -> None:
    """A look-up among recent appends does not look where the batch ends."""
    right = Segment.find

    def find(self: Segment, offset: int, *, wait: bool = True) -> Found | None:
        found = right(self, offset, wait=wait)
        recent, positions = self._recent_offsets, self._recent_positions
        if found is not None and recent and positions and offset > recent[0]:
            _, header = next(self.headers(found.position))
            before = bisect_left(positions, found.position) - 1
            if header.base_offset > offset and before >= 0:
                return Found(positions[before], found.position - positions[before])
        return found

    patch.setattr(Segment, "find", find)


def a_stop_after_a_cut_has_no_snapshot(patch: Patch) -> None:
    """An orderly stop forgets the producers of a log that was cut (KAFKA-5435)."""
    right = Log.close

    def close(self: Log) -> None:
        self.cuts = 0
        right(self)

    patch.setattr(Log, "close", close)


def offsets_outlive_a_truncation(patch: Patch) -> None:
    """The offset index keeps the positions of what is gone."""
    patch.setattr(OffsetIndex, "truncate_to", nothing)


def times_outlive_a_truncation(patch: Patch) -> None:
    """The time index keeps the times of what is gone."""
    patch.setattr(TimeIndex, "truncate_to", nothing)


def markers_count_at_once(patch: Patch) -> None:
    """A transaction is stable before its marker is committed."""

    def first_unstable_offset(self: ProducerState, _: int) -> int | None:
        return next(iter(self._ongoing), None)

    patch.setattr(ProducerState, "first_unstable_offset", first_unstable_offset)


def a_failed_roll_leaves_its_files(patch: Patch) -> None:
    """The segment that the disk refused is there after a restart."""
    patch.setattr(Log, "discard", nothing)


def a_half_written_batch_stays(patch: Patch) -> None:
    """A failed append leaves its bytes in the file."""
    patch.setattr(Segment, "_cut", nothing)


def sequences_are_not_checked(patch: Patch) -> None:
    """A duplicate, a gap and a zombie are appended."""
    patch.setattr(ProducerState, "check", nothing)


IN_COMPILED: Final[tuple[Callable[[Patch], None], ...]] = (
    a_gap_is_answered_with_the_batch_before,
    a_stop_after_a_cut_has_no_snapshot,
    offsets_outlive_a_truncation,
    times_outlive_a_truncation,
    markers_count_at_once,
    a_half_written_batch_stays,
    sequences_are_not_checked,
)
RARE_IN_COMPILED: Final[tuple[Callable[[Patch], None], ...]] = (a_failed_roll_leaves_its_files,)
"""Found only in hundreds of lives."""

if __name__ == "__main__":
    assert why_from_source() is not None, "compiled callers would not notice the patches"
    logging.disable()
    with tempfile.TemporaryDirectory(dir=sys.argv[2]) as folder:
        for plant in RARE_IN_COMPILED if "rare" in sys.argv else IN_COMPILED:
            with pytest.MonkeyPatch.context() as patch:
                print(plant.__name__, first_seed(plant, patch, int(sys.argv[1]), Path(folder)))
