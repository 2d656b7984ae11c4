"""When the settings allow the removal of records: by time, by size, by compaction. Pure.

Retention and compaction use these functions, and the journey explains them with the same ones.
"""

from __future__ import annotations

from ottla.log.config import LogConfig


def expires_ms(largest_timestamp_ms: int, config: LogConfig) -> int | None:
    """A segment may be deleted after this time (retention.ms); None: not because of its age."""
    if not config.cleanup_delete or config.retention_ms < 0:
        return None
    return largest_timestamp_ms + config.retention_ms


def missing_bytes(bytes_after: int, config: LogConfig) -> int | None:
    """How much the log must grow before a segment with `bytes_after` bytes after it may be deleted
    (retention.bytes). 0 or less: it may be deleted now. None: not because of the log's size.
    """
    if not config.cleanup_delete or config.retention_bytes < 0:
        return None
    return config.retention_bytes - bytes_after


def cleanable_ms(largest_timestamp_ms: int, config: LogConfig) -> int | None:
    """A closed segment may be compacted from this time on (min.compaction.lag.ms); None: at once.

    Only whole segments are compacted, so the newest record decides.
    """
    if config.min_compaction_lag_ms <= 0:
        return None
    return largest_timestamp_ms + config.min_compaction_lag_ms
