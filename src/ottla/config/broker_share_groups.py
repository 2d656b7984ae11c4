"""Settings of share groups (KIP-932): the defaults of a group's own settings, and their bounds."""

from __future__ import annotations

from ottla.config.setting import Settings, Update, boolean, integer, string, words
from ottla.config.validator import at_least, between, only

SHARE_ASSIGNOR = "simple"


class ShareGroupSettings(Settings):
    """Each must lie within its own minimum and maximum; see `group_bounds`."""

    group_share_session_timeout_ms = integer(
        "group.share.session.timeout.ms",
        45_000,
        "A member of a share group that sends no heartbeat for this long is removed.",
        at_least(1),
    )
    group_share_min_session_timeout_ms = integer(
        "group.share.min.session.timeout.ms",
        45_000,
        "Minimum of group.share.session.timeout.ms, also for one group.",
        at_least(1),
    )
    group_share_max_session_timeout_ms = integer(
        "group.share.max.session.timeout.ms",
        60_000,
        "Maximum of group.share.session.timeout.ms, also for one group.",
        at_least(1),
    )
    group_share_heartbeat_interval_ms = integer(
        "group.share.heartbeat.interval.ms",
        5_000,
        "How often members of share groups send heartbeats.",
        at_least(1),
    )
    group_share_min_heartbeat_interval_ms = integer(
        "group.share.min.heartbeat.interval.ms",
        5_000,
        "Minimum of group.share.heartbeat.interval.ms, also for one group.",
        at_least(1),
    )
    group_share_max_heartbeat_interval_ms = integer(
        "group.share.max.heartbeat.interval.ms",
        15_000,
        "Maximum of group.share.heartbeat.interval.ms, also for one group.",
        at_least(1),
    )
    group_share_assignment_interval_ms = integer(
        "group.share.assignment.interval.ms",
        1_000,
        "A new assignment of a share group is computed no sooner than this after the one before.",
        at_least(0),
        update=Update.CLUSTER_WIDE,
    )
    group_share_min_assignment_interval_ms = integer(
        "group.share.min.assignment.interval.ms",
        0,
        "Minimum of group.share.assignment.interval.ms, also for one group.",
        at_least(0),
    )
    group_share_max_assignment_interval_ms = integer(
        "group.share.max.assignment.interval.ms",
        15_000,
        "Maximum of group.share.assignment.interval.ms, also for one group.",
        at_least(0),
    )
    group_share_max_size = integer(
        "group.share.max.size",
        200,
        "Maximum number of members of a share group.",
        between(1, 1_000),
    )
    group_share_max_share_sessions = integer(
        "group.share.max.share.sessions",
        2_000,
        "Maximum number of share sessions of this broker: members of share groups that read from "
        "it.",
        at_least(1),
    )
    group_share_assignors = words(
        "group.share.assignors",
        (SHARE_ASSIGNOR,),
        "The assignor of share groups.",
        only((SHARE_ASSIGNOR,), "There is no other"),
    )
    group_share_initialize_retry_interval_ms = integer(
        "group.share.initialize.retry.interval.ms",
        30_000,
        "After so long the share coordinator is asked once more to begin the state of a share "
        "group's partition. At least offsets.commit.timeout.ms counts.",
        at_least(1),
        internal=True,
    )
    group_share_record_lock_duration_ms = integer(
        "group.share.record.lock.duration.ms",
        30_000,
        "For how long a share group's member has a record to itself.",
        between(1_000, 3_600_000),
    )
    group_share_min_record_lock_duration_ms = integer(
        "group.share.min.record.lock.duration.ms",
        15_000,
        "Minimum of group.share.record.lock.duration.ms, also for one group.",
        between(1_000, 30_000),
    )
    group_share_max_record_lock_duration_ms = integer(
        "group.share.max.record.lock.duration.ms",
        60_000,
        "Maximum of group.share.record.lock.duration.ms, also for one group.",
        between(30_000, 3_600_000),
    )
    group_share_delivery_count_limit = integer(
        "group.share.delivery.count.limit",
        5,
        "How often a record is delivered to a share group at most.",
        between(2, 10),
    )
    group_share_min_delivery_count_limit = integer(
        "group.share.min.delivery.count.limit",
        2,
        "Minimum of group.share.delivery.count.limit, also for one group.",
        between(2, 5),
    )
    group_share_max_delivery_count_limit = integer(
        "group.share.max.delivery.count.limit",
        10,
        "Maximum of group.share.delivery.count.limit, also for one group.",
        between(5, 25),
    )
    group_share_partition_max_record_locks = integer(
        "group.share.partition.max.record.locks",
        2_000,
        "How many records of a partition a share group's members have at a time at most.",
        between(100, 10_000),
    )
    group_share_min_partition_max_record_locks = integer(
        "group.share.min.partition.max.record.locks",
        100,
        "Minimum of group.share.partition.max.record.locks, also for one group.",
        between(100, 2_000),
    )
    group_share_max_partition_max_record_locks = integer(
        "group.share.max.partition.max.record.locks",
        4_000,
        "Maximum of group.share.partition.max.record.locks, also for one group.",
        between(2_000, 10_000),
    )
    errors_deadletterqueue_auto_create_topics_enable = boolean(
        "errors.deadletterqueue.auto.create.topics.enable",
        False,
        "Whether a topic of dead letters of a share group is created if it does not exist "
        "(KIP-1191).",
        update=Update.CLUSTER_WIDE,
    )
    errors_deadletterqueue_topic_name_prefix = string(
        "errors.deadletterqueue.topic.name.prefix",
        "dlq.",
        "How the names of topics of dead letters must begin; empty: in any way.",
        update=Update.CLUSTER_WIDE,
    )
