"""The worker's part of compaction: decides which records stay, and writes them. Reads and writes
files only, and never touches a log's state.

The rules are those of Kafka's Cleaner and MemoryRecords.filterTo:

- Of the records with the same key, the last one stays. Records without a key are removed.
- A tombstone stays for `delete.retention.ms` after the first cleaning that finds it, which stores
  that time in its batch (the delete horizon, KIP-534). Then it is removed.
- Offsets do not change. A batch that loses records keeps its first and last offset.
- A batch that loses all records stays as a bare header if it has the last sequence of an active
  producer, or the last offset of this round, so that neither is lost.

Batches of transactions are kept whole, with their markers.
"""

import hashlib
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ottla.log import names
from ottla.log.open_file import OpenFile, OpenFiles
from ottla.log.scan import scan_batches
from ottla.log.segment import Segment
from ottla.records.build import rebuild_batch
from ottla.records.header import BatchHeader, read_header
from ottla.records.iterate import iterate_records
from ottla.records.record import Record

MAX_KEYS: Final = 400_000
"""How many keys one round can hold, at about 150 bytes each. The next round continues after them.
"""
_RAW_KEY_BYTES: Final = 16
_DIGEST_BYTES: Final = 20
_WRITE_BYTES: Final = 1024 * 1024

KeyOffsets = Mapping[bytes, int]


@dataclass(frozen=True, slots=True)
class Source:
    """A segment to clean, captured on the event loop."""

    base_offset: int
    size_bytes: int
    path: str
    txn_index_path: str
    index_interval_bytes: int

    @classmethod
    def of(cls, segment: Segment) -> "Source":
        return cls(
            segment.base_offset,
            segment.size_bytes,
            segment.path,
            segment.path_of(names.TXN_INDEX),
            segment.index_interval_bytes,
        )

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
    """What a round depends on. `last_offsets`: those of the active producers."""

    now_ms: int
    delete_retention_ms: int
    end_offset: int
    last_offsets: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Group:
    """One cleaned segment, in files with the suffix `.cleaned`."""

    base_offset: int
    size_bytes: int


def map_keys(
    sources: Sequence[Source], first_dirty: int, end_offset: int, max_keys: int = MAX_KEYS
) -> tuple[dict[bytes, int], int]:
    """The last offset of each key from `first_dirty` on, and the offset up to which that is
    complete.
    """
    keys: dict[bytes, int] = {}
    mapped_to = first_dirty
    bases = [source.base_offset for source in sources[1:]] + [end_offset]
    for source, next_offset in zip(sources, bases, strict=True):
        if next_offset <= first_dirty:
            continue
        for _, header, batch in source.batches():
            if header.next_offset <= first_dirty or header.is_control:
                continue
            for record in iterate_records(batch, header):
                if record.key is None or record.offset < first_dirty:
                    continue
                keys[short_key(record.key)] = record.offset
            mapped_to = header.next_offset
            if len(keys) >= max_keys:
                return keys, mapped_to
        mapped_to = next_offset
    return keys, mapped_to


def short_key(key: bytes) -> bytes:
    """The key, or a digest that replaces a long one."""
    if len(key) <= _RAW_KEY_BYTES:
        return key
    return hashlib.blake2b(key, digest_size=_DIGEST_BYTES).digest()


def clean_group(
    folder: str, sources: Sequence[Source], keys: KeyOffsets, mapped_to: int, rules: Kept
) -> Group:
    """Write the remaining records of `sources` into one `.cleaned` segment, synced. Raises
    OSError.
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
    for source in sources:
        for _, header, batch in source.batches():
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
    cleaned.seal()
    _copy_txn_indexes(sources, cleaned.path_of(names.TXN_INDEX))
    modified_ns = os.stat(sources[-1].path).st_mtime_ns
    os.utime(cleaned.path, ns=(modified_ns, modified_ns))
    for suffix in (names.LOG, names.INDEX, names.TIME_INDEX):
        file = OpenFile(cleaned.path_of(suffix))
        os.fsync(file.fd)
    return Group(base_offset, cleaned.size_bytes)


def keep_batch(
    header: BatchHeader, batch: memoryview, keys: KeyOffsets, mapped_to: int, rules: Kept
) -> bytes | memoryview | None:
    """What remains of a batch: the batch itself, a smaller one, a bare header, or None."""
    if header.is_control or header.is_transactional or header.base_offset >= mapped_to:
        return batch
    horizon_ms = header.delete_horizon_ms
    tombstones_go = horizon_ms is not None and rules.now_ms >= horizon_ms
    kept: list[Record] = []
    for record in iterate_records(batch, header):
        if record.offset < mapped_to:
            if record.key is None or record.offset < keys.get(short_key(record.key), -1):
                continue
            if record.value is None and tombstones_go:
                continue
        kept.append(record)
    if not kept:
        is_last = rules.last_offsets.get(header.producer_id) == header.last_offset
        if (header.producer_id >= 0 and is_last) or header.next_offset == rules.end_offset:
            return rebuild_batch(header, ())
        return None
    if horizon_ms is None and any(record.value is None for record in kept):
        horizon_ms = rules.now_ms + rules.delete_retention_ms
    elif len(kept) == header.count:
        return batch
    return rebuild_batch(header, kept, delete_horizon_ms=horizon_ms)


def _copy_txn_indexes(sources: Sequence[Source], path: str) -> None:
    """Concatenate the transaction indexes: transactions are kept whole, with absolute offsets."""
    present = [each.txn_index_path for each in sources if os.path.exists(each.txn_index_path)]
    if not present:
        return
    with open(path, "wb") as joined:
        for each in present:
            with open(each, "rb") as file:
                shutil.copyfileobj(file, joined)
        joined.flush()
        os.fsync(joined.fileno())
