"""The settings of one partition's log; defaults are Kafka's."""

from dataclasses import dataclass, field
from typing import Final

from ottla.records.compression import Compression
from ottla.records.header import TimestampType

FOREVER_MS: Final = 2**63 - 1

_COMPRESSION_NAMES: Final = {
    "uncompressed": Compression.none,
    "gzip": Compression.gzip,
    "snappy": Compression.snappy,
    "lz4": Compression.lz4,
    "zstd": Compression.zstd,
}


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Immutable, so that thousands of partitions can share one."""

    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: int = 7 * 24 * 3600 * 1000
    segment_jitter_ms: int = 0
    retention_bytes: int = -1
    retention_ms: int = 7 * 24 * 3600 * 1000
    index_interval_bytes: int = 4096
    segment_index_bytes: int = 10 * 1024 * 1024
    max_message_bytes: int = 1024 * 1024 + 12
    flush_messages: int = FOREVER_MS
    flush_ms: int = FOREVER_MS
    cleanup_delete: bool = True
    cleanup_compact: bool = False
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = FOREVER_MS
    delete_retention_ms: int = 24 * 3600 * 1000
    min_cleanable_dirty_ratio: float = 0.5
    compression_type: str = "producer"
    compression_level: int | None = None
    timestamp_type: str = "CreateTime"
    timestamp_before_max_ms: int = FOREVER_MS
    timestamp_after_max_ms: int = 3600 * 1000
    file_delete_delay_ms: int = 60 * 1000
    preallocate: bool = False

    stamped_type: TimestampType = field(init=False, repr=False, compare=False)
    """`timestamp_type` as in a batch's header. An attribute, because each append asks for it."""
    stored_compression: Compression | None = field(init=False, repr=False, compare=False)
    """The compression of stored batches; None keeps the producer's."""

    def __post_init__(self) -> None:
        stamps = self.timestamp_type == "LogAppendTime"
        stamped = TimestampType.log_append_time if stamps else TimestampType.create_time
        object.__setattr__(self, "stamped_type", stamped)
        stored = _COMPRESSION_NAMES.get(self.compression_type)
        object.__setattr__(self, "stored_compression", stored)

    @property
    def preallocate_bytes(self) -> int:
        """The initial size of a new segment's file."""
        return self.segment_bytes if self.preallocate else 0

    @property
    def roll_ms(self) -> int:
        """The maximum age of the active segment; a compacted log rolls earlier, in time for the
        cleaner.
        """
        if self.cleanup_compact and self.max_compaction_lag_ms > 0:
            return min(self.segment_ms, self.max_compaction_lag_ms)
        return self.segment_ms
