"""Whether a transaction index says what the batches say.

A wrong entry makes a consumer under read_committed return aborted records or skip committed ones,
and compaction remove records; Kafka checks only that no entry ends before its segment
(TransactionIndex.sanityCheck). So an index that a file held is compared with the log once, before
its first use: each entry must end with a marker of its producer, begin with a batch of it, and name
a last stable offset that can have been one.
"""

from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import Final

from ottla.log.errors import CorruptIndexError
from ottla.log.leader_epochs import LARGEST_OFFSET
from ottla.log.segment import Segment
from ottla.log.transaction_index import AbortedTransaction, TransactionIndex
from ottla.protocol.errors import ApiError
from ottla.records.errors import CorruptBatchError
from ottla.records.header import BatchHeader

MAX_COMPARED: Final = 300
"""Entries that are compared with the log; those after them only with each other. It takes 50 µs
each, on the event loop."""
MAX_CHECKED: Final = 20_000
"""Entries of an index that is checked on the event loop: 30 ms. A larger one is built again in a
thread, which needs no check."""
SEGMENTS_COMPARED: Final = 4
"""Transactions that were open for longer are rare."""


def check_index(segments: Sequence[Segment], number: int, *, wait: bool = True) -> None:
    """Check the transaction index of `segments[number]`.

    Raises CorruptIndexError if it must be rebuilt, ApiError KAFKA_STORAGE_ERROR, and NotCachedError
    if it must not `wait` for the disk.
    """
    segment = segments[number]
    index = segment.txn_index
    if index is None or index.is_checked:
        return
    before = AbortedTransaction(0, -1, segment.base_offset - 1, -1)
    entries = list(index.entries())
    for count, entry in enumerate(entries):
        is_ordered = (
            entry.producer_id >= 0
            and before.last_offset < entry.last_offset
            and 0 <= entry.first_offset < entry.last_offset
            and before.last_stable_offset <= entry.last_stable_offset <= entry.last_offset + 1
        )
        if not is_ordered or (
            count < MAX_COMPARED and not _is_true(segments, number, entry, wait=wait)
        ):
            raise CorruptIndexError(f"{index.path} has an entry that cannot be right")
        before = entry
    first_open = _first_of_later(segments[number + 1 : number + 1 + SEGMENTS_COMPARED])
    for entry in reversed(entries):
        # The later ones that had begun were open when this one ended.
        if first_open <= entry.last_offset and entry.last_stable_offset > first_open:
            raise CorruptIndexError(f"{index.path} has an entry that cannot be right")
        first_open = min(first_open, entry.first_offset)
    index.is_checked = True


def _first_of_later(segments: Sequence[Segment]) -> int:
    """The first offset of the transactions that were aborted in these segments."""
    first = LARGEST_OFFSET
    for segment in segments:
        if segment.txn_index is not None:
            with suppress(CorruptIndexError):  # it is found when it is used
                if segment.txn_index.load() > MAX_CHECKED:
                    continue
                starts = [each.first_offset for each in segment.txn_index.entries()]
                first = min([first, *starts])
    return first


def _is_true(
    segments: Sequence[Segment], number: int, entry: AbortedTransaction, *, wait: bool
) -> bool:
    marker = _batch_with(segments[number], entry.last_offset, wait=wait)
    if marker is None or not marker.is_control or marker.producer_id != entry.producer_id:
        return False
    first = _batch_in(segments, entry.first_offset, wait=wait)
    if first is not None and not (
        first.base_offset == entry.first_offset
        and first.producer_id == entry.producer_id
        # The marker that ends a transaction may bump the epoch (KIP-890).
        and first.producer_epoch in (marker.producer_epoch, marker.producer_epoch - 1)
    ):
        return False
    if entry.last_stable_offset == entry.last_offset + 1:
        return True
    open_one = _batch_in(segments, entry.last_stable_offset, wait=wait)
    return open_one is None or (
        open_one.base_offset == entry.last_stable_offset and open_one.is_transactional
    )


def _batch_in(segments: Sequence[Segment], offset: int, *, wait: bool) -> BatchHeader | None:
    """The batch with this offset; None if retention or compaction has removed it."""
    if offset < segments[0].base_offset:
        return None
    number = bisect_right(segments, offset, key=lambda each: each.base_offset) - 1
    return _batch_with(segments[number], offset, wait=wait)


def _batch_with(segment: Segment, offset: int, *, wait: bool) -> BatchHeader | None:
    try:
        found = segment.find(offset, wait=wait)
        if found is None:
            return None
        _, header = next(segment.headers(found.position))
    except (CorruptBatchError, StopIteration) as error:
        raise CorruptIndexError(f"{segment.path}: {error}") from None
    return header if header.base_offset <= offset else None


def offsets_to_check(path: str, base_offset: int) -> list[int]:
    """The offsets that `check_index` looks up, as far as the file can be read; in any thread."""
    try:
        entries = list(islice(TransactionIndex(path, base_offset).entries(), MAX_COMPARED))
    except (CorruptIndexError, ApiError, OSError):
        return []
    return [offset for entry in entries for offset in (entry.first_offset, entry.last_offset)]
