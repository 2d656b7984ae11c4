"""Runs of records in one state, as they are written, stored and read (KIP-932)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from operator import attrgetter
from typing import Final, NamedTuple

from ottla.share.record_state import RecordState

_last_of = attrgetter("last")

MANY: Final = 4
"""One of so many changes: then it is quicker to combine them all."""


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
    batches = list(batches)
    if _are_combined(batches, start_offset):
        return batches  # most writes
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


def updated(
    state: Sequence[StateBatch], batches: Sequence[StateBatch], start_offset: int
) -> Sequence[StateBatch]:
    """What `combined` makes of both. The state is in order and without overlap, so that only those
    of its batches are looked at that the others touch: most writes change few of many.
    """
    if MANY * len(batches) > len(state):
        return combined([*state, *batches], start_offset)
    changes = combined(batches, start_offset)
    at = bisect_left(state, start_offset, key=_last_of)
    result: list[StateBatch] = []
    if at < len(state) and state[at].first < start_offset:
        result.append(state[at]._replace(first=start_offset))
        at += 1
    number = 0
    while number < len(changes):
        touched = [changes[number]]
        number += 1
        begin = bisect_left(state, touched[0].first, lo=at, key=_last_of)
        _add_all(result, state[at:begin])
        at = begin
        last = touched[0].last
        if result and result[-1].last >= touched[0].first:
            touched.append(result.pop())
            last = max(last, touched[-1].last)
        while True:
            if at < len(state) and state[at].first <= last:
                touched.append(state[at])
                at += 1
            elif number < len(changes) and changes[number].first <= last:
                touched.append(changes[number])
                number += 1
            else:
                break
            last = max(last, touched[-1].last)
        for piece in combined(touched, -1):
            add_joined(result, piece)
    _add_all(result, state[at:])
    return result


def _add_all(result: list[StateBatch], state: Sequence[StateBatch]) -> None:
    """Batches that need no joining but of the first with the one before."""
    if state:
        add_joined(result, state[0])
        result.extend(state[1:])


def _are_combined(batches: Sequence[StateBatch], start_offset: int) -> bool:
    """Whether `combined` would change nothing."""
    if not batches:
        return True
    last, state, count = batches[0].first - 2, RecordState.AVAILABLE, 0
    for first, its_last, its_state, its_count in batches:
        if first <= last or (first == last + 1 and its_state is state and its_count == count):
            return False
        last, state, count = its_last, its_state, its_count
    return batches[0].first >= start_offset


def are_in_order(batches: Sequence[StateBatch]) -> bool:
    """Whether no batch begins before the end of the one before it."""
    return all(before.last < batch.first for before, batch in pairwise(batches))


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
