"""Settings of the share coordinator, and of the topic that holds its state (KIP-932)."""

from __future__ import annotations

from ottla.config.setting import Settings, integer, short
from ottla.config.validator import at_least, between


class ShareCoordinatorSettings(Settings):
    """The share coordinator and `__share_group_state`."""

    share_coordinator_state_topic_num_partitions = integer(
        "share.coordinator.state.topic.num.partitions",
        50,
        "Number of partitions of __share_group_state. Do not change it once the topic exists.",
        at_least(1),
    )
    share_coordinator_state_topic_replication_factor = short(
        "share.coordinator.state.topic.replication.factor",
        -1,
        "Number of replicas of __share_group_state. -1: three, or the number of brokers "
        "if there are fewer, alive or not. The topic is created once that many are alive.",
        at_least(-1),
        kafka_default="3",
        why="As for offsets.topic.replication.factor.",
    )
    share_coordinator_state_topic_min_isr = short(
        "share.coordinator.state.topic.min.isr",
        2,
        "min.insync.replicas of __share_group_state; at most the number of replicas counts.",
        at_least(1),
    )
    share_coordinator_state_topic_segment_bytes = integer(
        "share.coordinator.state.topic.segment.bytes",
        104_857_600,
        "Maximum segment size of __share_group_state.",
        at_least(1),
    )
    share_coordinator_snapshot_update_records_per_snapshot = integer(
        "share.coordinator.snapshot.update.records.per.snapshot",
        500,
        "After so many changes of a share group's partition its whole state is written.",
        between(0, 500),
    )
    share_coordinator_write_timeout_ms = integer(
        "share.coordinator.write.timeout.ms",
        5_000,
        "How long the share coordinator waits for all replicas of __share_group_state to receive "
        "a write.",
        at_least(1),
    )
    share_coordinator_state_topic_prune_interval_ms = integer(
        "share.coordinator.state.topic.prune.interval.ms",
        300_000,
        "How often the share coordinator deletes records of __share_group_state that are older "
        "than every state that it has written whole.",
        at_least(1),
        internal=True,
    )
    share_coordinator_cold_partition_snapshot_interval_ms = integer(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        300_000,
        "After so long without a change the whole state of a share group's partition is written "
        "once, so that what is older can be deleted.",
        at_least(1),
        internal=True,
    )
