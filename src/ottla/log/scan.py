"""Scans the batches of a segment file with few system calls."""

import os
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from ottla.log.open_file import OpenFile
from ottla.log.page_cache import Pread
from ottla.records.errors import CorruptBatchError
from ottla.records.header import (
    HEADER_BYTES,
    OVERHEAD_BYTES,
    BatchHeader,
    read_header,
)

LOOKUP_CHUNK_BYTES: Final = 8 * 1024
"""Two index intervals: most lookups end within one read."""
WHOLE_CHUNK_BYTES: Final = 1024 * 1024
PORTION: Final = 500
"""Batches between two pauses of a thread: one or two milliseconds."""
PAUSE_S: Final = 0.0005
"""The event loop's thread gets Python's lock, and does not wait until it is taken."""


def scan_headers(
    file: OpenFile,
    position: int,
    end: int,
    chunk_bytes: int = LOOKUP_CHUNK_BYTES,
    pread: Pread = os.pread,
) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each batch from `position` on that ends at or before `end`.

    Skips the records, without reading them if batches are larger than a chunk. Raises
    CorruptBatchError for bytes that are not a header, and what `pread` raises.
    """
    chunk: bytes | bytearray = b""
    chunk_at = position
    while position + HEADER_BYTES <= end:
        at = position - chunk_at
        if at + HEADER_BYTES > len(chunk):
            wanted = min(chunk_bytes, end - position)
            chunk, chunk_at, at = pread(file.fd, wanted, position), position, 0
        header = read_header(chunk, at)
        if position + header.size_bytes > end:
            return
        yield position, header
        position += header.size_bytes


def scan_batches(
    file: OpenFile, position: int, end: int
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Position, header and bytes of each whole batch from `position` to `end`.

    Leaves out a batch that extends past `end`. Raises CorruptBatchError for bytes that are not a
    header; the caller checks the checksums.
    """
    chunk, chunk_at = memoryview(b""), position
    while position + HEADER_BYTES <= end:
        at = position - chunk_at
        wanted = HEADER_BYTES
        if at + OVERHEAD_BYTES <= len(chunk):
            wanted = OVERHEAD_BYTES + int.from_bytes(chunk[at + 8 : at + 12], signed=True)
            if wanted < HEADER_BYTES:
                raise CorruptBatchError(f"at {position}: a batch cannot be {wanted} bytes long")
        if position + wanted > end:
            return
        if at + wanted > len(chunk):
            size = min(max(WHOLE_CHUNK_BYTES, wanted), end - position)
            chunk, chunk_at = memoryview(os.pread(file.fd, size, position)), position
            if len(chunk) < wanted:
                return
            continue
        header = read_header(chunk, at)
        yield position, header, chunk[at : at + header.size_bytes]
        position += header.size_bytes


def in_portions(
    batches: Iterator[tuple[int, BatchHeader]], is_stale: Callable[[], bool]
) -> Iterator[tuple[int, BatchHeader]]:
    """The same batches, for a thread beside the event loop's. They end soon if nobody needs them
    any more.
    """
    while not is_stale():
        some = list(islice(batches, PORTION))
        if not some:
            return
        yield from some
        if len(some) == PORTION:
            time.sleep(PAUSE_S)
