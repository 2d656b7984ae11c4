"""Which aborted transactions overlap what a fetch under read_committed returns (KIP-98).

The consumer skips the batches of a listed producer from the listed first offset on, up to the
marker. So the list may name too many transactions, but none may be missing.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from ottla.log.errors import CorruptIndexError, storage_error
from ottla.log.file_range import FileRange
from ottla.log.log import Log
from ottla.log.page_cache import pread_cached
from ottla.log.transaction_check import offsets_to_check
from ottla.log.transaction_index import AbortedTransaction

SEGMENTS_AHEAD: Final = 4
"""A transaction that was open for longer waits for the disk on the loop."""


def aborted_transactions(
    log: Log, found: FileRange, offset: int, up_to_offset: int, *, wait: bool = True
) -> list[AbortedTransaction]:
    """Those that overlap the records in `found`, which was read from `offset` up to
    `up_to_offset`, in the order of their markers.

    Raises ApiError KAFKA_STORAGE_ERROR. If it must not `wait` for the disk, raises NotCachedError:
    `find_work` then reads what it needs.
    """
    listed: list[AbortedTransaction] = []
    if not found.size_bytes:
        return listed
    bound: int | None = None
    for number in range(log.segment_number(offset), len(log.segments)):
        if log.segments[number].txn_index is None:
            continue
        if bound is None:
            bound = log.upper_bound(found, up_to_offset, wait=wait)
        entries, is_complete = _overlapping(log, number, offset, bound, wait=wait)
        listed += entries
        if is_complete:
            break
    return listed


def _overlapping(
    log: Log, number: int, offset: int, up_to_offset: int, *, wait: bool
) -> tuple[list[AbortedTransaction], bool]:
    """`TransactionIndex.overlapping`; a damaged index is rebuilt first."""
    log.check_transaction_index(number, wait=wait)
    index = log.segments[number].txn_index
    assert index is not None
    try:
        try:
            return index.overlapping(offset, up_to_offset, os.pread if wait else pread_cached)
        except CorruptIndexError as error:
            log.rebuild_transaction_index(number, error)
            return index.overlapping(offset, up_to_offset)
    except OSError as error:
        raise storage_error(f"cannot read {index.path}", error) from None


def find_work(log: Log, offset: int) -> Callable[[], None]:
    """Read what `aborted_transactions` may read, in a worker thread, so that it is in the page
    cache: the indexes and, if they are not checked yet, the batches that they name. Raises ApiError
    KAFKA_STORAGE_ERROR.
    """
    number = log.segment_number(offset)
    paths: list[str] = []
    works: list[Callable[[], None]] = []
    for segment in log.segments[number : number + SEGMENTS_AHEAD]:
        index = segment.txn_index
        if index is not None:
            paths.append(index.path)
            if not index.is_checked:
                named = partial(offsets_to_check, index.path, segment.base_offset)
                works.append(segment.find_all_work(named))
    return partial(_read_all, paths, works)


def _read_all(paths: list[str], works: list[Callable[[], None]]) -> None:
    """Missing files are left to `aborted_transactions`, which rebuilds them."""
    for path in paths:
        with suppress(OSError), open(path, "rb") as file:
            while file.read(1 << 20):
                pass
    for work in works:
        work()
