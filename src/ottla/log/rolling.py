"""When a log's last segment is closed and another begun (Kafka's LogSegment.shouldRoll)."""

from typing import Final

from ottla.log.config import LogConfig
from ottla.log.segment import Segment
from ottla.records.header import BatchHeader

LARGEST_RELATIVE_OFFSET: Final = 2**31 - 1
"""An index entry has four bytes for it."""
_OFFSET_ENTRY_BYTES: Final = 8
_TIME_ENTRY_BYTES: Final = 12


def must_roll(
    segment: Segment, size_bytes: int, header: BatchHeader, now_ms: int, config: LogConfig
) -> bool:
    """Whether a write of this size, with `header` its last batch's, wants a new segment."""
    if size_bytes > config.segment_bytes - segment.size_bytes:
        return True
    if header.last_offset - segment.base_offset > LARGEST_RELATIVE_OFFSET:
        return True
    if segment.size_bytes and (
        segment.age_ms(header.max_timestamp, now_ms) > config.roll_ms - segment.jitter_ms
    ):
        return True
    return _indexes_full(segment, config.segment_index_bytes)


def _indexes_full(segment: Segment, segment_index_bytes: int) -> bool:
    """Whether one more entry would not fit `segment.index.bytes`."""
    return (
        len(segment.offset_index) + 1 > segment_index_bytes // _OFFSET_ENTRY_BYTES
        or len(segment.time_index) + 2 > segment_index_bytes // _TIME_ENTRY_BYTES
    )
