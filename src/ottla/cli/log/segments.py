"""`ottla log segments`."""

from __future__ import annotations

from pathlib import Path

from ottla.cli.command import command
from ottla.cli.log.options import PARTITION_FOLDER
from ottla.cli.options import AS_JSON
from ottla.cli.rows import column, emit, only_json, row
from ottla.cli.screen import note
from ottla.log import offset_index, time_index
from ottla.log.inspect.folder import Segment, SegmentReader, read_entries, read_partition
from ottla.messaging.rendering import ms_text
from ottla.protocol.errors import ApiError


@row
class SegmentRow:
    """A segment; `fault` is why it could not be read to its end."""

    file: str = only_json()
    base_offset: int
    next_offset: int
    batches: int
    records: int
    bytes: int
    first_timestamp: int | None = column("first time", lambda each: ms_text(each.first_timestamp))
    last_timestamp: int | None = column("last time", lambda each: ms_text(each.last_timestamp))
    index_entries: int = only_json()
    time_index_entries: int = only_json()
    fault: str | None = only_json()


@command()
@PARTITION_FOLDER
@AS_JSON
def segments(folder: Path, as_json: bool) -> None:
    """Show a partition's segments."""
    rows = [read_segment(segment) for segment in read_partition(folder)]
    emit(rows, as_json=as_json)
    for each in () if as_json else rows:
        if each.fault:
            note(f"{each.file}: {each.fault}. For details: ottla log check {folder}")


def read_segment(segment: Segment) -> SegmentRow:
    """Read the headers of all batches, up to the first invalid one."""
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
        return SegmentRow(
            segment.log.name,
            segment.base_offset,
            next_offset,
            batches,
            records,
            reader.size_bytes,
            next(iter(first_ms), None),
            next(iter(last_ms), None),
            len(read_entries(segment.index, offset_index.ENTRY)),
            len(read_entries(segment.time_index, time_index.ENTRY)),
            fault,
        )
