"""Reads batches of a partition for a share group (KIP-932).

The data is loaded before records are handed out: what cannot be read must not be locked. Headers
alone are looked at, so that at most MAX_BATCHES of them are read at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from ottla.log.file_range import FileRange
from ottla.log.page_cache import NotCachedError
from ottla.log.transaction_index import AbortedTransaction
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.control import ControlType, read_end_marker
from ottla.records.header import HEADER_BYTES, BatchHeader, read_header
from ottla.replica.disk_reads import DiskReads
from ottla.replica.partition import Partition
from ottla.replica.partition_reader import Read
from ottla.share.acquisition import LogBatch
from ottla.storage.after_rebuild import after_rebuild

MAX_BATCHES: Final = 5_000
"""At 2 us each."""


class ReadBatches(NamedTuple):
    """Whole batches, in order."""

    data: memoryview
    batches: Sequence[LogBatch]
    ends: Sequence[int]
    """Where each batch ends in the data."""
    aborted: Sequence[LogBatch]
    """Those of aborted transactions, if only what is committed was asked for."""

    def of(self, first: int, last: int) -> memoryview:
        """The batches that have records of these offsets."""
        begin = end = 0
        for batch, batch_end in zip(self.batches, self.ends, strict=True):
            if batch.last < first:
                begin = batch_end
            if batch.first > last:
                break
            end = batch_end
        return self.data[begin:end]


async def read_batches(
    partition: Partition,
    offset: int,
    max_offsets: int,
    max_bytes: int,
    *,
    committed_only: bool,
    reads: DiskReads,
) -> ReadBatches:
    """Batches from the one with this offset on, at least one if there is one, and not many more
    than those of so many offsets.

    Raises ApiError as `PartitionReader.read`; NOT_LEADER_OR_FOLLOWER also if another broker led, or
    the log was truncated, in the meantime.
    """
    before = partition.leadership, partition.log.cuts

    async def find() -> Read:
        read = partial(
            partition.reader.read,
            offset,
            max_bytes=max_bytes,
            min_one_batch=True,
            committed_only=committed_only,
        )
        try:
            return read(wait=False)
        except NotCachedError:
            for work in partition.reader.find_works(offset, committed_only=committed_only):
                await reads.run(work)
            return read(wait=True)

    found = await after_rebuild(find)
    data = await _load(found.range, reads)
    if (partition.leadership, partition.log.cuts) != before:
        raise ApiError(ErrorCode.not_leader_or_follower)
    headers, ends = _headers(data, offset + max_offsets)
    aborted = _aborted(data, headers, ends, found.aborted) if found.aborted else []
    batches = [LogBatch(each.base_offset, each.last_offset) for each in headers]
    return ReadBatches(data, batches, ends, aborted)


async def _load(where: FileRange, reads: DiskReads) -> memoryview:
    if not where.size_bytes:
        return memoryview(b"")
    begun = where.begin(reads.buffers)
    if isinstance(begun, memoryview):
        return begun
    await reads.run(begun.finish)
    return begun.data


def _headers(data: memoryview, end_offset: int) -> tuple[list[BatchHeader], list[int]]:
    headers: list[BatchHeader] = []
    ends: list[int] = []
    position = 0
    while position + HEADER_BYTES <= len(data) and len(headers) < MAX_BATCHES:
        header = read_header(data, position)
        if position + header.size_bytes > len(data) or (
            headers and header.base_offset >= end_offset
        ):
            break
        position += header.size_bytes
        headers.append(header)
        ends.append(position)
    return headers, ends


def _aborted(
    data: memoryview,
    headers: Sequence[BatchHeader],
    ends: Sequence[int],
    transactions: Sequence[AbortedTransaction],
) -> list[LogBatch]:
    """The batches of these transactions, each from its first offset on up to its marker."""
    found: list[LogBatch] = []
    waiting = sorted(transactions, key=lambda each: each.first_offset, reverse=True)
    producers: set[int] = set()
    for header, end in zip(headers, ends, strict=True):
        if not header.has_producer_id:
            continue
        while waiting and waiting[-1].first_offset <= header.last_offset:
            producers.add(waiting.pop().producer_id)
        if header.is_control:
            marker = read_end_marker(data[end - header.size_bytes : end])
            if marker is not None and marker.type is ControlType.abort:
                producers.discard(header.producer_id)
        elif header.is_transactional and header.producer_id in producers:
            found.append(LogBatch(header.base_offset, header.last_offset))
    return found
