"""When the settings let a segment's records go: by time, by size, to the cleaner. Pure.

Retention and compaction act by these rules, and the journey explains them with the same ones.
"""

from __future__ import annotations

from ottla.log.config import LogConfig


def expires_ms(largest_timestamp_ms: int, config: LogConfig) -> int | None:
    """A segment may be deleted after this time (retention.ms); None: not for its age."""
    if not config.cleanup_delete or config.retention_ms < 0:
        return None
    return largest_timestamp_ms + config.retention_ms


def missing_bytes(bytes_after: int, config: LogConfig) -> int | None:
    """How much the log must grow before a segment with `bytes_after` bytes behind it may be deleted
    (retention.bytes); 0 or less: it may be now; None: not for the log's size.
    """
    if not config.cleanup_delete or config.retention_bytes < 0:
        return None
    return config.retention_bytes - bytes_after


def cleanable_ms(largest_timestamp_ms: int, config: LogConfig) -> int | None:
    """A closed segment may be compacted from this time on (min.compaction.lag.ms); None: at once.
    Only whole segments are, so its newest record decides.
    """
    if config.min_compaction_lag_ms <= 0:
        return None
    return largest_timestamp_ms + config.min_compaction_lag_ms
