"""Reads keys and values of the records of dead letters (KIP-1191), if a group wants them copied.

As Kafka's ShareGroupDLQRecordFetcher: a compressed batch that is larger than the budget once
decompressed, and a record that is larger, are not copied; what would go beyond the budget of one
turn is left for the next.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Final, NamedTuple

from ottla.protocol.errors import ApiError
from ottla.records.compression import Compression
from ottla.records.header import read_header
from ottla.records.iterate import iterate_records
from ottla.replica.disk_reads import DiskReads
from ottla.replica.partition import Partition
from ottla.replica.share_reads import ReadBatches, read_batches
from ottla.share.dead_letter import Contents

logger = logging.getLogger("ottla.share")

MAX_FETCH_BYTES: Final = 1 << 20
"""Of one turn, but one batch at least. Kafka's DLQ_MAX_FETCH_BYTES."""
MAX_COPIED: Final = 10_000
"""Records of one turn: they are objects."""
RECORD_BYTES: Final = 20
"""About what a record takes besides its key and value."""


class Found(NamedTuple):
    """What is known of the records up to the offset `until`; those without contents have none."""

    contents: Contents
    until: int


async def read_contents(
    partition: Partition, first: int, last: int, budget_bytes: int, reads: DiskReads
) -> Found:
    """Keys and values of the records with these offsets, as far as one turn goes.

    Raises ApiError as `read_batches`.
    """
    begin = max(first, partition.log.start_offset)
    if begin > last:
        return Found({}, last)
    read = await read_batches(
        partition, begin, last - begin + 1, MAX_FETCH_BYTES, committed_only=False, reads=reads
    )
    return await reads.run(partial(_contents, read, begin, last, budget_bytes))


def _contents(read: ReadBatches, first: int, last: int, budget_bytes: int) -> Found:
    found: dict[int, tuple[bytes | None, bytes | None]] = {}
    left = budget_bytes
    begin = 0
    for batch, end in zip(read.batches, read.ends, strict=True):
        data, begin = read.data[begin:end], end
        header = read_header(data)
        if batch.first > last:
            break
        if header.is_control:
            continue
        is_packed = header.compression != Compression.none
        try:
            for record in iterate_records(data, header, limit_bytes=budget_bytes):
                if record.offset < first:
                    continue
                if record.offset > last:
                    break
                size = RECORD_BYTES + len(record.key or b"") + len(record.value or b"")
                if size > budget_bytes and not is_packed:
                    continue
                if found and (size > left or len(found) == MAX_COPIED):
                    return Found(found, record.offset - 1)
                found[record.offset] = record.key, record.value
                left -= size
        except ApiError as error:
            logger.warning(
                "the records from offset %d to %d are not copied into their dead letters: %s",
                batch.first,
                batch.last,
                error,
            )
    is_all = not read.batches or read.batches[-1].last >= last
    return Found(found, last if is_all else read.batches[-1].last)
