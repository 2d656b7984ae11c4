"""Reads the keys of records near one, of the same producer: they tell how it chooses partitions."""

from __future__ import annotations

import asyncio
from typing import Final

from ottla.log.log import Log
from ottla.log.open_file import OpenFile
from ottla.log.scan import scan_batches
from ottla.records.errors import CorruptBatchError, InvalidRecordError
from ottla.records.iterate import iterate_records
from ottla.tracing.key_search import storage_refusals

MAX_KEYS: Final = 256
"""Different ones; with two partitions 10 exclude a coincidence."""
MAX_RECORDS: Final = 5_000
"""That are read to find them: 30 ms, in a thread."""
MAX_BYTES: Final = 1 << 20
OFFSETS_BEFORE: Final = 1_000
"""Where the reading begins, if the segment has so many."""


async def near_keys(log: Log, offset: int, producer_id: int) -> frozenset[bytes]:
    """Keys of records around the offset whose batches have this producer id (-1: none).

    Raises ApiError KAFKA_STORAGE_ERROR.
    """
    segment = log.segments[log.segment_number(offset)]
    with storage_refusals():
        found = log.find(segment, max(offset - OFFSETS_BEFORE, segment.base_offset))
        if found is None:
            return frozenset()
        file, end = segment.file(), segment.size_bytes
        return await asyncio.to_thread(_read, file, found.position, end, producer_id)


def _read(file: OpenFile, position: int, end: int, producer_id: int) -> frozenset[bytes]:
    """Raises OSError."""
    keys: set[bytes] = set()
    left = MAX_RECORDS
    try:
        for at, header, batch in scan_batches(file, position, end):
            if at - position >= MAX_BYTES or left <= 0 or len(keys) >= MAX_KEYS:
                break
            if header.is_control or header.producer_id != producer_id:
                continue
            for record in iterate_records(batch, header):
                left -= 1
                if record.key is not None:
                    keys.add(record.key)
                if left <= 0 or len(keys) >= MAX_KEYS:
                    break
    except (CorruptBatchError, InvalidRecordError):
        pass  # what comes after is unknown, and the record itself may be sound
    return frozenset(keys)
