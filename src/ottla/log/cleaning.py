"""The worker's part of compaction: decides which records stay, and writes them. Reads and writes
files only, and never touches a log's state.

The rules are those of Kafka's Cleaner and MemoryRecords.filterTo:

- Of the records with the same key, the last one stays. Records without a key are removed.
- A tombstone stays for `delete.retention.ms` after the first cleaning that finds it, which stores
  that time in its batch (the delete horizon, KIP-534). Then it is removed.
- Offsets do not change. A batch that loses records keeps its first and last offset.
- A batch that loses all records stays as a bare header if it has the last sequence of an active
  producer, or the last offset of this round, so that neither is lost.
- Records of aborted transactions are removed, and do not count as last ones of their keys.
- A marker stays until no batch of its transaction is left, and from then on for
  `delete.retention.ms`, with the delete horizon in its batch: a consumer that has read the records
  also reads the marker (KIP-534). An active producer's last marker stays: it has the last epoch.
- The transaction index lists what was aborted and had batches in this round.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ottla.log import names
from ottla.log.cleaned_transactions import CleanedTransactions
from ottla.log.errors import sync_error
from ottla.log.last_offsets import LastOffsets
from ottla.log.open_file import OpenFile, OpenFiles
from ottla.log.scan import scan_batches
from ottla.log.segment import Segment
from ottla.log.transaction_index import AbortedTransaction, TransactionIndex
from ottla.records.build import rebuild_batch
from ottla.records.control import read_end_marker
from ottla.records.header import BatchHeader, read_header
from ottla.records.iterate import iterate_records
from ottla.records.record import Record

MAX_KEYS: Final = 400_000
"""How many keys one round can hold, at about 150 bytes each. The next round continues after them.
"""
_WRITE_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Source:
    """A segment to clean, captured on the event loop."""

    base_offset: int
    size_bytes: int
    path: str
    index_interval_bytes: int
    txn_indexes: tuple[TransactionIndex, ...] = ()
    """This segment's and those of the segments after it, where they exist: an aborted transaction
    is in the index of the segment that has its marker."""

    @classmethod
    def of(cls, segment: Segment, txn_indexes: Sequence[TransactionIndex] = ()) -> "Source":
        """`txn_indexes` are copies, which the loop does not change."""
        return cls(
            segment.base_offset,
            segment.size_bytes,
            segment.path,
            segment.index_interval_bytes,
            tuple(txn_indexes),
        )

    def aborted_before(self, offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that began before `offset` and have their markers here or in
        later segments. Raises CorruptIndexError.
        """
        found: list[AbortedTransaction] = []
        for index in self.txn_indexes:
            entries, is_complete = index.overlapping(self.base_offset, offset)
            found += entries
            if is_complete:
                break
        return found

    def batches(self) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        """Its batches. Opens the file while iterating. Raises FileNotFoundError once it is
        deleted.
        """
        file = OpenFile(self.path, os.O_RDONLY)
        for each in scan_batches(file, 0, self.size_bytes):
            time.sleep(0)  # long work: let the event loop's thread run first
            yield each


@dataclass(frozen=True, slots=True)
class Kept:
    """What a round depends on. `last_offsets` and `last_epochs` are those of the active producers;
    a producer without records here, only with a marker, has offset -1.
    """

    now_ms: int
    delete_retention_ms: int
    end_offset: int
    last_offsets: Mapping[int, int]
    last_epochs: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Group:
    """One cleaned segment, in files with the suffix `.cleaned`."""

    base_offset: int
    size_bytes: int
    has_aborted: bool = False
    """It has a transaction index."""


def map_keys(
    keys: LastOffsets,
    sources: Sequence[Source],
    first_dirty: int,
    end_offset: int,
    max_keys: int = MAX_KEYS,
) -> int:
    """Adds the last offset of each key from `first_dirty` on; returns the offset up to which that
    is complete.
    """
    mapped_to = first_dirty
    transactions = CleanedTransactions()
    bases = [source.base_offset for source in sources[1:]] + [end_offset]
    for source, next_offset in zip(sources, bases, strict=True):
        if next_offset <= first_dirty:
            continue
        transactions.add_aborted(source.aborted_before(next_offset))
        for _, header, batch in source.batches():
            if header.is_control:
                _marker_read(transactions, header, batch)
                continue
            if transactions.batch_read(header) or header.next_offset <= first_dirty:
                continue
            for record in iterate_records(batch, header):
                if record.key is None or record.offset < first_dirty:
                    continue
                keys[record.key] = record.offset
            mapped_to = header.next_offset
            if len(keys) >= max_keys:
                return mapped_to
        mapped_to = next_offset
    return mapped_to


def _marker_read(transactions: CleanedTransactions, header: BatchHeader, batch: memoryview) -> bool:
    marker = read_end_marker(batch)
    return transactions.marker_read(header, None if marker is None else marker.type)


def clean_group(
    folder: str,
    sources: Sequence[Source],
    keys: LastOffsets,
    mapped_to: int,
    rules: Kept,
    transactions: CleanedTransactions,
    next_offset: int,
) -> Group:
    """Write the remaining records of `sources` into one `.cleaned` segment, synced. `next_offset`
    is where they end, `transactions` those of the round. Raises OSError, CorruptIndexError.
    """
    files = OpenFiles(1)
    base_offset = sources[0].base_offset
    cleaned = Segment.create(
        folder,
        base_offset,
        files,
        now_ms=rules.now_ms,
        index_interval_bytes=sources[0].index_interval_bytes,
        suffix=names.CLEANED,
    )
    buffers: list[bytes | memoryview] = []
    headers: list[BatchHeader] = []
    size_bytes = 0
    bases = [source.base_offset for source in sources[1:]] + [next_offset]
    for source, end_offset in zip(sources, bases, strict=True):
        transactions.add_aborted(source.aborted_before(end_offset))
        for _, header, batch in source.batches():
            if header.is_control:
                kept = keep_marker(header, batch, rules, transactions)
            elif transactions.batch_read(header):
                kept = _bare_header(header, rules)
            else:
                kept = keep_batch(header, batch, keys, mapped_to, rules)
            if kept is None:
                continue
            buffers.append(kept)
            headers.append(read_header(kept))
            size_bytes += len(kept)
            if size_bytes >= _WRITE_BYTES:
                cleaned.append(buffers, size_bytes, headers)
                buffers, headers, size_bytes = [], [], 0
    if headers:
        cleaned.append(buffers, size_bytes, headers)
    for entry in transactions.kept:
        cleaned.add_aborted(entry)
    transactions.kept = []
    cleaned.seal()
    modified_ns = os.stat(sources[-1].path).st_mtime_ns
    os.utime(cleaned.path, ns=(modified_ns, modified_ns))
    suffixes = [names.LOG, names.INDEX, names.TIME_INDEX]
    if cleaned.txn_index is not None:
        suffixes.append(names.TXN_INDEX)
    for suffix in suffixes:
        path = cleaned.path_of(suffix)
        file = OpenFile(path)
        try:
            os.fsync(file.fd)
        except OSError as error:
            raise sync_error(f"cannot sync {path}", error) from None
    return Group(base_offset, cleaned.size_bytes, cleaned.txn_index is not None)


def keep_batch(
    header: BatchHeader, batch: memoryview, keys: LastOffsets, mapped_to: int, rules: Kept
) -> bytes | memoryview | None:
    """What remains of a batch that was not aborted: the batch itself, a smaller one, a bare header,
    or None.
    """
    if header.base_offset >= mapped_to:
        return batch
    horizon_ms = header.delete_horizon_ms
    tombstones_go = horizon_ms is not None and rules.now_ms >= horizon_ms
    kept: list[Record] = []
    for record in iterate_records(batch, header):
        if record.offset < mapped_to:
            if record.key is None or record.offset < keys.get(record.key, -1):
                continue
            if record.value is None and tombstones_go:
                continue
        kept.append(record)
    if not kept:
        return _bare_header(header, rules)
    if horizon_ms is None and any(record.value is None for record in kept):
        horizon_ms = rules.now_ms + rules.delete_retention_ms
    elif len(kept) == header.count:
        return batch
    return rebuild_batch(header, kept, delete_horizon_ms=horizon_ms)


def keep_marker(
    header: BatchHeader, batch: memoryview, rules: Kept, transactions: CleanedTransactions
) -> bytes | memoryview | None:
    """What remains of a control batch: itself, with a delete horizon once its transaction is empty,
    a bare header, or None.
    """
    if not _marker_read(transactions, header, batch):
        return batch
    horizon_ms = header.delete_horizon_ms
    records = list(iterate_records(batch, header))
    if not records or (horizon_ms is not None and rules.now_ms >= horizon_ms):
        return _bare_header(header, rules)
    if horizon_ms is not None:
        return batch
    return rebuild_batch(
        header, records, delete_horizon_ms=rules.now_ms + rules.delete_retention_ms
    )


def _bare_header(header: BatchHeader, rules: Kept) -> bytes | None:
    """The header alone if the round must not lose what it says, else None."""
    producer_id = header.producer_id
    last_offset = rules.last_offsets.get(producer_id) if producer_id >= 0 else None
    if last_offset is None:
        is_last = False
    elif last_offset >= 0:
        is_last = last_offset == header.last_offset
    else:
        is_last = header.is_control and rules.last_epochs.get(producer_id) == header.producer_epoch
    if is_last or header.next_offset == rules.end_offset:
        return rebuild_batch(header, ())
    return None
