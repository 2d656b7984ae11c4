"""Reads the keys of records near one, of the same producer: they tell how it chooses partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from ottla.journey.near_keys import OFFSETS_BEFORE, keys_of_producer
from ottla.log.log import Log
from ottla.log.open_file import OpenFile
from ottla.log.scan import scan_batches
from ottla.records.header import BatchHeader, Buffer
from ottla.tracing.key_search import storage_refusals

MAX_BYTES: Final = 1 << 20


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
    return keys_of_producer(_batches(file, position, end), producer_id)


def _batches(file: OpenFile, position: int, end: int) -> Iterator[tuple[BatchHeader, Buffer]]:
    for at, header, batch in scan_batches(file, position, end):
        if at - position >= MAX_BYTES:
            return
        yield header, batch
