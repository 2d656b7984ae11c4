"""The partitions that this instance mirrors now, and where each stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.client.topic_partition import TopicPartition
from ottla.mirroring.position import LastRecord, Position


class Share:
    """`committed` is what the target has; `next` is the source offset after the last record that
    was added to the open transaction. Partitions are those of the target.
    """

    def __init__(self) -> None:
        self.committed: dict[TopicPartition, Position] = {}
        self.next: dict[TopicPartition, int] = {}
        self.lasts: dict[TopicPartition, LastRecord | None] = {}
        """The last record before `next`."""
        self.sources: dict[TopicPartition, str] = {}
        """The name of the source's topic."""
        self.by_source: dict[tuple[str, int], TopicPartition] = {}

    def clear(self) -> None:
        """Nothing is held."""
        for each in (self.committed, self.next, self.lasts, self.sources, self.by_source):
            each.clear()

    def take(self, partition: TopicPartition, source: str, position: Position) -> None:
        """Adds a partition."""
        self.committed[partition] = position
        self.next[partition] = position.offset
        self.lasts[partition] = position.last
        self.sources[partition] = source
        self.by_source[source, partition.partition] = partition

    def drop(self, topic: str) -> None:
        """Leaves out a topic of the target."""
        for each in [each for each in self.committed if each.topic == topic]:
            del self.by_source[self.sources[each], each.partition]
            del self.committed[each], self.next[each], self.lasts[each], self.sources[each]

    def move(self, partition: TopicPartition, offset: int) -> None:
        """The next offset is this one. There is no record between the last one and it."""
        self.next[partition] = offset

    def note_last(self, partition: TopicPartition, offset: int, epoch: int | None) -> None:
        """The record with this offset was added. `epoch`: None if the brokers have none."""
        self.lasts[partition] = None if epoch is None else LastRecord(offset + 1, epoch)

    def is_past(self, partition: TopicPartition, offset: int) -> bool:
        """Whether it was read that the source has no record there; if it has one now, its log was
        cut (an unclean election), by no more than markers.
        """
        last = self.lasts[partition]
        return last is not None and last.end <= offset < self.next[partition]

    def forget_removed(self, partition: TopicPartition, first: int) -> None:
        """The source has nothing before this offset any more."""
        last = self.lasts[partition]
        if last is not None and last.end < first:
            self.lasts[partition] = None

    def source_of(self, partition: TopicPartition) -> TopicPartition:
        """The source's partition."""
        return TopicPartition(self.sources[partition], partition.partition)

    def changed(self) -> dict[TopicPartition, Position]:
        """What the open transaction is to commit."""
        return {
            each: Position(at, self.committed[each].origin, self.lasts[each])
            for each, at in self.next.items()
            if at != self.committed[each].offset
        }

    def note_committed(self, positions: Mapping[TopicPartition, Position]) -> None:
        """The transaction was committed."""
        self.committed.update(positions)

    def rewind(self) -> None:
        """The transaction was aborted."""
        for each, position in self.committed.items():
            self.next[each], self.lasts[each] = position.offset, position.last

    def next_offsets(self) -> dict[TopicPartition, tuple[int, int | None]]:
        """Where to read the source's partitions: after the last record, with its epoch, so that
        the source's leader says whether it has it still. Markers after it are read again.
        """
        return {
            self.source_of(each): self.lasts[each] or (at, None) for each, at in self.next.items()
        }

    def names(self, partitions: Iterable[TopicPartition]) -> dict[str, str]:
        """The source's topics by their names at the target."""
        return {each.topic: self.sources[each] for each in partitions}
