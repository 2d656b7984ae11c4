"""`ottla log segments`."""

from __future__ import annotations

from pathlib import Path

from ottla.cli.command import command
from ottla.cli.log.options import PARTITION_FOLDER
from ottla.cli.options import AS_JSON
from ottla.cli.rows import column, emit, only_json, row
from ottla.cli.screen import note
from ottla.log.inspect.folder import Segment, read_partition
from ottla.log.inspect.summary import summary_of
from ottla.messaging.rendering import ms_text


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
    rows = [segment_row(segment) for segment in read_partition(folder)]
    emit(rows, as_json=as_json)
    for each in () if as_json else rows:
        if each.fault:
            note(f"{each.file}: {each.fault}. For details: ottla log check {folder}")


def segment_row(segment: Segment) -> SegmentRow:
    found = summary_of(segment)
    return SegmentRow(
        segment.log.name,
        segment.base_offset,
        found.next_offset,
        found.batches,
        found.records,
        found.size_bytes,
        found.first_timestamp,
        found.last_timestamp,
        found.index_entries,
        found.time_index_entries,
        found.fault,
    )
