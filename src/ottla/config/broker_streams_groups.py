"""Settings of streams groups (KIP-1071): the defaults of a group's own settings, their bounds."""

from __future__ import annotations

from ottla.config.setting import Settings, Update, integer, long
from ottla.config.validator import at_least
from ottla.config.value import INT_MAX


class StreamsGroupSettings(Settings):
    """Each must lie within its own minimum and maximum; see `group_bounds`."""

    group_streams_session_timeout_ms = integer(
        "group.streams.session.timeout.ms",
        45_000,
        "A member of a streams group that sends no heartbeat for this long is removed.",
        at_least(1),
    )
    group_streams_min_session_timeout_ms = integer(
        "group.streams.min.session.timeout.ms",
        45_000,
        "Minimum of group.streams.session.timeout.ms, also for one group.",
        at_least(1),
    )
    group_streams_max_session_timeout_ms = integer(
        "group.streams.max.session.timeout.ms",
        60_000,
        "Maximum of group.streams.session.timeout.ms, also for one group.",
        at_least(1),
    )
    group_streams_heartbeat_interval_ms = integer(
        "group.streams.heartbeat.interval.ms",
        5_000,
        "How often members of streams groups send heartbeats.",
        at_least(1),
    )
    group_streams_min_heartbeat_interval_ms = integer(
        "group.streams.min.heartbeat.interval.ms",
        5_000,
        "Minimum of group.streams.heartbeat.interval.ms, also for one group.",
        at_least(1),
    )
    group_streams_max_heartbeat_interval_ms = integer(
        "group.streams.max.heartbeat.interval.ms",
        15_000,
        "Maximum of group.streams.heartbeat.interval.ms, also for one group.",
        at_least(1),
    )
    group_streams_assignment_interval_ms = integer(
        "group.streams.assignment.interval.ms",
        1_000,
        "A new assignment of a streams group is computed no sooner than this after the one before.",
        at_least(0),
        update=Update.CLUSTER_WIDE,
    )
    group_streams_min_assignment_interval_ms = integer(
        "group.streams.min.assignment.interval.ms",
        0,
        "Minimum of group.streams.assignment.interval.ms, also for one group.",
        at_least(0),
    )
    group_streams_max_assignment_interval_ms = integer(
        "group.streams.max.assignment.interval.ms",
        15_000,
        "Maximum of group.streams.assignment.interval.ms, also for one group.",
        at_least(0),
    )
    group_streams_num_standby_replicas = integer(
        "group.streams.num.standby.replicas",
        0,
        "Standby replicas of each task of a streams group.",
        at_least(0),
    )
    group_streams_max_standby_replicas = integer(
        "group.streams.max.standby.replicas",
        2,
        "Maximum of group.streams.num.standby.replicas, also for one group.",
        at_least(0),
    )
    group_streams_max_size = integer(
        "group.streams.max.size",
        INT_MAX,
        "Maximum number of members of a streams group.",
        at_least(1),
    )
    group_streams_initial_rebalance_delay_ms = integer(
        "group.streams.initial.rebalance.delay.ms",
        3_000,
        "How long a new streams group waits for more members before its first assignment.",
        at_least(0),
    )
    group_streams_task_offset_interval_ms = integer(
        "group.streams.task.offset.interval.ms",
        60_000,
        "How often members of streams groups say how far the states of their tasks are.",
        at_least(1),
        internal=True,
    )
    group_streams_min_task_offset_interval_ms = integer(
        "group.streams.min.task.offset.interval.ms",
        15_000,
        "Minimum of group.streams.task.offset.interval.ms, also for one group.",
        at_least(1),
        internal=True,
    )
    group_streams_acceptable_recovery_lag = long(
        "group.streams.acceptable.recovery.lag",
        10_000,
        "Told to the members of streams groups: from how many records behind on a task counts as "
        "caught up. Nothing is assigned by it, as in Apache Kafka: there are no warm-up tasks.",
        at_least(0),
        internal=True,
    )
