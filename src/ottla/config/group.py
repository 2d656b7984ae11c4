"""The settings of one group: its own (resource type 32), and else the broker's defaults.

`group_config` reads them. Kafka's counterparts are GroupConfig and GroupConfigManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Self

from ottla.config.broker import BrokerConfig, unknown_name
from ottla.config.default import BrokerVersion
from ottla.config.error import ConfigError
from ottla.config.group_bounds import GROUP_BOUNDS, GROUP_KINDS, number
from ottla.config.offset_reset import LATEST, OffsetReset, offset_reset, parse_offset_reset
from ottla.config.setting import (
    Setting,
    Settings,
    boolean,
    integer,
    long,
    optional_string,
    string,
    words,
)
from ottla.config.validator import at_least, one_of, only

INTERNAL_PREFIX: Final = "__"
"""Of the names of topics that share groups write no dead letters to."""
ISOLATION_LEVELS: Final = ("read_committed", "read_uncommitted")


class ConsumerSettings(Settings):
    """Of a consumer group (KIP-848)."""

    consumer_session_timeout_ms = integer(
        "consumer.session.timeout.ms",
        45_000,
        "A member of a consumer group that sends no heartbeat for this long is removed.",
        at_least(1),
    )
    consumer_heartbeat_interval_ms = integer(
        "consumer.heartbeat.interval.ms",
        5_000,
        "How often the members of a consumer group send heartbeats.",
        at_least(1),
    )
    consumer_assignment_interval_ms = integer(
        "consumer.assignment.interval.ms",
        1_000,
        "A new assignment of a consumer group is computed no sooner than this after the one before "
        "(KIP-1263).",
        at_least(0),
    )


class ShareSettings(Settings):
    """Of a share group (KIP-932)."""

    share_session_timeout_ms = integer(
        "share.session.timeout.ms",
        45_000,
        "A member of a share group that sends no heartbeat for this long is removed.",
        at_least(1),
    )
    share_heartbeat_interval_ms = integer(
        "share.heartbeat.interval.ms",
        5_000,
        "How often the members of a share group send heartbeats.",
        at_least(1),
    )
    share_record_lock_duration_ms = integer(
        "share.record.lock.duration.ms",
        30_000,
        "For how long a member of a share group has a record to itself.",
        at_least(1_000),
    )
    share_delivery_count_limit = integer(
        "share.delivery.count.limit",
        5,
        "How often a record is delivered to a share group at most.",
        at_least(2),
    )
    share_partition_max_record_locks = integer(
        "share.partition.max.record.locks",
        2_000,
        "How many records of a partition the members of a share group have at a time at most.",
        at_least(100),
    )
    share_auto_offset_reset = string(
        "share.auto.offset.reset",
        LATEST,
        "Where a share group begins to read a partition: at the earliest record, at the latest, or "
        "as long ago as a duration says (by_duration:PT1H).",
        offset_reset(),
    )
    share_isolation_level = string(
        "share.isolation.level",
        "read_uncommitted",
        "read_committed: a share group gets records of transactions once they are committed. "
        "read_uncommitted: it gets all, also those that were aborted.",
        one_of(*ISOLATION_LEVELS),
    )
    share_renew_acknowledge_enable = boolean(
        "share.renew.acknowledge.enable",
        True,
        "Whether a member may keep a record for another lock duration (KIP-1222).",
    )
    share_assignment_interval_ms = integer(
        "share.assignment.interval.ms",
        1_000,
        "A new assignment of a share group is computed no sooner than this after the one before.",
        at_least(0),
    )


class DeadLetterSettings(Settings):
    """Of the dead letters of a share group (KIP-1191)."""

    errors_deadletterqueue_topic_name = string(
        "errors.deadletterqueue.topic.name",
        "",
        "The topic of the dead letters of a share group; empty: it has none. The topic must allow "
        "it (errors.deadletterqueue.group.enable). Needs share.version 2.",
    )
    errors_deadletterqueue_copy_record_enable = boolean(
        "errors.deadletterqueue.copy.record.enable",
        False,
        "Whether a dead letter has the key and the value of the record.",
    )


class StreamsSettings(Settings):
    """Of a streams group (KIP-1071)."""

    streams_session_timeout_ms = integer(
        "streams.session.timeout.ms",
        45_000,
        "A member of a streams group that sends no heartbeat for this long is removed.",
        at_least(1),
    )
    streams_heartbeat_interval_ms = integer(
        "streams.heartbeat.interval.ms",
        5_000,
        "How often the members of a streams group send heartbeats.",
        at_least(1),
    )
    streams_num_standby_replicas = integer(
        "streams.num.standby.replicas",
        0,
        "Standby replicas of each task of a streams group.",
        at_least(0),
    )
    streams_initial_rebalance_delay_ms = integer(
        "streams.initial.rebalance.delay.ms",
        3_000,
        "How long a new streams group waits for more members before its first assignment.",
        at_least(0),
    )
    streams_assignment_interval_ms = integer(
        "streams.assignment.interval.ms",
        1_000,
        "A new assignment of a streams group is computed no sooner than this after the one before.",
        at_least(0),
    )
    streams_task_offset_interval_ms = integer(
        "streams.task.offset.interval.ms",
        60_000,
        "How often the members of a streams group say how far the states of their tasks are.",
        at_least(1),
        internal=True,
    )
    streams_acceptable_recovery_lag = long(
        "streams.acceptable.recovery.lag",
        10_000,
        "Told to the members of a streams group: from how many records behind on a task counts as "
        "caught up. Nothing is assigned by it, as in Apache Kafka: there are no warm-up tasks.",
        at_least(0),
        internal=True,
    )
    streams_rack_aware_assignment_tags = words(
        "streams.rack.aware.assignment.tags",
        (),
        "Tags of clients over whose values standby replicas of a streams group are spread.",
        only((), "Standby replicas are not spread over tags; leave it empty"),
    )
    streams_assignor_name = optional_string(
        "streams.assignor.name",
        "Which assignor the streams group has.",
        one_of("sticky"),
    )


class GroupConfig(ConsumerSettings, ShareSettings, DeadLetterSettings, StreamsSettings):
    """Every setting of a group as an attribute with its name, dots as underscores."""

    notes: tuple[str, ...] = ()
    """What of its own settings is not in force as it is stored, and why."""

    @property
    def offset_reset(self) -> OffsetReset:
        """share.auto.offset.reset."""
        return parse_offset_reset(self.share_auto_offset_reset)

    @property
    def reads_committed(self) -> bool:
        """share.isolation.level is read_committed."""
        return self.share_isolation_level == ISOLATION_LEVELS[0]

    @classmethod
    def stored(cls, broker: BrokerConfig, overrides: Mapping[str, str]) -> Self:
        """With settings that are stored already, and were valid once: the broker's bounds may have
        changed since. As in GroupConfig.evaluate, the nearest value within them is in force.
        """
        usable: dict[str, str] = {}
        notes: list[str] = []
        for name, text in overrides.items():
            try:
                value = _known(name).parse(text)
            except ConfigError as error:
                notes.append(str(error))
                continue
            usable[name] = text
            bounds = GROUP_BOUNDS.get(name)
            if bounds is None:
                continue
            capped = value
            if bounds.least is not None:
                capped = max(capped, number(broker, bounds.least))
            if bounds.most is not None:
                capped = min(capped, number(broker, bounds.most))
            if capped != value:
                usable[name] = str(capped)
                notes.append(f"{name} is {capped} and not {value}: the broker allows no other")
        config = cls().load({**group_defaults(broker), **usable})
        config.notes = tuple(notes)
        return config


def _known(name: str) -> Setting[Any]:
    definition = GroupConfig.definitions.get(name)
    if definition is None:
        nearest = unknown_name(name, GroupConfig.definitions).partition(";")
        raise ConfigError(f"Unknown group config name: {name}{nearest[1]}{nearest[2]}")
    return definition


def group_defaults(broker: BrokerConfig) -> dict[str, str]:
    """All settings of groups with a default in the broker's settings, as text."""
    return {name: str(number(broker, bounds.default)) for name, bounds in GROUP_BOUNDS.items()}


def group_config(broker: BrokerConfig, overrides: Mapping[str, str] | None = None) -> GroupConfig:
    """The settings in force of a group with these of its own, which are stored.

    Groups with equal settings share one object: it may be read at every heartbeat.
    """
    own = tuple(sorted(overrides.items())) if overrides else ()
    return _group_config(own, BrokerVersion(broker, broker.version))


@lru_cache(maxsize=1024)
def _group_config(overrides: tuple[tuple[str, str], ...], key: BrokerVersion) -> GroupConfig:
    return GroupConfig.stored(key.broker, dict(overrides))


def check_group_overrides(broker: BrokerConfig, overrides: Mapping[str, str]) -> None:
    """Raise ConfigError, in Kafka's words, unless a group can have these settings."""
    for name in overrides:
        _known(name)
    config = GroupConfig().load({**group_defaults(broker), **overrides})
    for name, (_, least, most) in GROUP_BOUNDS.items():
        if name not in overrides:
            continue
        value = number(config, name)
        if least is not None and value < number(broker, least):
            raise ConfigError(f"{name} must be greater than or equal to {least}")
        if most is not None and value > number(broker, most):
            raise ConfigError(f"{name} must be less than or equal to {most}")
    for kind in GROUP_KINDS:
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if number(config, session) <= number(config, heartbeat):
            raise ConfigError(f"{session} must be greater than {heartbeat}")
    if config.errors_deadletterqueue_topic_name.startswith(INTERNAL_PREFIX):
        raise ConfigError(
            "errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'"
        )
