"""What a page reads: the records of a fetch that it may have, and those that it wants.

Only committed records (read_committed), no markers of transactions. What a page has no permit for
is read again later: nothing is kept for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from ottla.protocol.primitives import Buffer
from ottla.records.compression import Compression
from ottla.records.control import ControlType, read_end_marker
from ottla.records.header import iterate_headers
from ottla.records.iterate import iterate_records
from ottla.records.record import Record

MAX_BATCH_BYTES: Final = 16 << 20
"""Of a batch's records without compression."""
RECORDS_A_TURN: Final = 100
"""After these, other connections get their turn."""


@dataclass(slots=True)
class Subscription:
    """To the partitions of one topic that this broker leads."""

    topic: str
    key: bytes | None
    """Records with this key only; None: with any."""
    permits: int
    offsets: dict[int, int] = field(default_factory=dict)
    """The next offset by partition."""

    async def records_in(self, partition: int, response: Any) -> AsyncIterator[Record]:
        """Those of a fetched partition that the page wants and has permits for.

        Raises InvalidRecordError, CorruptBatchError: then the offset is behind the bad batch.
        """
        aborted = _begun(response.aborted_transactions or ())
        open_aborted: set[int] = set()
        data: Buffer = response.records or b""
        position, left = 0, RECORDS_A_TURN
        for header in iterate_headers(data):
            batch = memoryview(data)[position : position + header.size_bytes]
            position += header.size_bytes
            producer = header.producer_id
            while (first := aborted.get(producer)) and first[0] <= header.last_offset:
                first.pop(0)
                open_aborted.add(producer)
            if header.is_control:
                marker = read_end_marker(batch)
                if marker is not None and marker.type is ControlType.abort:
                    open_aborted.discard(producer)
            elif not (header.is_transactional and producer in open_aborted):
                at = self.offsets[partition]
                self.offsets[partition] = max(at, header.next_offset)
                records = iterate_records(batch, header, limit_bytes=MAX_BATCH_BYTES)
                if header.compression != Compression.none:
                    first_record = await asyncio.to_thread(next, records, None)
                    records = _with_first(first_record, records)
                for record in records:
                    left -= 1
                    if not left:
                        await asyncio.sleep(0)
                        left = RECORDS_A_TURN
                    if record.offset < at or self.key not in (None, record.key):
                        continue
                    if self.permits <= 0:
                        self.offsets[partition] = record.offset
                        return
                    self.permits -= 1
                    yield record
            self.offsets[partition] = max(self.offsets[partition], header.next_offset)


def _with_first(first: Record | None, rest: Iterable[Record]) -> Any:
    if first is not None:
        yield first
        yield from rest


def _begun(transactions: Iterable[Any]) -> dict[int, list[int]]:
    """Where each aborted transaction begins, in order, by producer."""
    found: dict[int, list[int]] = {}
    for each in transactions:
        found.setdefault(each.producer_id, []).append(each.first_offset)
    for offsets in found.values():
        offsets.sort()
    return found
