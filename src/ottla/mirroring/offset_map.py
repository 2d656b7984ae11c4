"""Which source offset has which target offset, exactly, for one partition.

A mirror writes the records of a partition in their order, so the map is a list of runs: records
whose offsets follow each other on both sides. A run ends where the source has an offset without a
record (a transaction's marker, an aborted record, a compacted gap), and where the target has one
(the mirror's own markers). MirrorMaker 2 keeps samples, and moves a group back to the sample before
its offset, so that it reads up to thousands of records again (KAFKA-12468); here it reads none.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Run(NamedTuple):
    """So many records from these offsets on. None says where the mirror began."""

    source: int
    target: int
    records: int


def runs_of(sources: Sequence[int], targets: Sequence[int]) -> list[Run]:
    """The runs of records that were written in this order; both lists ascend."""
    if not sources:
        return []
    count = len(sources)
    if sources[-1] - sources[0] == count - 1 == targets[-1] - targets[0]:
        return [Run(sources[0], targets[0], count)]
    runs: list[Run] = []
    first = 0
    for at in range(1, count + 1):
        if at == count or sources[at] != sources[at - 1] + 1 or targets[at] != targets[at - 1] + 1:
            runs.append(Run(sources[first], targets[first], at - first))
            first = at
    return runs


class OffsetMap:
    """The runs of one partition. 24 bytes a run."""

    def __init__(self) -> None:
        self._sources = array("q")
        self._targets = array("q")
        self._counts = array("q")
        self._is_whole = False
        """Whether it is known where the mirror began."""

    def __len__(self) -> int:
        return len(self._sources)

    def begin(self, source: int, target: int) -> None:
        """The mirror begins (again) with this source offset; it writes from `target` on."""
        for each in (self._sources, self._targets, self._counts):
            del each[:]
        self._append(Run(source, target, 0))
        self._is_whole = True

    def extend(self, runs: Iterable[Run]) -> None:
        """Records that were written later. Those that are known are skipped: a reader may see
        an entry of the map twice.
        """
        for run in runs:
            if self._sources and run.source < self._sources[-1] + self._counts[-1]:
                continue
            if (
                self._sources
                and run.source == self._sources[-1] + self._counts[-1]
                and run.target == self._targets[-1] + self._counts[-1]
            ):
                self._counts[-1] += run.records
            else:
                self._append(run)

    def _append(self, run: Run) -> None:
        self._sources.append(run.source)
        self._targets.append(run.target)
        self._counts.append(run.records)

    def translate(self, source: int) -> int | None:
        """The target offset of the first record at or after this source offset; after the last
        record, the offset that follows it. None if it is not known: a map whose topic was deleted
        lacks its beginning, and there may be records before its first run.
        """
        if not self._sources:
            return None
        at = bisect_right(self._sources, source) - 1
        if at < 0:
            return self._targets[0] if self._is_whole else None
        step = source - self._sources[at]
        if step < self._counts[at]:
            return self._targets[at] + step
        if at + 1 < len(self._sources):
            return self._targets[at + 1]
        return self._targets[at] + self._counts[at]

    def is_after_all(self, source: int) -> bool:
        """Whether no record at or after this source offset is known."""
        return bool(self._sources) and source >= self._sources[-1] + self._counts[-1]

    def forget_before(self, source: int) -> None:
        """Frees the runs that lie whole before this source offset, which the source has removed."""
        keep = max(0, bisect_right(self._sources, source) - 1)
        for each in (self._sources, self._targets, self._counts):
            del each[:keep]
