"""Offsets that groups commit in transactions, while those transactions are open (KIP-98, KIP-447).

A record of a transaction has no effect on the committed offsets until the transaction's marker is
in the log: a commit marker moves what is pending to the committed offsets, an abort marker drops
it. Between two commits of the same partition the higher *record* offset wins, as in Kafka
(OffsetMetadataManager.replayEndTransactionMarker): a plain commit that was appended after a
transactional one stays, although the marker comes later still. Compaction keeps the newest record
of a key, so memory and a compacted log agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import NamedTuple

from ottla.groups.stored import OffsetCommitKey, OffsetCommitValue


class _Pending(NamedTuple):
    record_offset: int
    """Where the record is in the log."""
    value: OffsetCommitValue
    is_superseded: bool = False
    """A record further up in the log counts for this partition already."""


class PendingOffsets:
    """Producer to what it has committed in its open transaction; changed by applying only."""

    __slots__ = ("_by_group", "_by_producer", "_counts")

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[OffsetCommitKey, _Pending]] = {}
        self._by_group: dict[str, dict[OffsetCommitKey, set[int]]] = {}
        """The producers of each key, by group."""
        self._counts: dict[str, int] = {}

    # What the log has.

    def add(
        self, producer_id: int, key: OffsetCommitKey, value: OffsetCommitValue, record_offset: int
    ) -> None:
        """Takes over one record of a producer's open transaction."""
        pending = self._by_producer.setdefault(producer_id, {})
        if key not in pending:
            self._counts[key.group] = self._counts.get(key.group, 0) + 1
        pending[key] = _Pending(record_offset, value)
        self._by_group.setdefault(key.group, {}).setdefault(key, set()).add(producer_id)

    def supersede(self, key: OffsetCommitKey, record_offset: int) -> None:
        """An offset of this partition is committed, with a record at `record_offset`."""
        for producer_id in self._by_group.get(key.group, {}).get(key, ()):
            pending = self._by_producer[producer_id]
            if pending[key].record_offset < record_offset:
                pending[key] = pending[key]._replace(is_superseded=True)

    def remove(self, key: OffsetCommitKey) -> None:
        """The partition's offset is deleted, and so is what any transaction has of it."""
        for producer_id in self._by_group.get(key.group, {}).get(key, set()).copy():
            del self._by_producer[producer_id][key]
            if not self._by_producer[producer_id]:
                del self._by_producer[producer_id]
            self._forget(producer_id, key)

    def end(self, producer_id: int, is_commit: bool) -> dict[OffsetCommitKey, OffsetCommitValue]:
        """Ends a producer's transaction; returns what is committed by that."""
        ended = self._by_producer.pop(producer_id, {})
        for key in ended:
            self._forget(producer_id, key)
        if not is_commit:
            return {}
        for key, pending in ended.items():
            self.supersede(key, pending.record_offset)
        return _effective(ended)

    def _forget(self, producer_id: int, key: OffsetCommitKey) -> None:
        keys = self._by_group[key.group]
        keys[key].remove(producer_id)
        self._counts[key.group] -= 1
        if not keys[key]:
            del keys[key]
        if not keys:
            del self._by_group[key.group]
            del self._counts[key.group]

    # What is asked of it.

    def __bool__(self) -> bool:
        return bool(self._by_producer)

    def keys_of_producer(self, producer_id: int) -> Set[OffsetCommitKey]:
        """The partitions in which this producer's transaction has pending offsets."""
        return self._by_producer.get(producer_id, {}).keys()

    def of_producer(self, producer_id: int) -> dict[OffsetCommitKey, OffsetCommitValue]:
        """What a commit marker of this producer would commit now."""
        return _effective(self._by_producer.get(producer_id, {}))

    def has(self, group: str, topic: str, partition: int) -> bool:
        """A transaction that is open may change the group's offset of this partition."""
        keys = self._by_group.get(group)
        return keys is not None and OffsetCommitKey(group, topic, partition) in keys

    def has_group(self, group: str) -> bool:
        """A transaction that is open may change an offset of this group."""
        return group in self._by_group

    def of_group(self, group: str) -> Iterator[OffsetCommitKey]:
        """The partitions in which the group has pending offsets."""
        yield from self._by_group.get(group, {})

    def count(self, group: str) -> int:
        """How many offsets are pending, those of several transactions in one partition apart."""
        return self._counts.get(group, 0)

    def of_topic(self, topic: str) -> Iterator[tuple[OffsetCommitKey, OffsetCommitValue]]:
        """Every group's pending offsets in one topic; one partition may come several times."""
        for pending in self._by_producer.values():
            for key, (_, value, _) in pending.items():
                if key.topic == topic:
                    yield key, value

    def all(self) -> Iterator[tuple[int, OffsetCommitKey, OffsetCommitValue]]:
        """Every pending offset with the producer of its transaction."""
        for producer_id, pending in self._by_producer.items():
            for key, (_, value, _) in pending.items():
                yield producer_id, key, value


def _effective(
    pending: dict[OffsetCommitKey, _Pending],
) -> dict[OffsetCommitKey, OffsetCommitValue]:
    return {key: value for key, (_, value, superseded) in pending.items() if not superseded}
