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
from typing import Final, NamedTuple

MAX_CHAIN: Final = 128
NARROW: Final = "H"
WIDE: Final = "Q"
"""Typecodes of arrays."""
MAX_NARROW: Final = 2**16 - 1


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
    """The runs of one partition. A mirror that has caught up makes dozens of runs a second, each
    behind the one before at the source, and behind it and a marker at the target. Such a chain is
    kept as its first offsets and the records of each run, about 3 bytes a run.
    """

    def __init__(self) -> None:
        self._sources = array("q")
        self._targets = array("q")
        """Of the first run of each chain."""
        self._chains: list[array[int]] = []
        """The records of each run."""
        self._source_end = 0
        self._target_end = 0
        """Behind the last run."""
        self._is_whole = False
        """Whether it is known where the mirror began."""

    def __len__(self) -> int:
        return sum(map(len, self._chains))

    def begin(self, source: int, target: int) -> None:
        """The mirror begins (again) with this source offset; it writes from `target` on."""
        self._drop_chains(len(self._chains))
        self._append(Run(source, target, 0))
        self._is_whole = True

    def extend(self, runs: Iterable[Run]) -> None:
        """Records that were written later. Those that are known are skipped: a reader may see
        an entry of the map twice.
        """
        for run in runs:
            if not self._chains or run.source > self._source_end:
                self._append(run)
            elif run.source == self._source_end:
                self._follow(run)

    def _follow(self, run: Run) -> None:
        """A run that begins at the source where the last one ends."""
        chain, markers = self._chains[-1], run.target - self._target_end
        records = chain[-1] + run.records if markers == 0 else run.records
        is_wide = records > MAX_NARROW and chain.typecode == NARROW
        if markers == 0:
            if is_wide:
                chain = self._chains[-1] = array(WIDE, chain)
            chain[-1] = records
        elif markers == 1 and not is_wide and len(chain) < MAX_CHAIN:
            chain.append(records)
        else:
            self._append(run)
            return
        self._note_end(run)

    def _append(self, run: Run) -> None:
        """A chain of its own."""
        self._sources.append(run.source)
        self._targets.append(run.target)
        self._chains.append(array(NARROW if run.records <= MAX_NARROW else WIDE, [run.records]))
        self._note_end(run)

    def _note_end(self, run: Run) -> None:
        self._source_end = run.source + run.records
        self._target_end = run.target + run.records

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
        target = self._targets[at]
        for records in self._chains[at]:
            if step < records:
                return target + step
            step -= records
            target += records + 1
        return self._targets[at + 1] if at + 1 < len(self._targets) else self._target_end

    @property
    def source_end(self) -> int:
        """Behind the last record that is known."""
        return self._source_end

    def is_after_all(self, source: int) -> bool:
        """Whether no record at or after this source offset is known."""
        return bool(self._chains) and source >= self._source_end

    def forget_before(self, source: int) -> None:
        """Frees the chains that lie whole before this source offset, which the source has
        removed.
        """
        self._drop_chains(max(0, bisect_right(self._sources, source) - 1))

    def _drop_chains(self, count: int) -> None:
        """The first ones."""
        del self._sources[:count], self._targets[:count], self._chains[:count]
