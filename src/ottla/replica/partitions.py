"""The partitions that this broker holds, by topic name and by topic id."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from uuid import UUID

from ottla.controller.image import ClusterImage
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.header import Buffer
from ottla.replica.early_batches import EarlyBatches
from ottla.replica.partition import Partition


class Partitions:
    """Used by each produce and fetch: a find costs two dictionary look-ups, nothing else."""

    def __init__(self, image: Callable[[], ClusterImage] = lambda: ClusterImage("")) -> None:
        """`image`: the cluster as this broker knows it, to distinguish partitions on other brokers
        from unknown ones."""
        self._image = image
        self._by_name: dict[str, dict[int, Partition]] = {}
        self._by_id: dict[UUID, dict[int, Partition]] = {}
        self._early = EarlyBatches()

    def add(self, partition: Partition) -> None:
        of_topic = self._by_name.setdefault(partition.topic, {})
        of_topic[partition.index] = partition
        self._by_id[partition.topic_id] = of_topic
        refused = self._early.take(
            (partition.topic, partition.index), (partition.topic_id, partition.index)
        )
        if refused is not None:
            partition.appends.came_early(refused)

    def remove(self, partition: Partition) -> None:
        """Forget one partition, and its topic with the last one."""
        of_topic = self._by_name[partition.topic]
        del of_topic[partition.index]
        if not of_topic:
            del self._by_name[partition.topic]
            self._by_id.pop(partition.topic_id, None)

    def get(self, topic: str, index: int) -> Partition | None:
        return self._by_name.get(topic, {}).get(index)

    def find(self, topic: str | UUID | None, index: int) -> Partition:
        """By name or by id; raises ApiError with the error that clients expect for each."""
        of_topic: dict[int, Partition] | None = None
        if isinstance(topic, str):
            of_topic = self._by_name.get(topic)
        elif topic is not None:
            of_topic = self._by_id.get(topic)
        partition = None if of_topic is None else of_topic.get(index)
        if partition is None:
            raise ApiError(self._why_not(topic, index))
        return partition

    def note_refused(
        self,
        topic: str | UUID | None,
        index: int,
        records: Buffer | None,
        code: ErrorCode,
        now_ms: int,
    ) -> None:
        """A batch was refused with this error. If the partition is not here (yet), it learns of it
        when it comes. `now_ms` is on the monotonic clock.
        """
        if isinstance(topic, str):
            of_topic = self._by_name.get(topic)
        else:
            of_topic = None if topic is None else self._by_id.get(topic)
        if of_topic is None or index not in of_topic:
            self._early.add((topic, index), records, code, now_ms)

    def _why_not(self, topic: str | UUID | None, index: int) -> ErrorCode:
        """For a partition on other brokers the error makes clients refresh their metadata
        (ReplicaManager.getPartitionOrError)."""
        image = self._image()
        if isinstance(topic, str):
            known, unknown = image.topic(topic), ErrorCode.unknown_topic_or_partition
        else:
            known = None if topic is None else image.topic_by_id(topic)
            unknown = ErrorCode.unknown_topic_id
            if topic in self._by_id:
                unknown = ErrorCode.unknown_topic_or_partition
        if known is None:
            return unknown
        if 0 <= index < len(known.partitions):
            return ErrorCode.not_leader_or_follower
        return ErrorCode.unknown_topic_or_partition

    def topics(self) -> list[str]:
        return list(self._by_name)

    def of_topic(self, topic: str) -> list[Partition]:
        return list(self._by_name.get(topic, {}).values())

    def __iter__(self) -> Iterator[Partition]:
        return chain.from_iterable(map(dict.values, self._by_name.values()))

    def __len__(self) -> int:
        return sum(map(len, self._by_name.values()))
