"""The settings of one topic: what was set for it, and else the broker's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from ottla.config.broker import unknown_name
from ottla.config.broker_log import CLEANUP_POLICIES, NO_REMOTE_STORAGE, TIMESTAMP_TYPES
from ottla.config.broker_server import COMPRESSION_TYPES
from ottla.config.error import ConfigError
from ottla.config.setting import (
    Settings,
    boolean,
    double,
    integer,
    long,
    optional_integer,
    string,
    words,
)
from ottla.config.validator import (
    at_least,
    between,
    gzip_level,
    list_of,
    one_of,
    only,
    throttled_replicas,
)
from ottla.config.value import LONG_MAX


class StorageSettings(Settings):
    """How a topic's partitions lie on the disk."""

    segment_bytes = integer(
        "segment.bytes",
        1_073_741_824,
        "Size at which a segment is closed and a new one begun.",
        at_least(1_048_576),
    )
    internal_segment_bytes = optional_integer(
        "internal.segment.bytes",
        "The same without a lower bound, for tests.",
        internal=True,
    )
    segment_ms = long(
        "segment.ms",
        604_800_000,
        "Age at which a segment is closed even when it is not full, so that retention and "
        "compaction can have it.",
        at_least(1),
    )
    segment_jitter_ms = long(
        "segment.jitter.ms",
        0,
        "Up to this much is taken off segment.ms, so that segments do not all close at once.",
        at_least(0),
    )
    segment_index_bytes = integer(
        "segment.index.bytes",
        10_485_760,
        "Largest offset or time index of a segment; a full index closes the segment.",
        at_least(4),
    )
    index_interval_bytes = integer(
        "index.interval.bytes",
        4096,
        "An index entry is written after about this many bytes of log.",
        at_least(0),
    )
    preallocate = boolean("preallocate", False, "Give a new segment its full size at once.")
    file_delete_delay_ms = long(
        "file.delete.delay.ms",
        60_000,
        "How long a deleted segment's files stay, renamed, for those who still read them.",
        at_least(0),
    )
    flush_messages = long(
        "flush.messages",
        LONG_MAX,
        "Flush a partition to the disk after this many records; 1 flushes before each "
        "acknowledgement.",
        at_least(1),
    )
    flush_ms = long(
        "flush.ms",
        LONG_MAX,
        "Flush a partition to the disk when its oldest unflushed record is this old.",
        at_least(0),
    )


class CleanupSettings(Settings):
    """What happens to a topic's old records."""

    cleanup_policy = words(
        "cleanup.policy",
        ("delete",),
        "delete removes old segments, compact keeps the newest record of each key; both may be "
        "given, none keeps everything.",
        list_of(*CLEANUP_POLICIES),
    )
    retention_ms = long(
        "retention.ms",
        604_800_000,
        "Records older than this may be deleted; -1 means never.",
        at_least(-1),
    )
    retention_bytes = long(
        "retention.bytes",
        -1,
        "Oldest segments are deleted while a partition is larger than this; -1 means no limit.",
    )
    min_cleanable_dirty_ratio = double(
        "min.cleanable.dirty.ratio",
        0.5,
        "Share of a log that must be uncompacted before it is compacted again.",
        between(0, 1),
    )
    min_compaction_lag_ms = long(
        "min.compaction.lag.ms", 0, "Records younger than this are not compacted away.", at_least(0)
    )
    max_compaction_lag_ms = long(
        "max.compaction.lag.ms",
        LONG_MAX,
        "Records older than this are compacted whatever the ratio.",
        at_least(1),
    )
    delete_retention_ms = long(
        "delete.retention.ms",
        86_400_000,
        "How long a tombstone stays after it was compacted, so that readers see the deletion.",
        at_least(0),
    )
    remote_storage_enable = boolean(
        "remote.storage.enable",
        False,
        "Tiered storage (KIP-405), which this broker does not have.",
        validator=only(
            False,
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        ),
    )
    remote_log_copy_disable = boolean(
        "remote.log.copy.disable",
        False,
        "Whether a tiered topic stops copying to the remote tier.",
        validator=only(False, NO_REMOTE_STORAGE),
    )
    remote_log_delete_on_disable = boolean(
        "remote.log.delete.on.disable",
        False,
        "Whether switching tiering off deletes what is in the remote tier.",
        validator=only(False, NO_REMOTE_STORAGE),
    )
    local_retention_ms = long(
        "local.retention.ms",
        -2,
        "Retention of the local part of a tiered log.",
        only(-2, NO_REMOTE_STORAGE),
    )
    local_retention_bytes = long(
        "local.retention.bytes",
        -2,
        "Retention of the local part of a tiered log.",
        only(-2, NO_REMOTE_STORAGE),
    )


class RecordSettings(Settings):
    """Which records a topic takes and how it keeps them."""

    max_message_bytes = integer(
        "max.message.bytes",
        1_048_588,
        "Largest record batch in bytes, after compression.",
        at_least(0),
    )
    compression_type = string(
        "compression.type",
        "producer",
        "How batches are stored: as the producer sent them, or compressed anew by the broker.",
        one_of(*COMPRESSION_TYPES),
    )
    compression_gzip_level = integer(
        "compression.gzip.level", -1, "Level for compression.type=gzip.", gzip_level()
    )
    compression_lz4_level = integer(
        "compression.lz4.level", 9, "Level for compression.type=lz4.", between(1, 17)
    )
    compression_zstd_level = integer(
        "compression.zstd.level", 3, "Level for compression.type=zstd.", between(-131_072, 22)
    )
    message_timestamp_type = string(
        "message.timestamp.type",
        "CreateTime",
        "Whose time a record carries: the producer's or that of the append.",
        one_of(*TIMESTAMP_TYPES),
    )
    message_timestamp_before_max_ms = long(
        "message.timestamp.before.max.ms",
        LONG_MAX,
        "A record whose time lies further in the past is refused (KIP-937).",
        at_least(0),
    )
    message_timestamp_after_max_ms = long(
        "message.timestamp.after.max.ms",
        3_600_000,
        "A record whose time lies further in the future is refused (KIP-937).",
        at_least(0),
    )


class ReplicationSettings(Settings):
    """What a topic asks of its replicas."""

    min_insync_replicas = integer(
        "min.insync.replicas",
        1,
        "Replicas that must have a record before a produce with acks=all is acknowledged.",
        at_least(1),
    )
    unclean_leader_election_enable = boolean(
        "unclean.leader.election.enable",
        False,
        "Let a replica that is not in sync lead when no other lives, at the price of lost records.",
    )
    leader_replication_throttled_replicas = words(
        "leader.replication.throttled.replicas",
        (),
        "Replicas whose leader's side of replication is throttled (KIP-73).",
        throttled_replicas(),
    )
    follower_replication_throttled_replicas = words(
        "follower.replication.throttled.replicas",
        (),
        "Replicas whose follower's side of replication is throttled (KIP-73).",
        throttled_replicas(),
    )


class TopicConfig(StorageSettings, CleanupSettings, RecordSettings, ReplicationSettings):
    """Every setting of a topic as an attribute named after it, dots as underscores.

    Made by `ottla.config.default.topic_config`, which also knows the broker's defaults.
    """

    overrides: Mapping[str, str]

    @property
    def compression_level(self) -> int | None:
        """The level for this topic's compression; None where that has no levels."""
        levels = {
            "gzip": self.compression_gzip_level,
            "lz4": self.compression_lz4_level,
            "zstd": self.compression_zstd_level,
        }
        return levels.get(self.compression_type)

    @classmethod
    def from_texts(cls, defaults: Mapping[str, str], overrides: Mapping[str, str]) -> Self:
        """The settings when these texts are set for the topic; raises ConfigError."""
        config = cls().load({**defaults, **overrides})
        config.overrides = dict(overrides)
        return config


def check_topic_overrides(defaults: Mapping[str, str], overrides: Mapping[str, str]) -> None:
    """Raise ConfigError, in Kafka's words, unless these may be set for a topic."""
    for name in overrides:
        if name not in TopicConfig.definitions:
            nearest = unknown_name(name, TopicConfig.definitions).partition(";")
            raise ConfigError(f"Unknown topic config name: {name}{nearest[1]}{nearest[2]}")
    config = TopicConfig.from_texts(defaults, overrides)
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        raise ConfigError(
            f"conflict topic config setting min.compaction.lag.ms "
            f"({config.min_compaction_lag_ms}) > max.compaction.lag.ms "
            f"({config.max_compaction_lag_ms})"
        )
