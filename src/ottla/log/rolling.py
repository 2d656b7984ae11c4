"""When a log's last segment rolls (Kafka's LogSegment.shouldRoll)."""

from typing import Final

from ottla.log.config import LogConfig
from ottla.log.segment import Segment
from ottla.records.header import BatchHeader

LARGEST_RELATIVE_OFFSET: Final = 2**31 - 1
"""An index entry has four bytes for the relative offset."""
_OFFSET_ENTRY_BYTES: Final = 8
_TIME_ENTRY_BYTES: Final = 12


def must_roll(
    segment: Segment, size_bytes: int, header: BatchHeader, now_ms: int, config: LogConfig
) -> bool:
    """Whether a write of this size, ending with `header`, needs a new segment."""
    if size_bytes > config.segment_bytes - segment.size_bytes:
        return True
    if header.last_offset - segment.base_offset > LARGEST_RELATIVE_OFFSET:
        return True
    if segment.size_bytes:
        time_ms = header.max_timestamp if segment.first_timestamp() >= 0 else now_ms
        if time_ms > rolls_ms(segment, config):
            return True
    return _indexes_full(segment, config.segment_index_bytes)


def rolls_ms(segment: Segment, config: LogConfig) -> int:
    """A batch with a later timestamp than this begins a new segment. The age counts from the first
    batch's timestamp or, if it has none, from the segment's creation.
    """
    first_ms = segment.first_timestamp()
    began_ms = first_ms if first_ms >= 0 else segment.created_ms
    return began_ms + config.roll_ms - segment.jitter_ms


def _indexes_full(segment: Segment, segment_index_bytes: int) -> bool:
    """Whether the next entry would exceed `segment.index.bytes`."""
    return (
        len(segment.offset_index) + 1 > segment_index_bytes // _OFFSET_ENTRY_BYTES
        or len(segment.time_index) + 2 > segment_index_bytes // _TIME_ENTRY_BYTES
    )
