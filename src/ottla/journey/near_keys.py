"""The keys of records near one, of the same producer: they tell how it chooses partitions. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.records.errors import CorruptBatchError, InvalidRecordError
from ottla.records.header import BatchHeader, Buffer
from ottla.records.iterate import iterate_records

MAX_KEYS: Final = 256
"""Different ones; with two partitions 10 exclude a coincidence."""
MAX_RECORDS: Final = 5_000
"""That are read to find them: 30 ms, in a thread."""
OFFSETS_BEFORE: Final = 1_000
"""Where the reading begins, if there are so many."""


def keys_of_producer(
    batches: Iterable[tuple[BatchHeader, Buffer]], producer_id: int
) -> frozenset[bytes]:
    """Keys in these whole batches that have this producer id (-1: none), until a limit is reached
    or a batch is damaged: what comes after is unknown, and the record itself may be sound.
    """
    keys: set[bytes] = set()
    left = MAX_RECORDS
    try:
        for header, batch in batches:
            if left <= 0 or len(keys) >= MAX_KEYS:
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
        pass
    return frozenset(keys)
