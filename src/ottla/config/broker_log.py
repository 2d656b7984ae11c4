"""Settings of the log on disk. Most are the default of a topic's setting (see `synonym.py`)."""

from __future__ import annotations

from ottla.config.setting import (
    Settings,
    Update,
    boolean,
    double,
    integer,
    long,
    optional_integer,
    optional_long,
    optional_words,
    string,
    words,
)
from ottla.config.validator import at_least, between, list_of, one_of, only
from ottla.config.value import LONG_MAX

CLEANUP_POLICIES = ("compact", "delete")
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
NO_REMOTE_STORAGE = "Tiered storage is not supported, only the default is allowed"

_DYNAMIC = Update.CLUSTER_WIDE


class FolderSettings(Settings):
    """Where the data lies."""

    log_dir = string(
        "log.dir",
        "ottla-data",
        "Folder of the data, made when it does not exist.",
        kafka_default="/tmp/kafka-logs",
        why="Data that a reboot wipes surprises people; a folder in sight does not.",
    )
    log_dirs = optional_words(
        "log.dirs", "The same, used before log.dir. Only one folder is supported."
    )


class SegmentSettings(Settings):
    """Segments, indexes and flushing."""

    log_segment_bytes = integer(
        "log.segment.bytes",
        1_073_741_824,
        "Size at which a segment is closed and a new one begun.",
        at_least(1_048_576),
        update=_DYNAMIC,
    )
    log_roll_ms = optional_long(
        "log.roll.ms",
        "Age at which a segment is closed even when it is not full. Counts before log.roll.hours.",
        at_least(1),
        update=_DYNAMIC,
    )
    log_roll_hours = integer("log.roll.hours", 168, "The same in hours.", at_least(1))
    log_roll_jitter_ms = optional_long(
        "log.roll.jitter.ms",
        "Up to this much is taken off log.roll.ms, so that segments do not all close at once.",
        at_least(0),
        update=_DYNAMIC,
    )
    log_roll_jitter_hours = integer("log.roll.jitter.hours", 0, "The same in hours.", at_least(0))
    log_index_size_max_bytes = integer(
        "log.index.size.max.bytes",
        10_485_760,
        "Largest offset or time index of a segment; a full index closes the segment.",
        at_least(4),
        update=_DYNAMIC,
    )
    log_index_interval_bytes = integer(
        "log.index.interval.bytes",
        4096,
        "An index entry is written after about this many bytes of log.",
        at_least(0),
        update=_DYNAMIC,
    )
    log_preallocate = boolean(
        "log.preallocate", False, "Give a new segment its full size at once.", update=_DYNAMIC
    )
    log_segment_delete_delay_ms = long(
        "log.segment.delete.delay.ms",
        60_000,
        "How long a deleted segment's files stay, renamed, for those who still read them.",
        at_least(0),
        update=_DYNAMIC,
    )
    log_flush_interval_messages = long(
        "log.flush.interval.messages",
        LONG_MAX,
        "Flush a partition to the disk after this many records; 1 flushes before each "
        "acknowledgement.",
        at_least(1),
        update=_DYNAMIC,
    )
    log_flush_interval_ms = optional_long(
        "log.flush.interval.ms",
        "Flush a partition to the disk when its oldest unflushed record is this old. Without it, "
        "log.flush.scheduler.interval.ms counts.",
        at_least(0),
        update=_DYNAMIC,
    )
    log_flush_scheduler_interval_ms = long(
        "log.flush.scheduler.interval.ms",
        LONG_MAX,
        "How often partitions are looked through for what is to be flushed.",
        at_least(1),
    )
    log_flush_offset_checkpoint_interval_ms = integer(
        "log.flush.offset.checkpoint.interval.ms",
        60_000,
        "How often the recovery points are written to their checkpoint file.",
        at_least(0),
    )
    log_initial_task_delay_ms = long(
        "log.initial.task.delay.ms",
        30_000,
        "How long after the start the log's regular tasks begin.",
        at_least(0),
        internal=True,
    )


class RetentionSettings(Settings):
    """Retention and compaction."""

    log_retention_ms = optional_long(
        "log.retention.ms",
        "Records older than this may be deleted; -1 means never. Counts before "
        "log.retention.minutes and log.retention.hours.",
        at_least(-1),
        update=_DYNAMIC,
    )
    log_retention_minutes = optional_integer(
        "log.retention.minutes",
        "The same in minutes. Counts before log.retention.hours.",
        at_least(-1),
    )
    log_retention_hours = integer("log.retention.hours", 168, "The same in hours.", at_least(-1))
    log_retention_bytes = long(
        "log.retention.bytes",
        -1,
        "Oldest segments are deleted while a partition is larger than this; -1 means no limit.",
        at_least(-1),
        update=_DYNAMIC,
    )
    log_retention_check_interval_ms = long(
        "log.retention.check.interval.ms",
        300_000,
        "How often partitions are looked through for segments to delete.",
        at_least(1),
    )
    log_cleanup_policy = words(
        "log.cleanup.policy",
        ("delete",),
        "What happens to old records: delete removes old segments, compact keeps the newest "
        "record of each key; both may be given, none keeps everything.",
        list_of(*CLEANUP_POLICIES),
        update=_DYNAMIC,
    )
    log_cleaner_enable = boolean("log.cleaner.enable", True, "Run compaction.")
    log_cleaner_backoff_ms = long(
        "log.cleaner.backoff.ms",
        15_000,
        "How long compaction sleeps when there is nothing to compact.",
        at_least(0),
        update=_DYNAMIC,
    )
    log_cleaner_min_cleanable_ratio = double(
        "log.cleaner.min.cleanable.ratio",
        0.5,
        "Share of a log that must be uncompacted before it is compacted again.",
        between(0, 1),
        update=_DYNAMIC,
    )
    log_cleaner_min_compaction_lag_ms = long(
        "log.cleaner.min.compaction.lag.ms",
        0,
        "Records younger than this are not compacted away.",
        at_least(0),
        update=_DYNAMIC,
    )
    log_cleaner_max_compaction_lag_ms = long(
        "log.cleaner.max.compaction.lag.ms",
        LONG_MAX,
        "Records older than this are compacted whatever the ratio.",
        at_least(1),
        update=_DYNAMIC,
    )
    log_cleaner_delete_retention_ms = long(
        "log.cleaner.delete.retention.ms",
        86_400_000,
        "How long a tombstone stays after it was compacted, so that readers see the deletion.",
        at_least(0),
        update=_DYNAMIC,
    )


class TimestampSettings(Settings):
    """Timestamps of records, and the tiered storage that is not there."""

    log_message_timestamp_type = string(
        "log.message.timestamp.type",
        "CreateTime",
        "Whose time a record carries: the producer's or that of the append.",
        one_of(*TIMESTAMP_TYPES),
        update=_DYNAMIC,
    )
    log_message_timestamp_before_max_ms = long(
        "log.message.timestamp.before.max.ms",
        LONG_MAX,
        "A record whose time lies further in the past is refused (KIP-937).",
        at_least(0),
        update=_DYNAMIC,
    )
    log_message_timestamp_after_max_ms = long(
        "log.message.timestamp.after.max.ms",
        3_600_000,
        "A record whose time lies further in the future is refused (KIP-937).",
        at_least(0),
        update=_DYNAMIC,
    )
    remote_log_storage_system_enable = boolean(
        "remote.log.storage.system.enable",
        False,
        "Tiered storage (KIP-405), which this broker does not have.",
        validator=only(False, NO_REMOTE_STORAGE),
    )
    log_local_retention_ms = long(
        "log.local.retention.ms",
        -2,
        "Retention of the local part of a tiered log.",
        only(-2, NO_REMOTE_STORAGE),
    )
    log_local_retention_bytes = long(
        "log.local.retention.bytes",
        -2,
        "Retention of the local part of a tiered log.",
        only(-2, NO_REMOTE_STORAGE),
    )
