"""What a segment holds, from the headers of its batches and its indexes."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.log import offset_index, time_index
from ottla.log.inspect.folder import Segment, SegmentReader, read_entries
from ottla.protocol.errors import ApiError


@dataclass(frozen=True, slots=True)
class SegmentSummary:
    """The whole batches of a segment. Times are None without one; `fault` is why the file could
    not be read to its end.
    """

    batches: int
    records: int
    next_offset: int
    first_timestamp: int | None
    last_timestamp: int | None
    size_bytes: int
    index_entries: int
    time_index_entries: int
    fault: str | None


def summary_of(segment: Segment) -> SegmentSummary:
    """Reads the headers of all batches, up to the first invalid one. Raises InspectError."""
    batches, records, next_offset, fault = 0, 0, segment.base_offset, None
    first_ms: list[int] = []
    last_ms: list[int] = []
    with SegmentReader(segment) as reader:
        try:
            for batch in reader.batches():
                if not batch.whole:
                    break
                header = batch.header
                batches += 1
                records += header.count
                next_offset = header.next_offset
                first_ms = [min([*first_ms, header.base_timestamp])]
                last_ms = [max([*last_ms, header.max_timestamp])]
        except ApiError as error:
            fault = str(error)
        if fault is None and reader.left_bytes:
            fault = f"{reader.left_bytes} bytes at the end are not a whole batch"
        return SegmentSummary(
            batches,
            records,
            next_offset,
            next(iter(first_ms), None),
            next(iter(last_ms), None),
            reader.size_bytes,
            len(read_entries(segment.index, offset_index.ENTRY)),
            len(read_entries(segment.time_index, time_index.ENTRY)),
            fault,
        )
