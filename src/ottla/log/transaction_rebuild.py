"""Builds the transaction index of a large segment again, off the event loop: see `index_rebuild`.

A transaction may have begun in an earlier segment. The latest snapshot before the segment has it;
without one the batches since the log's start are read.
"""

import os
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from ottla.log import names
from ottla.log.errors import damaged_error
from ottla.log.index_rebuild import IndexRebuild
from ottla.log.open_file import OpenFile
from ottla.log.producer_state import ProducerState
from ottla.log.producers import load_snapshot, replay_batches
from ottla.log.scan import in_portions, scan_headers
from ottla.log.segment import Segment
from ottla.log.transaction_index import TransactionIndex
from ottla.records.errors import CorruptBatchError, InvalidRecordError


class _Source(NamedTuple):
    """A segment as it is when the rebuild begins."""

    base_offset: int
    path: str
    size_bytes: int


def transaction_rebuild(
    folder: str, snapshots: list[int], segments: list[Segment], number: int, why: Exception
) -> IndexRebuild:
    """The rebuild of the transaction index of `segments[number]`; `snapshots` and `segments` are
    those of the log. Raises ApiError KAFKA_STORAGE_ERROR.
    """
    segment, before = segments[number], segments[: number + 1]
    state = load_snapshot(folder, snapshots, segment.base_offset, segments)
    if state is None:
        state = ProducerState(segments[0].base_offset)
    first = bisect_right(before, state.end_offset, key=lambda each: each.base_offset) - 1
    sources = [
        _Source(each.base_offset, each.path, each.size_bytes) for each in before[max(first, 0) :]
    ]
    scratch = segment.scratch()
    path = scratch.path_of(names.TXN_INDEX)
    scratch.txn_index = TransactionIndex(path, segment.base_offset)
    return IndexRebuild(
        segment,
        segment.path,
        why,
        build=partial(_build, scratch, state, sources),
        take=partial(segment.take_transaction_index, scratch),
        scratch_paths=[path],
        # Otherwise it may have read the files of others.
        is_current=lambda: segments[: number + 1] == before,
    )


def _build(
    scratch: Segment,
    state: ProducerState,
    sources: Sequence[_Source],
    is_stale: Callable[[], bool],
) -> None:
    scratch.reset_transaction_index()
    for source in sources:
        is_own = source.base_offset == scratch.base_offset
        if is_own:
            state.end_offset = scratch.base_offset
        if not source.size_bytes:
            continue
        file = OpenFile(source.path, os.O_RDONLY)
        batches = in_portions(scan_headers(file, 0, source.size_bytes), is_stale)
        try:
            replay_batches(state, file, batches, scratch if is_own else None)
        except (CorruptBatchError, InvalidRecordError) as error:
            raise damaged_error(source.path, error) from None
    scratch.store_transaction_index()
