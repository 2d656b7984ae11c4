"""Records the commits of the groups that this broker coordinates, where a journey finds them.

They are steps of the timeline of the partition that was committed. If this broker has a replica of
it, they stand beside the replica's segments; else beside the partition of `__consumer_offsets` that
has the group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final
from uuid import UUID

from ottla.controller.image import ClusterImage
from ottla.groups.offsets.commit import Cause, OffsetsCommitted
from ottla.groups.stored import OffsetCommitKey, OffsetCommitValue
from ottla.log.log import Log
from ottla.protocol.internal_topics import OFFSETS_TOPIC
from ottla.replica.partitions import Partitions
from ottla.runtime.clock import Clock
from ottla.shards.partitioning import partition_for
from ottla.timelines.group_timeline import GroupsTimeline
from ottla.timelines.no_timeline import NoTimeline
from ottla.timelines.recorder import TimelineRecorder
from ottla.timelines.step import Before, By

_BY: Final = {Cause.MEMBER: By.MEMBER, Cause.SIMPLE: By.SIMPLE, Cause.OUTSIDE: By.OUTSIDE}
NOTHING_BEFORE: Final = Before(-1, "")


class CommitRecording:
    """Finds the timeline of each commit; called once a commit is below the high watermark."""

    def __init__(
        self,
        partitions: Partitions,
        image: Callable[[], ClusterImage],
        timelines: TimelineRecorder,
        clock: Clock,
    ) -> None:
        self._partitions = partitions
        self._image = image
        self._timelines = timelines
        self._clock = clock

    def committed(self, commit: OffsetsCommitted) -> None:
        """Groups have committed offsets, or lost them."""
        if not self._timelines.enabled:
            return
        by, noted_ms = _BY.get(commit.cause), self._clock.now_ms()
        for (key, value), replaced in zip(commit.records, commit.before, strict=True):
            if not isinstance(key, OffsetCommitKey) or (value is None and replaced is None):
                continue
            before = NOTHING_BEFORE
            if replaced is not None:
                before = Before(replaced.offset, replaced.metadata)
            timeline = self._timeline(key, commit.now_ms)
            if value is None:
                timeline.forgotten(key.group, commit.now_ms, commit.cause.value, before, noted_ms)
            else:
                assert isinstance(value, OffsetCommitValue)
                assert by is not None
                numbers = (value.offset, value.metadata, commit.now_ms)
                timeline.committed(key.group, *numbers, before, by, noted_ms)

    async def topic_deleted(self, topic_id: UUID | None) -> None:
        """Deletes what is recorded beside the groups about the topic."""
        if topic_id is not None:
            await self._timelines.remove_groups(self._homes(), lambda each: each == topic_id)

    async def unknown_topics(self) -> set[UUID]:
        """The topics about which something is recorded beside the groups, and that the metadata
        lacks: they were deleted while this broker was down, or the tree is an older one.
        """
        recorded = await self._timelines.topics_of_groups(self._homes())
        return recorded.difference(self._image().topics_by_id)

    async def remove_deleted(self, noted: Collection[UUID]) -> None:
        """Deletes what is recorded beside the groups about topics whose deletion is noted."""
        known = self._image().topics_by_id
        await self._timelines.remove_groups(
            self._homes(), lambda each: each in noted and each not in known
        )

    def _homes(self) -> list[Log]:
        return [partition.log for partition in self._partitions.of_topic(OFFSETS_TOPIC)]

    def _timeline(self, key: OffsetCommitKey, now_ms: int) -> GroupsTimeline:
        partition = self._partitions.get(key.topic, key.partition)
        if partition is not None:
            return partition.timeline_at(now_ms)
        image = self._image()
        topic, offsets = image.topic(key.topic), image.topic(OFFSETS_TOPIC)
        if topic is None or offsets is None:
            return NoTimeline()
        index = partition_for(key.group, len(offsets.partitions))
        home = self._partitions.get(OFFSETS_TOPIC, index)
        if home is None:
            return NoTimeline()
        return self._timelines.of_groups(home.log, topic.topic_id, key.partition)
