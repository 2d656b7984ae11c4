"""The committed offsets of all groups of one partition of the offsets topic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ottla.groups.stored import OffsetCommitKey, OffsetCommitValue

_NOTHING: Final[Mapping[int, OffsetCommitValue]] = {}


class OffsetStore:
    """Group to topic to partition to what was committed; changed by `apply` only."""

    __slots__ = ("_by_group", "_counts")

    def __init__(self) -> None:
        self._by_group: dict[str, dict[str, dict[int, OffsetCommitValue]]] = {}
        self._counts: dict[str, int] = {}

    def apply(self, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
        """Takes over one record."""
        if value is None:
            self._remove(key)
            return
        partitions = self._by_group.setdefault(key.group, {}).setdefault(key.topic, {})
        if key.partition not in partitions:
            self._counts[key.group] = self._counts.get(key.group, 0) + 1
        partitions[key.partition] = value

    def _remove(self, key: OffsetCommitKey) -> None:
        topics = self._by_group.get(key.group, {})
        partitions = topics.get(key.topic, {})
        if partitions.pop(key.partition, None) is None:
            return
        self._counts[key.group] -= 1
        if not partitions:
            del topics[key.topic]
        if not topics:
            del self._by_group[key.group]
            del self._counts[key.group]

    def get(self, group: str, topic: str, partition: int) -> OffsetCommitValue | None:
        return self._by_group.get(group, {}).get(topic, {}).get(partition)

    def count(self, group: str) -> int:
        """In how many partitions this group has offsets."""
        return self._counts.get(group, 0)

    def of_group(self, group: str) -> dict[str, dict[int, OffsetCommitValue]]:
        """Topic to partition to offset; not to be changed."""
        return self._by_group.get(group, {})

    def of_topic(self, topic: str) -> Iterator[tuple[OffsetCommitKey, OffsetCommitValue]]:
        """Every group's offsets in one topic."""
        for group, topics in self._by_group.items():
            for partition, value in topics.get(topic, {}).items():
                yield OffsetCommitKey(group, topic, partition), value

    def groups(self) -> list[str]:
        """The groups that have an offset."""
        return list(self._by_group)

    def of_partition(
        self, topic: str, partition: int, groups: Iterable[str]
    ) -> dict[str, OffsetCommitValue]:
        """The offsets of those of these groups that have one in the partition."""
        found = {}
        for group in groups:
            value = self.of_group(group).get(topic, _NOTHING).get(partition)
            if value is not None:
                found[group] = value
        return found

    def all(self) -> Iterator[tuple[OffsetCommitKey, OffsetCommitValue]]:
        for group, topics in self._by_group.items():
            for topic, partitions in topics.items():
                for partition, value in partitions.items():
                    yield OffsetCommitKey(group, topic, partition), value
