"""The table of coordinators: internal topic to shard kind, built from this node's parts."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from ottla.config import BrokerConfig
from ottla.controller.image import ClusterImage
from ottla.coordinator.coordinator_runtime import CoordinatorRuntime
from ottla.coordinator.group_coordinator import GroupCoordinator, group_kind
from ottla.coordinator.led_partitions import LedPartitions
from ottla.groups.offsets.commit import OffsetsCommitted
from ottla.groups.settings import GroupSettings
from ottla.groups.shard import GroupShard
from ottla.groups.stored import OffsetCommitKey, OffsetCommitValue
from ottla.protocol.internal_topics import OFFSETS_TOPIC
from ottla.replica.partitions import Partitions
from ottla.runtime.clock import Clock


def group_runtime(
    config: BrokerConfig, partitions: Partitions, clock: Clock
) -> CoordinatorRuntime[GroupShard]:
    """The coordinator of `__consumer_offsets`; partition timelines record its commits."""
    kind = group_kind(
        group_settings(config),
        on_loaded=lambda shard: _loaded(partitions, shard),
        on_committed=lambda commit: _committed(partitions, commit),
    )
    return CoordinatorRuntime(kind, LedPartitions(partitions, kind.topic), clock)


def group_coordinator(
    runtime: CoordinatorRuntime[GroupShard],
    config: BrokerConfig,
    image: Callable[[], ClusterImage],
    random: Random,
) -> GroupCoordinator:
    """Answers the requests about groups, on their runtime."""

    def partition_count() -> int:
        topic = image().topic(OFFSETS_TOPIC)
        return config.offsets_topic_num_partitions if topic is None else len(topic.partitions)

    return GroupCoordinator(runtime, partition_count, random=random)


def group_settings(config: BrokerConfig) -> GroupSettings:
    """The broker's settings in the form that `groups` needs."""
    return GroupSettings(
        min_session_timeout_ms=config.group_min_session_timeout_ms,
        max_session_timeout_ms=config.group_max_session_timeout_ms,
        initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        max_size=config.group_max_size,
        offset_metadata_max_bytes=config.offset_metadata_max_bytes,
        offsets_retention_ms=config.offsets_retention_minutes * 60_000,
        offsets_retention_check_interval_ms=config.offsets_retention_check_interval_ms,
        offset_commit_timeout_ms=config.offsets_commit_timeout_ms,
    )


def _committed(partitions: Partitions, commit: OffsetsCommitted) -> None:
    for key, value in commit.records:
        assert isinstance(key, OffsetCommitKey)
        assert isinstance(value, OffsetCommitValue)
        partition = partitions.get(key.topic, key.partition)
        if partition is not None:
            partition.timeline.committed(key.group, value.offset, value.metadata, commit.now_ms)


def _loaded(partitions: Partitions, shard: GroupShard) -> None:
    """Restores the groups' positions: otherwise the first commit after a restart has no earlier
    one to compare with.
    """
    for key, value in shard.offsets.all():
        partition = partitions.get(key.topic, key.partition)
        if partition is not None:
            partition.timeline.group_is_at(key.group, value.offset, value.metadata)
