"""Which target offsets the records of a transaction got, without a report for each of them.

A report costs as much as the record. The producer is idempotent, so that records of a partition get
ascending offsets in their order: if the first and the last of n records got offsets that are n - 1
apart, there is nothing between them, and each offset is known. Something is between them only if
another program writes to the topic, or a marker of an earlier transaction came late; then the
records have to be written again with a report for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ottla.mirroring.offset_map import Run, runs_of


class Piece:
    """Records of one partition that were written one after the other. `sources` are their
    offsets at the source, ascending.
    """

    __slots__ = ("reported", "sources")

    def __init__(self, sources: Sequence[int]) -> None:
        self.sources = sources
        self.reported: list[int] = []
        """Target offsets, in order: of each record, or of the first and the last."""

    def runs(self) -> list[Run] | None:
        """None if the offsets between those that were reported are not known."""
        targets: Sequence[int] = self.reported
        count = len(self.sources)
        if len(targets) < count:
            first, last = targets[0], targets[-1]
            if last - first != count - 1:
                return None
            targets = range(first, last + 1)
        assert len(targets) == count
        return runs_of(self.sources, targets)


def joined(runs: Iterable[Run]) -> list[Run]:
    """Runs that follow each other on both sides as one."""
    found: list[Run] = []
    for run in runs:
        if found:
            last = found[-1]
            steps = run.source - last.source, run.target - last.target
            if steps == (last.records, last.records):
                found[-1] = Run(last.source, last.target, last.records + run.records)
                continue
        found.append(run)
    return found
