"""Idempotent batches that came before this broker had their partition.

Clients may learn of a new partition and its leader from another broker, before the leader has
opened it. The first batches are refused then, and a later one may arrive when the partition is
there. Each partition gets what was refused before it; see `refused_batches`.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from ottla.protocol.errors import ErrorCode
from ottla.records.errors import CorruptBatchError
from ottla.records.header import Buffer, read_header
from ottla.replica.refused_batches import RefusedBatches

MAX_PARTITIONS: Final = 100
"""The one that was named first gives way. Most are typing errors in a topic's name."""
MAX_PRODUCERS: Final = 20
"""Of each partition."""

PartitionKey = tuple[Hashable, int]
"""A topic's name or id, and the partition's number: as the client named it."""


class EarlyBatches:
    """The refused batches of partitions that are not here."""

    def __init__(self) -> None:
        self._by_partition: dict[PartitionKey, RefusedBatches] = {}

    def add(self, key: PartitionKey, records: Buffer | None, code: ErrorCode, now_ms: int) -> None:
        """A batch for this partition was refused; `now_ms` is on the monotonic clock."""
        try:
            header = read_header(records or b"")
        except CorruptBatchError:
            return  # it would be refused in any case
        if header.producer_id < 0:
            return
        refused = self._by_partition.get(key)
        if refused is None:
            if len(self._by_partition) >= MAX_PARTITIONS:
                del self._by_partition[next(iter(self._by_partition))]
            refused = self._by_partition[key] = RefusedBatches(MAX_PRODUCERS)
        refused.add(header.producer_id, header.producer_epoch, header.base_sequence, code, now_ms)

    def take(self, *keys: PartitionKey) -> RefusedBatches | None:
        """The batches of one partition, which is here now; `keys` are all its names. A client
        uses one of them.
        """
        found = [refused for each in keys if (refused := self._by_partition.pop(each, None))]
        return found[0] if found else None
