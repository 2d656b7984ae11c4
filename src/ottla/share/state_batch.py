"""Runs of records in one state, as they are written, stored and read (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple

from ottla.share.record_state import RecordState


class StateBatch(NamedTuple):
    """The records from `first` to `last` offset, both included."""

    first: int
    last: int
    state: RecordState
    delivery_count: int


def combined(batches: Iterable[StateBatch], start_offset: int) -> Sequence[StateBatch]:
    """One batch for each run of records in one state, in order, without those before the start.

    `start_offset` -1: nothing is left out. Where batches overlap, the record with more deliveries
    is the newer one, and of equal ones that in the higher state: a delivery only ever goes on
    (Kafka's PersisterStateBatchCombiner).
    """
    kept = sorted(
        batch if batch.first >= start_offset else batch._replace(first=start_offset)
        for batch in batches
        if batch.last >= start_offset
    )
    result: list[StateBatch] = []
    open_batches: list[tuple[int, int, int, StateBatch]] = []
    """Those that have begun, the newest first; ended ones are left there until they are met."""
    position = 0
    for at, first_after in _pieces(kept):
        while position < len(kept) and kept[position].first <= at:
            batch = kept[position]
            heappush(open_batches, (-batch.delivery_count, -batch.state, -batch.last, batch))
            position += 1
        while open_batches and open_batches[0][3].last < at:
            heappop(open_batches)
        if open_batches:
            newest = open_batches[0][3]
            add_joined(result, StateBatch(at, first_after - 1, newest.state, newest.delivery_count))
    return result


def _pieces(batches: Sequence[StateBatch]) -> Iterable[tuple[int, int]]:
    """First offset and the one after the last, of all pieces between the ends of batches."""
    ends = sorted({each for batch in batches for each in (batch.first, batch.last + 1)})
    return pairwise(ends)


def add_joined(result: list[StateBatch], batch: StateBatch) -> None:
    """Adds a batch behind the others, or makes the last one longer."""
    if result:
        before = result[-1]
        if before.last + 1 == batch.first and before[2:] == batch[2:]:
            result[-1] = before._replace(last=batch.last)
            return
    result.append(batch)
