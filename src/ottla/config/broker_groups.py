"""Settings of consumer groups of the newer protocol (KIP-848)."""

from __future__ import annotations

from ottla.config.setting import Settings, Update, integer, string, words
from ottla.config.validator import at_least, one_of, only
from ottla.config.value import INT_MAX

ASSIGNORS = ("uniform", "range")


class ConsumerGroupSettings(Settings):
    """What the coordinator of `group.protocol=consumer` does; classic clients choose their own.

    Each of the three times must lie within its own minimum and maximum.
    """

    group_consumer_session_timeout_ms = integer(
        "group.consumer.session.timeout.ms",
        45_000,
        "A member of a consumer group (group.protocol=consumer) that sends no heartbeat for this "
        "long is removed.",
        at_least(1),
    )
    group_consumer_min_session_timeout_ms = integer(
        "group.consumer.min.session.timeout.ms",
        45_000,
        "Minimum of group.consumer.session.timeout.ms.",
        at_least(1),
    )
    group_consumer_max_session_timeout_ms = integer(
        "group.consumer.max.session.timeout.ms",
        60_000,
        "Maximum of group.consumer.session.timeout.ms.",
        at_least(1),
    )
    group_consumer_heartbeat_interval_ms = integer(
        "group.consumer.heartbeat.interval.ms",
        5_000,
        "How often members of consumer groups send heartbeats.",
        at_least(1),
    )
    group_consumer_min_heartbeat_interval_ms = integer(
        "group.consumer.min.heartbeat.interval.ms",
        5_000,
        "Minimum of group.consumer.heartbeat.interval.ms.",
        at_least(1),
    )
    group_consumer_max_heartbeat_interval_ms = integer(
        "group.consumer.max.heartbeat.interval.ms",
        15_000,
        "Maximum of group.consumer.heartbeat.interval.ms.",
        at_least(1),
    )
    group_consumer_assignment_interval_ms = integer(
        "group.consumer.assignment.interval.ms",
        1_000,
        "A new assignment of a consumer group is computed no sooner than this after the one before "
        "(KIP-1263).",
        at_least(0),
        update=Update.CLUSTER_WIDE,
    )
    group_consumer_min_assignment_interval_ms = integer(
        "group.consumer.min.assignment.interval.ms",
        0,
        "Minimum of group.consumer.assignment.interval.ms.",
        at_least(0),
    )
    group_consumer_max_assignment_interval_ms = integer(
        "group.consumer.max.assignment.interval.ms",
        15_000,
        "Maximum of group.consumer.assignment.interval.ms.",
        at_least(0),
    )
    group_consumer_regex_refresh_interval_ms = integer(
        "group.consumer.regex.refresh.interval.ms",
        600_000,
        "How often regular expressions of consumer groups are matched again, besides when topics "
        "are created or deleted.",
        at_least(10_000),
        internal=True,
    )
    group_consumer_max_size = integer(
        "group.consumer.max.size",
        INT_MAX,
        "Maximum number of members of a consumer group.",
        at_least(1),
    )
    group_consumer_assignors = words(
        "group.consumer.assignors",
        ASSIGNORS,
        "The assignors that members can choose; the first one is the default.",
        only(ASSIGNORS, "There are no others, and uniform is the default"),
    )
    group_consumer_migration_policy = string(
        "group.consumer.migration.policy",
        "bidirectional",
        "Whether a group with members changes its type: to a consumer group when a member of the "
        "consumer protocol joins (upgrade), to a classic group when the last of them has gone "
        "(downgrade), both, or neither (disabled). An empty group always does.",
        one_of("bidirectional", "upgrade", "downgrade", "disabled", ignore_case=True),
    )
