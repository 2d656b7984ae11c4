"""The partitions that this instance mirrors now, and where each stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.client.topic_partition import TopicPartition
from ottla.mirroring.position import Place


class Share:
    """`places` are committed at the target; `next` is the source offset after the last record that
    was added to the open transaction. Partitions are those of the target.
    """

    def __init__(self) -> None:
        self.places: dict[TopicPartition, Place] = {}
        self.next: dict[TopicPartition, int] = {}
        self.sources: dict[TopicPartition, str] = {}
        """The name of the source's topic."""
        self.by_source: dict[tuple[str, int], TopicPartition] = {}

    def clear(self) -> None:
        """Nothing is held."""
        for each in (self.places, self.next, self.sources, self.by_source):
            each.clear()

    def take(self, partition: TopicPartition, source: str, place: Place) -> None:
        """Adds a partition."""
        self.places[partition] = place
        self.next[partition] = place.offset
        self.sources[partition] = source
        self.by_source[source, partition.partition] = partition

    def drop(self, topic: str) -> None:
        """Leaves out a topic of the target."""
        for each in [each for each in self.places if each.topic == topic]:
            del self.by_source[self.sources[each], each.partition]
            del self.places[each], self.next[each], self.sources[each]

    def source_of(self, partition: TopicPartition) -> TopicPartition:
        """The source's partition."""
        return TopicPartition(self.sources[partition], partition.partition)

    def changed(self) -> dict[TopicPartition, Place]:
        """What the open transaction is to commit."""
        return {
            each: Place(at, self.places[each].origin)
            for each, at in self.next.items()
            if at != self.places[each].offset
        }

    def committed(self, places: Mapping[TopicPartition, Place]) -> None:
        """The transaction was committed."""
        self.places.update(places)

    def rewind(self) -> None:
        """The transaction was aborted."""
        for each, place in self.places.items():
            self.next[each] = place.offset

    def positions(self) -> dict[TopicPartition, int]:
        """Where to read the source's partitions."""
        return {self.source_of(each): at for each, at in self.next.items()}

    def names(self, partitions: Iterable[TopicPartition]) -> dict[str, str]:
        """The source's topics by their names at the target."""
        return {each.topic: self.sources[each] for each in partitions}
