"""What this broker does for share groups, built from this node's parts."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import lru_cache
from uuid import UUID

from ottla.cluster.dead_letters import DeadLetters
from ottla.config import BrokerConfig
from ottla.config.group import GroupConfig
from ottla.config.offset_reset import EARLIEST, LATEST, OffsetReset
from ottla.controller.features import SHARE_VERSION, WITH_DEAD_LETTERS
from ottla.controller.group_settings import settings_of_group
from ottla.controller.image import ClusterImage
from ottla.controller.plan import Outcome
from ottla.coordinator.coordinator_runtime import CoordinatorRuntime
from ottla.coordinator.led_partitions import LedPartitions
from ottla.coordinator.share_coordinator import ShareCoordinator, coordinator_key, share_kind
from ottla.coordinator.share_parts import ShareParts
from ottla.coordinator.share_persister import SharePersister
from ottla.node.coordinator_wiring import Brokers
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.internal_topics import SHARE_TOPIC
from ottla.replica.disk_reads import DiskReads
from ottla.replica.partition import Partition
from ottla.replica.partitions import Partitions
from ottla.replica.share_history import ShareHistory
from ottla.replica.shared_partition import GroupTerms, Surroundings
from ottla.replica.shared_partitions import SharedPartitions
from ottla.runtime.background import Background
from ottla.runtime.clock import Clock
from ottla.share.settings import ShareCoordinatorSettings
from ottla.share.share_partition import ShareSettings
from ottla.share.stored import ShareKey

logger = logging.getLogger("ottla.share")


class ShareCoordinators:
    """Where the share coordinators are: see `share_persister.Where`."""

    def __init__(
        self,
        image: Callable[[], ClusterImage],
        partition_for: Callable[[str], int],
        create: Callable[[], Awaitable[Outcome]],
    ) -> None:
        self._image = image
        self._partition_for = partition_for
        self._create = create

    def broker(self, key: ShareKey) -> int | None:
        image = self._image()
        state = image.partition(SHARE_TOPIC, self._partition_for(coordinator_key(key)))
        return state.leader if state is not None and state.leader in image.brokers else None

    async def create(self) -> None:
        outcome = await self._create()
        if outcome.failed:
            raise ApiError(ErrorCode.coordinator_not_available, outcome.message)


@lru_cache(maxsize=1024)
def group_terms(group: GroupConfig, *, has_dead_letters: bool = False) -> GroupTerms:
    """What a group's settings say of its records. `has_dead_letters`: groups may have them."""
    return GroupTerms(
        ShareSettings(
            group.share_partition_max_record_locks,
            group.share_delivery_count_limit,
            group.share_record_lock_duration_ms,
            group.share_renew_acknowledge_enable,
            has_dead_letters=has_dead_letters and bool(group.errors_deadletterqueue_topic_name),
        ),
        group.reads_committed,
        group.offset_reset,
        group.errors_deadletterqueue_topic_name if has_dead_letters else "",
    )


def shared_partitions(
    config: BrokerConfig,
    image: Callable[[], ClusterImage],
    partitions: Partitions,
    clock: Clock,
    reads: DiskReads,
    persister: SharePersister,
    dead_letters: DeadLetters,
) -> SharedPartitions:
    """The partitions that share groups read from this broker."""

    async def first_offset(partition: Partition, reset: OffsetReset) -> int:
        if reset.way == EARLIEST:
            return partition.log.start_offset
        partition.reader.check_latest_known()
        end = partition.reader.end_for(False)
        if reset.way == LATEST:
            return end
        begin_ms = clock.now_ms() - reset.duration_ms
        for search in partition.reader.searches(begin_ms):
            found = await reads.run(search.run)
            if found is not None:
                return min(found.offset, end)
        return end

    def terms(group_id: str) -> GroupTerms:
        level = image().features.get(SHARE_VERSION, 0)
        return group_terms(
            settings_of_group(image(), config, group_id),
            has_dead_letters=level >= WITH_DEAD_LETTERS,
        )

    background = Background(logger, "sharing records")
    around = Surroundings(
        persister, clock, reads, background, terms, first_offset, dead_letters, ShareHistory()
    )
    return SharedPartitions(partitions, around, config.group_share_max_share_sessions)


def share_parts(
    config: BrokerConfig,
    image: Callable[[], ClusterImage],
    partitions: Partitions,
    clock: Clock,
    brokers: Brokers,
    create_topic: Callable[[], Awaitable[Outcome]],
) -> ShareParts:
    """The coordinator of `__share_group_state`, and the one who asks all of them."""

    def partition_count() -> int:
        topic = image().topic(SHARE_TOPIC)
        return (
            config.share_coordinator_state_topic_num_partitions
            if topic is None
            else len(topic.partitions)
        )

    def exists(topic_id: UUID, index: int) -> bool:
        topic = image().topic_by_id(topic_id)
        return topic is not None and index < len(topic.partitions)

    def delete_before(index: int, offset: int) -> int:
        return partitions.find(SHARE_TOPIC, index).delete_before(offset)

    settings = ShareCoordinatorSettings(
        updates_per_snapshot=config.share_coordinator_snapshot_update_records_per_snapshot,
        write_timeout_ms=config.share_coordinator_write_timeout_ms,
        prune_interval_ms=config.share_coordinator_state_topic_prune_interval_ms,
        cold_snapshot_interval_ms=config.share_coordinator_cold_partition_snapshot_interval_ms,
    )
    kind = share_kind(settings)
    runtime = CoordinatorRuntime(kind, LedPartitions(partitions, kind.topic), clock)
    coordinator = ShareCoordinator(runtime, partition_count, exists, delete_before)
    persister = SharePersister(
        coordinator,
        ShareCoordinators(image, coordinator.partition_for, create_topic),
        lambda broker_id, request: brokers.ask(broker_id, "share-state", request),
        own_id=brokers.own_id,
        clock=clock,
    )
    return ShareParts(runtime, coordinator, persister)
