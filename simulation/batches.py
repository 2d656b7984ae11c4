"""An entry as a real record batch, for the deciders that read batches, and back."""

from __future__ import annotations

from functools import lru_cache

import crc32c

from ottla.records.header import HEADER, HEADER_BYTES, MAGIC, OVERHEAD_BYTES, BatchHeader
from simulation.memory_log import Entry, Value

_CRC_POSITION = 17
_CRC_FROM = 21


@lru_cache(maxsize=4096)
def batch_of(offset: int, entry: Entry) -> bytes:
    """A batch that stands for one record: a header with a right CRC and no body."""
    value = entry.value
    size_bytes = HEADER_BYTES - OVERHEAD_BYTES
    packed = bytearray(
        HEADER.pack(
            *(offset, size_bytes, entry.epoch, MAGIC, 0, 0, 0, 0, 0),
            *(value.producer, int(value.idempotent), value.sequence, 1),
        )
    )
    crc = crc32c.crc32c(bytes(packed[_CRC_FROM:]))
    packed[_CRC_POSITION:_CRC_FROM] = crc.to_bytes(4, "big")
    return bytes(packed)


def entry_of(header: BatchHeader) -> Entry:
    """The opposite of `batch_of`."""
    value = Value(header.producer_id, header.base_sequence, bool(header.producer_epoch))
    return Entry(header.leader_epoch, value)
