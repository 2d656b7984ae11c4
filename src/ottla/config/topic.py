"""The settings of a topic: its own settings, and else the broker's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Self

from ottla.config.broker import unknown_name
from ottla.config.broker_log import CLEANUP_POLICIES, NO_REMOTE_STORAGE, TIMESTAMP_TYPES
from ottla.config.broker_server import (
    COMPRESSION_TYPES,
    MAX_RECORD_BYTES,
    ONE_DECOMPRESSED_SIZE,
)
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
    """How a topic's partitions are stored on disk."""

    segment_bytes = integer(
        "segment.bytes",
        1_073_741_824,
        "Maximum size of a segment. A larger segment rolls.",
        at_least(1_048_576),
    )
    internal_segment_bytes = optional_integer(
        "internal.segment.bytes",
        "The same without a minimum, for tests.",
        internal=True,
    )
    segment_ms = long(
        "segment.ms",
        604_800_000,
        "Age after which a segment rolls even if it is not full, so that retention and "
        "compaction can process it.",
        at_least(1),
    )
    segment_jitter_ms = long(
        "segment.jitter.ms",
        0,
        "Maximum random reduction of segment.ms, so that segments do not all roll at once.",
        at_least(0),
    )
    segment_index_bytes = integer(
        "segment.index.bytes",
        10_485_760,
        "Maximum size of a segment's offset index or time index. A full index rolls the segment.",
        at_least(4),
    )
    index_interval_bytes = integer(
        "index.interval.bytes",
        4096,
        "An index entry is written after about this many bytes of log.",
        at_least(0),
    )
    preallocate = boolean("preallocate", False, "Preallocate the file of a new segment.")
    file_delete_delay_ms = long(
        "file.delete.delay.ms",
        60_000,
        "How long the renamed files of a deleted segment stay, for reads in progress.",
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
        "delete deletes old segments, compact keeps the newest record of each key. Both can be "
        "combined; an empty list keeps everything.",
        list_of(*CLEANUP_POLICIES),
    )
    retention_ms = long(
        "retention.ms",
        604_800_000,
        "Records older than this may be deleted; -1: no limit.",
        at_least(-1),
    )
    retention_bytes = long(
        "retention.bytes",
        -1,
        "The oldest segments are deleted while a partition is larger than this; -1: no limit.",
    )
    min_cleanable_dirty_ratio = double(
        "min.cleanable.dirty.ratio",
        0.5,
        "Minimum ratio of dirty log to total log before a log is compacted again.",
        between(0, 1),
    )
    min_compaction_lag_ms = long(
        "min.compaction.lag.ms",
        0,
        "Minimum age before compaction may remove a record.",
        at_least(0),
    )
    max_compaction_lag_ms = long(
        "max.compaction.lag.ms",
        LONG_MAX,
        "Records older than this are compacted regardless of the dirty ratio.",
        at_least(1),
    )
    delete_retention_ms = long(
        "delete.retention.ms",
        86_400_000,
        "How long a tombstone stays after it was first cleaned, so that consumers see the "
        "deletion.",
        at_least(0),
    )
    remote_storage_enable = boolean(
        "remote.storage.enable",
        False,
        "Tiered storage (KIP-405), which is not supported.",
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
        "Whether disabling tiering deletes the remote data.",
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
    remote_copy_lag_ms = long(
        "remote.copy.lag.ms",
        0,
        "Age at which segments are copied to the remote tier.",
        only(0, NO_REMOTE_STORAGE),
    )
    remote_copy_lag_bytes = long(
        "remote.copy.lag.bytes",
        -1,
        "Size of newer segments at which one is copied to the remote tier.",
        only(-1, NO_REMOTE_STORAGE),
    )
    errors_deadletterqueue_group_enable = boolean(
        "errors.deadletterqueue.group.enable",
        False,
        "Whether share groups may write dead letters into the topic (KIP-1191).",
    )


class RecordSettings(Settings):
    """Which records a topic accepts and how it stores them."""

    max_message_bytes = integer(
        "max.message.bytes",
        1_048_588,
        "Maximum size of a record batch in bytes, after compression.",
        at_least(0),
    )
    compression_type = string(
        "compression.type",
        "producer",
        "Compression of stored batches: as sent by the producer, or recompressed by the broker.",
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
    max_decompressed_message_bytes = integer(
        "max.decompressed.message.bytes",
        MAX_RECORD_BYTES,
        "Maximum size of a record in bytes, once decompressed.",
        only(MAX_RECORD_BYTES, ONE_DECOMPRESSED_SIZE),
    )
    message_timestamp_type = string(
        "message.timestamp.type",
        "CreateTime",
        "The timestamp of a record: the producer's (CreateTime) or that of the append "
        "(LogAppendTime).",
        one_of(*TIMESTAMP_TYPES),
    )
    message_timestamp_before_max_ms = long(
        "message.timestamp.before.max.ms",
        LONG_MAX,
        "Records with timestamps further in the past are rejected (KIP-937).",
        at_least(0),
    )
    message_timestamp_after_max_ms = long(
        "message.timestamp.after.max.ms",
        3_600_000,
        "Records with timestamps further in the future are rejected (KIP-937).",
        at_least(0),
    )


class ReplicationSettings(Settings):
    """How a topic is replicated."""

    min_insync_replicas = integer(
        "min.insync.replicas",
        1,
        "Number of in-sync replicas that must have a record before acks=all is acknowledged.",
        at_least(1),
    )
    unclean_leader_election_enable = boolean(
        "unclean.leader.election.enable",
        False,
        "Elect a replica that is not in sync if no other is alive. This can lose records.",
    )
    leader_replication_throttled_replicas = words(
        "leader.replication.throttled.replicas",
        (),
        "Replicas for which replication is throttled on the leader (KIP-73).",
        throttled_replicas(),
    )
    follower_replication_throttled_replicas = words(
        "follower.replication.throttled.replicas",
        (),
        "Replicas for which replication is throttled on the follower (KIP-73).",
        throttled_replicas(),
    )


class TopicConfig(StorageSettings, CleanupSettings, RecordSettings, ReplicationSettings):
    """Every topic setting as an attribute with its name, dots as underscores.

    Created by `ottla.config.default.topic_config`, which also knows the broker's defaults.
    """

    overrides: Mapping[str, str]
    ignored: tuple[str, ...] = ()
    """The reason for each override that cannot be used; see `stored`."""

    @property
    def compression_level(self) -> int | None:
        """The level for this topic's compression; None if the codec has no levels."""
        levels = {
            "gzip": self.compression_gzip_level,
            "lz4": self.compression_lz4_level,
            "zstd": self.compression_zstd_level,
        }
        return levels.get(self.compression_type)

    @classmethod
    def from_texts(cls, defaults: Mapping[str, str], overrides: Mapping[str, str]) -> Self:
        """The settings with these overrides. Raises ConfigError."""
        config = cls().load({**defaults, **overrides})
        config.overrides = dict(overrides)
        return config

    @classmethod
    def stored(cls, defaults: Mapping[str, str], overrides: Mapping[str, str]) -> Self:
        """The settings with overrides that are stored already: those that cannot be used are
        ignored, so that they stop no broker. Kafka 3.9 may have stored them.
        """
        usable, ignored = _usable(overrides)
        config = cls().load({**defaults, **usable})
        config.overrides, config.ignored = dict(overrides), tuple(ignored)
        return config


_REMOVED: Final = frozenset(
    (
        "message.format.version",
        "message.timestamp.difference.max.ms",
        "message.downconversion.enable",
    )
)
"""Topic settings of Kafka 3 that have no effect in Kafka 4."""
_SMALLEST_SEGMENT_BYTES: Final = 14
"""Kafka 3.9's minimum (LegacyRecord.RECORD_OVERHEAD_V0); that of KIP-1030 is for new values."""


def _usable(overrides: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The overrides that can be used, and the reasons why the others cannot."""
    usable: dict[str, str] = {}
    ignored: list[str] = []
    for name, text in overrides.items():
        definition = TopicConfig.definitions.get(name)
        if definition is None:
            if name not in _REMOVED:
                ignored.append(unknown_name(name, TopicConfig.definitions))
            continue
        try:
            definition.parse(text)
        except ConfigError as error:
            if name == "segment.bytes" and _is_small_segment(text):
                usable.setdefault("internal.segment.bytes", text)
            else:
                ignored.append(str(error))
        else:
            usable[name] = text
    return usable, ignored


def _is_small_segment(text: str) -> bool:
    try:
        size_bytes = TopicConfig.internal_segment_bytes.parse(text)
    except ConfigError:
        return False
    return size_bytes is not None and size_bytes >= _SMALLEST_SEGMENT_BYTES


def check_topic_overrides(
    defaults: Mapping[str, str],
    overrides: Mapping[str, str],
    stored: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Raise ConfigError, in Kafka's words, unless these can be set for a topic.

    Those that are `stored` with the same value are not checked.
    """
    kept = {name: text for name, text in overrides.items() if stored.get(name) == text}
    overrides = {name: text for name, text in overrides.items() if name not in kept}
    for name in overrides:
        if name not in TopicConfig.definitions:
            nearest = unknown_name(name, TopicConfig.definitions).partition(";")
            raise ConfigError(f"Unknown topic config name: {name}{nearest[1]}{nearest[2]}")
    config = TopicConfig.from_texts(defaults, {**_usable(kept)[0], **overrides})
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        raise ConfigError(
            f"conflict topic config setting min.compaction.lag.ms "
            f"({config.min_compaction_lag_ms}) > max.compaction.lag.ms "
            f"({config.max_compaction_lag_ms})"
        )
