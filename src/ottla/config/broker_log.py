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
    """Where data is stored."""

    log_dir = string(
        "log.dir",
        "ottla-data",
        "The data folder, created if it does not exist.",
        kafka_default="/tmp/kafka-logs",
        why="A reboot deletes /tmp; a visible folder keeps the data.",
    )
    log_dirs = optional_words(
        "log.dirs", "The same; overrides log.dir. Only one folder is supported."
    )


class SegmentSettings(Settings):
    """Segments, indexes and flushing."""

    log_segment_bytes = integer(
        "log.segment.bytes",
        1_073_741_824,
        "Maximum size of a segment. A larger segment rolls.",
        at_least(1_048_576),
        update=_DYNAMIC,
    )
    log_roll_ms = optional_long(
        "log.roll.ms",
        "Age after which a segment rolls even if it is not full. Overrides log.roll.hours.",
        at_least(1),
        update=_DYNAMIC,
    )
    log_roll_hours = integer("log.roll.hours", 168, "The same in hours.", at_least(1))
    log_roll_jitter_ms = optional_long(
        "log.roll.jitter.ms",
        "Maximum random reduction of log.roll.ms, so that segments do not all roll at once.",
        at_least(0),
        update=_DYNAMIC,
    )
    log_roll_jitter_hours = integer("log.roll.jitter.hours", 0, "The same in hours.", at_least(0))
    log_index_size_max_bytes = integer(
        "log.index.size.max.bytes",
        10_485_760,
        "Maximum size of a segment's offset index or time index. A full index rolls the segment.",
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
        "log.preallocate", False, "Preallocate the file of a new segment.", update=_DYNAMIC
    )
    log_segment_delete_delay_ms = long(
        "log.segment.delete.delay.ms",
        60_000,
        "How long the renamed files of a deleted segment stay, for reads in progress.",
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
        "Flush a partition to the disk when its oldest unflushed record is this old. Default: "
        "log.flush.scheduler.interval.ms.",
        at_least(0),
        update=_DYNAMIC,
    )
    log_flush_scheduler_interval_ms = long(
        "log.flush.scheduler.interval.ms",
        LONG_MAX,
        "How often the broker checks which partitions to flush.",
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
        "How long after the start the log's periodic tasks begin.",
        at_least(0),
        internal=True,
    )


class RetentionSettings(Settings):
    """Retention and compaction."""

    log_retention_ms = optional_long(
        "log.retention.ms",
        "Records older than this may be deleted; -1: no limit. Overrides "
        "log.retention.minutes and log.retention.hours.",
        at_least(-1),
        update=_DYNAMIC,
    )
    log_retention_minutes = optional_integer(
        "log.retention.minutes",
        "The same in minutes. Overrides log.retention.hours.",
        at_least(-1),
    )
    log_retention_hours = integer("log.retention.hours", 168, "The same in hours.", at_least(-1))
    log_retention_bytes = long(
        "log.retention.bytes",
        -1,
        "The oldest segments are deleted while a partition is larger than this; -1: no limit.",
        at_least(-1),
        update=_DYNAMIC,
    )
    log_retention_check_interval_ms = long(
        "log.retention.check.interval.ms",
        300_000,
        "How often the broker checks for segments to delete.",
        at_least(1),
    )
    log_cleanup_policy = words(
        "log.cleanup.policy",
        ("delete",),
        "What happens to old records: delete deletes old segments, compact keeps the newest "
        "record of each key. Both can be combined; an empty list keeps everything.",
        list_of(*CLEANUP_POLICIES),
        update=_DYNAMIC,
    )
    log_cleaner_enable = boolean("log.cleaner.enable", True, "Run compaction.")
    log_cleaner_backoff_ms = long(
        "log.cleaner.backoff.ms",
        15_000,
        "How long the cleaner sleeps when there is nothing to compact.",
        at_least(0),
        update=_DYNAMIC,
    )
    log_cleaner_min_cleanable_ratio = double(
        "log.cleaner.min.cleanable.ratio",
        0.5,
        "Minimum ratio of dirty log to total log before a log is compacted again.",
        between(0, 1),
        update=_DYNAMIC,
    )
    log_cleaner_min_compaction_lag_ms = long(
        "log.cleaner.min.compaction.lag.ms",
        0,
        "Minimum age before compaction may remove a record.",
        at_least(0),
        update=_DYNAMIC,
    )
    log_cleaner_max_compaction_lag_ms = long(
        "log.cleaner.max.compaction.lag.ms",
        LONG_MAX,
        "Records older than this are compacted regardless of the dirty ratio.",
        at_least(1),
        update=_DYNAMIC,
    )
    log_cleaner_delete_retention_ms = long(
        "log.cleaner.delete.retention.ms",
        86_400_000,
        "How long a tombstone stays after it was first cleaned, so that consumers see the "
        "deletion.",
        at_least(0),
        update=_DYNAMIC,
    )


class TimestampSettings(Settings):
    """Timestamps of records, and tiered storage, which is not supported."""

    log_message_timestamp_type = string(
        "log.message.timestamp.type",
        "CreateTime",
        "The timestamp of a record: the producer's (CreateTime) or that of the append "
        "(LogAppendTime).",
        one_of(*TIMESTAMP_TYPES),
        update=_DYNAMIC,
    )
    log_message_timestamp_before_max_ms = long(
        "log.message.timestamp.before.max.ms",
        LONG_MAX,
        "Records with timestamps further in the past are rejected (KIP-937).",
        at_least(0),
        update=_DYNAMIC,
    )
    log_message_timestamp_after_max_ms = long(
        "log.message.timestamp.after.max.ms",
        3_600_000,
        "Records with timestamps further in the future are rejected (KIP-937).",
        at_least(0),
        update=_DYNAMIC,
    )
    remote_log_storage_system_enable = boolean(
        "remote.log.storage.system.enable",
        False,
        "Tiered storage (KIP-405), which is not supported.",
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
    log_remote_copy_lag_ms = long(
        "log.remote.copy.lag.ms",
        0,
        "Age at which segments are copied to the remote tier.",
        only(0, NO_REMOTE_STORAGE),
    )
    log_remote_copy_lag_bytes = long(
        "log.remote.copy.lag.bytes",
        -1,
        "Size of newer segments at which one is copied to the remote tier.",
        only(-1, NO_REMOTE_STORAGE),
    )
