"""The offsets of one OffsetCommit or TxnOffsetCommit request, and the error of each partition.

A partition that does not exist gets its error here, as in Kafka's `KafkaApis`; the group's
coordinator decides about the others. A request may name half a million partitions, so they are
collected and answered in slices.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from ottla.controller.image import TopicImage
from ottla.groups.offsets.commit import OffsetToCommit
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.versioned_field import VersionedField
from ottla.runtime.slices import Slices, parts


class OffsetsToCommit:
    """Collects a request's offsets topic by topic; `commit` then sends them to the coordinator."""

    def __init__(self, leader_epoch: VersionedField[int]) -> None:
        self._leader_epoch = leader_epoch
        self._codes: list[ErrorCode | None] = []
        """The error of each partition, in the request's order; None if its offset is committed."""
        self._offsets: list[OffsetToCommit] = []
        self._slices = Slices()

    async def add(self, topic: Any, known: TopicImage | None, missing: ErrorCode) -> None:
        """Collect the partitions of a topic. `missing` is their error if the topic is not known."""
        if not self._slices.has_room(1):
            await self._slices.count()
        for partitions in parts(topic.partitions):
            if not self._slices.has_room(len(partitions)):
                await self._slices.count(len(partitions))
            if known is None:
                self._codes += [missing] * len(partitions)
                continue
            for each in partitions:
                index = each.partition_index
                if not 0 <= index < len(known.partitions):
                    self._codes.append(ErrorCode.unknown_topic_or_partition)
                    continue
                self._codes.append(None)
                self._offsets.append(
                    OffsetToCommit(
                        known.name,
                        known.topic_id,
                        index,
                        each.committed_offset,
                        self._leader_epoch(each),
                        each.committed_metadata,
                    )
                )

    async def commit(
        self, commit: Callable[[tuple[OffsetToCommit, ...]], Awaitable[list[ErrorCode]]]
    ) -> Iterator[ErrorCode]:
        """The error of each partition, in the request's order. `commit` is not called for nothing;
        an ApiError that it raises is the error of all its offsets.
        """
        results: list[ErrorCode] = []
        if self._offsets:
            try:
                results = await commit(tuple(self._offsets))
            except ApiError as error:
                results = [error.code] * len(self._offsets)
        committed = iter(results)
        return (next(committed) if code is None else code for code in self._codes)

    async def answers(
        self,
        topic: Any,
        errors: Iterator[ErrorCode],
        answer: Callable[[int, ErrorCode], Any],
    ) -> tuple[Any, ...]:
        """`answer` with index and error for each partition of a topic. The topics must come in the
        order in which they were added.
        """
        answers: list[Any] = []
        if not self._slices.has_room(1):
            await self._slices.count()
        for partitions in parts(topic.partitions):
            if not self._slices.has_room(len(partitions)):
                await self._slices.count(len(partitions))
            answers += [answer(each.partition_index, next(errors)) for each in partitions]
        return tuple(answers)
