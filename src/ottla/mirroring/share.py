"""The partitions that this instance mirrors now, and where each stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.client.topic_partition import TopicPartition
from ottla.mirroring.position import Position


class Share:
    """`committed` is what the target has; `next` is the source offset after the last record that
    was added to the open transaction. Partitions are those of the target.
    """

    def __init__(self) -> None:
        self.committed: dict[TopicPartition, Position] = {}
        self.next: dict[TopicPartition, int] = {}
        self.epochs: dict[TopicPartition, int | None] = {}
        """The leader epoch of the record just before `next`."""
        self.sources: dict[TopicPartition, str] = {}
        """The name of the source's topic."""
        self.by_source: dict[tuple[str, int], TopicPartition] = {}

    def clear(self) -> None:
        """Nothing is held."""
        for each in (self.committed, self.next, self.epochs, self.sources, self.by_source):
            each.clear()

    def take(self, partition: TopicPartition, source: str, position: Position) -> None:
        """Adds a partition."""
        self.committed[partition] = position
        self.next[partition] = position.offset
        self.epochs[partition] = position.epoch
        self.sources[partition] = source
        self.by_source[source, partition.partition] = partition

    def drop(self, topic: str) -> None:
        """Leaves out a topic of the target."""
        for each in [each for each in self.committed if each.topic == topic]:
            del self.by_source[self.sources[each], each.partition]
            del self.committed[each], self.next[each], self.epochs[each], self.sources[each]

    def move(self, partition: TopicPartition, offset: int, epoch: int | None = None) -> None:
        """The next offset is this one. `epoch`: of the record just before it, if there is one."""
        self.next[partition] = offset
        self.epochs[partition] = epoch

    def source_of(self, partition: TopicPartition) -> TopicPartition:
        """The source's partition."""
        return TopicPartition(self.sources[partition], partition.partition)

    def changed(self) -> dict[TopicPartition, Position]:
        """What the open transaction is to commit."""
        return {
            each: Position(at, self.committed[each].origin, self.epochs[each])
            for each, at in self.next.items()
            if at != self.committed[each].offset
        }

    def note_committed(self, positions: Mapping[TopicPartition, Position]) -> None:
        """The transaction was committed."""
        self.committed.update(positions)

    def rewind(self) -> None:
        """The transaction was aborted."""
        for each, position in self.committed.items():
            self.move(each, position.offset, position.epoch)

    def next_offsets(self) -> dict[TopicPartition, tuple[int, int | None]]:
        """Where to read the source's partitions: offset, and epoch of the record before it."""
        return {self.source_of(each): (at, self.epochs[each]) for each, at in self.next.items()}

    def names(self, partitions: Iterable[TopicPartition]) -> dict[str, str]:
        """The source's topics by their names at the target."""
        return {each.topic: self.sources[each] for each in partitions}
