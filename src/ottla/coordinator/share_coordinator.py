"""The share coordinator of this broker: finds the shard of a share partition, and waits for it.

A share partition belongs to one partition of `__share_group_state`, by its group, topic id and
partition, and is coordinated by that partition's leader. The brokers that lead the partitions whose
records are shared ask it (`share_persister`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from ottla.coordinator.coordinator_runtime import CoordinatorRuntime
from ottla.coordinator.shard_kind import ShardKind
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.internal_topics import SHARE_TOPIC
from ottla.protocol.kafka_uuid import uuid_text
from ottla.runtime.background import Background
from ottla.shards.encoding import fits_string
from ottla.shards.partitioning import partition_for
from ottla.share.record_format import decode, encode
from ottla.share.settings import ShareCoordinatorSettings
from ottla.share.shard import ShareShard, Step, Summary
from ottla.share.share_partition import StoredState, Write
from ottla.share.stored import ShareKey

logger = logging.getLogger("ottla.share")

T = TypeVar("T")


def share_kind(settings: ShareCoordinatorSettings) -> ShardKind[ShareShard]:
    """The states of share partitions as a kind of coordinator: `__share_group_state`."""
    return ShardKind(
        topic=SHARE_TOPIC,
        settings=settings,
        new_shard=ShareShard,
        encode=encode,
        decode=decode,
        commit_timeout_ms=settings.write_timeout_ms,
        # There may be states of topics that were deleted meanwhile.
        loads_when_elected=True,
    )


def coordinator_key(key: ShareKey) -> str:
    """What FindCoordinator calls a share partition."""
    return f"{key.group_id}:{uuid_text(key.topic_id)}:{key.partition}"


class ShareCoordinator:
    """The share partitions of every partition of `__share_group_state` that this broker leads.

    `partition_count` is how many the topic has (share.coordinator.state.topic.num.partitions before
    it exists); `exists` says whether the metadata has a topic id and partition; `delete_before`
    deletes the records of a led partition before an offset, and raises ApiError.
    """

    def __init__(
        self,
        runtime: CoordinatorRuntime[ShareShard],
        partition_count: Callable[[], int],
        exists: Callable[[UUID, int], bool],
        delete_before: Callable[[int, int], object],
    ) -> None:
        self._runtime = runtime
        self._settings: ShareCoordinatorSettings = runtime.kind.settings
        self._partition_count = partition_count
        self._exists = exists
        self._delete_before = delete_before
        self._background = Background(logger, "the care of __share_group_state")
        self._pruned: dict[int, int] = {}
        """By partition: before which offset records were deleted last."""

    def start(self) -> None:
        """Begins to prune, and to write whole states that are not changed."""
        self._background.keep(self._scan_old)
        self._background.keep(self._scan_cold)

    def close(self) -> None:
        """Stops that. The owner of the runtime closes the runtime."""
        self._background.cancel()

    def partition_for(self, name: str) -> int:
        """The partition of `__share_group_state` for a share partition, named as by
        `coordinator_key`."""
        return partition_for(name, self._partition_count())

    async def _decide(self, key: ShareKey, decide: Callable[[ShareShard, bool, Step], T]) -> T:
        if not key.group_id or not fits_string(key.group_id):
            raise ApiError(ErrorCode.invalid_request, "The group id is empty or too long.")
        index = self.partition_for(coordinator_key(key))
        exists = self._exists(key.topic_id, key.partition)
        return await self._runtime.decide(index, lambda shard, step: decide(shard, exists, step))

    # Brokers' requests. All raise ApiError.

    async def initialize(self, key: ShareKey, state_epoch: int, start_offset: int) -> None:
        """InitializeShareGroupState."""
        await self._decide(
            key,
            lambda shard, exists, step: shard.initialize(
                key, state_epoch, start_offset, exists, step
            ),
        )

    async def read(self, key: ShareKey, leader_epoch: int) -> StoredState:
        """ReadShareGroupState."""
        return await self._decide(
            key, lambda shard, exists, step: shard.read(key, leader_epoch, exists, step)
        )

    async def write(self, key: ShareKey, state_epoch: int, leader_epoch: int, write: Write) -> None:
        """WriteShareGroupState."""
        await self._decide(
            key,
            lambda shard, exists, step: shard.write(
                key, state_epoch, leader_epoch, write, exists, step
            ),
        )

    async def delete(self, key: ShareKey) -> None:
        """DeleteShareGroupState."""
        await self._decide(key, lambda shard, exists, step: shard.delete(key, exists, step))

    async def summary(self, key: ShareKey) -> Summary:
        """ReadShareGroupStateSummary."""
        return await self._decide(key, lambda shard, exists, step: shard.summary(key, exists))

    # What follows from other changes.

    async def topic_deleted(self, topic_id: UUID | None) -> None:
        """Deletes the states of a topic that does not exist any more."""
        if topic_id is None:
            return
        for index in self._runtime.led_indexes():
            await self._in_parts(index, lambda shard, step: shard.topics_deleted((topic_id,), step))

    async def _in_parts(self, index: int, write: Callable[[ShareShard, Step], bool]) -> None:
        """Writes as long as there may be more, and as it succeeds."""
        while await self._runtime.write(index, write):
            await asyncio.sleep(0)

    async def prune(self) -> None:
        """Deletes records that no state needs any more."""
        for index in self._runtime.led_indexes():
            try:
                while await self._runtime.decide(index, self._delete_states_of_deleted_topics):
                    await asyncio.sleep(0)
                offset = await self._runtime.decide(
                    index, lambda shard, step: shard.redundant_before()
                )
                if offset > self._pruned.get(index, 0):
                    self._delete_before(index, offset)
                    self._pruned[index] = offset
            except ApiError as error:
                logger.info("%s-%d: nothing is deleted: %s", SHARE_TOPIC, index, error)
            await asyncio.sleep(0)

    def _delete_states_of_deleted_topics(self, shard: ShareShard, step: Step) -> bool:
        """Those that were deleted while nobody coordinated the partition."""
        gone = [each for each in shard.topic_ids() if not self._exists(each, 0)]
        return shard.topics_deleted(gone, step)

    async def snapshot_cold(self) -> None:
        """Writes states whole that have not been changed for long."""
        for index in self._runtime.led_indexes():
            await self._in_parts(index, lambda shard, step: shard.snapshot_cold(step))
            await asyncio.sleep(0)

    async def _scan_old(self) -> None:
        while True:
            await asyncio.sleep(self._settings.prune_interval_ms / 1000)
            await self.prune()

    async def _scan_cold(self) -> None:
        while True:
            await asyncio.sleep(self._settings.cold_snapshot_interval_ms / 1000)
            await self.snapshot_cold()
