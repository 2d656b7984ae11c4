"""The topics of the cluster, as far as a consumer group needs to know them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Final, NamedTuple
from uuid import UUID


class Topic(NamedTuple):
    """One topic."""

    id: UUID
    partition_count: int


class Topics(NamedTuple):
    """All topics by name, at one version of the cluster's metadata. Another thread may use it: a
    topic that is deleted meanwhile is there or not.
    """

    version: int
    """Grows with every change."""
    by_name: Mapping[str, Topic]

    def only(self, names: Iterable[str]) -> Topics:
        """Those of these names, as they are now: none of them is deleted meanwhile."""
        found = ((name, self.by_name.get(name)) for name in names)
        return Topics(self.version, {name: topic for name, topic in found if topic is not None})

    def ids(self, names: Iterable[str]) -> frozenset[UUID]:
        """Of those that exist."""
        found = map(self.by_name.get, names)
        return frozenset(topic.id for topic in found if topic is not None)

    def partition_counts(self, names: Iterable[str]) -> dict[UUID, int]:
        found = map(self.by_name.get, names)
        return {topic.id: topic.partition_count for topic in found if topic is not None}

    def partition_count(self, names: Iterable[str]) -> int:
        """Of all of them together."""
        found = map(self.by_name.get, names)
        return sum(topic.partition_count for topic in found if topic is not None)

    def metadata_hash(self, names: Iterable[str]) -> int:
        """A number (64 bits, signed) that changes with id or size of a subscribed topic; 0: none.

        Kafka hashes by another function, and racks too: a group that moves between the two is
        assigned once more.
        """
        digest = blake2b(digest_size=8)
        found = False
        for name in sorted(names):
            topic = self.by_name.get(name)
            if topic is not None:
                found = True
                content = name.encode()
                digest.update(len(content).to_bytes(4, "big") + content + topic.id.bytes)
                digest.update(topic.partition_count.to_bytes(4, "big"))
        return int.from_bytes(digest.digest(), "big", signed=True) if found else 0


NO_TOPICS: Final = Topics(0, {})
