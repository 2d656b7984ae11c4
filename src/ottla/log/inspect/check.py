"""A check of a partition's files: batches, their order and checksums, and the indexes.

It checks Kafka's format: offsets and leader epochs that only grow, each batch within its segment, a
matching CRC-32C, as many records as the header states; an offset index whose entries are (last
offset of a batch, its position), and a time index whose entries are (largest time so far, an offset
of the batch that has it). Gaps between offsets are valid: compaction leaves them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ottla.log import offset_index, time_index
from ottla.log.inspect.folder import (
    Batch,
    Segment,
    SegmentReader,
    read_entries,
    read_partition,
)
from ottla.protocol.errors import ApiError
from ottla.records.header import ensure_crc
from ottla.records.iterate import iterate_records


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong in a file, and at which byte of it."""

    file: str
    position: int
    fault: str


@dataclass(slots=True)
class Checked:
    """The result for one partition. A torn tail is not a fault: the next start removes it."""

    folder: Path
    segments: int = 0
    batches: int = 0
    records: int = 0
    size_bytes: int = 0
    start_offset: int | None = None
    next_offset: int = 0
    leader_epoch: int = -1
    torn_bytes: int = 0
    faults: list[Fault] = field(default_factory=list)

    def fault(self, path: Path, position: int, what: str) -> None:
        self.faults.append(Fault(path.name, position, what))


def check_partition(folder: Path) -> Checked:
    """Read every byte of the partition's segments and indexes."""
    segments = read_partition(folder)
    checked = Checked(folder, segments=len(segments), next_offset=segments[0].base_offset)
    for number, segment in enumerate(segments):
        after = segments[number + 1].base_offset if number + 1 < len(segments) else None
        # Read before the log: a broker that is writing adds the bytes first, then the entry.
        offsets = read_entries(segment.index, offset_index.ENTRY)
        times = read_entries(segment.time_index, time_index.ENTRY)
        seen = check_segment(checked, segment, after)
        check_offset_index(checked, segment, seen, offsets)
        check_time_index(checked, segment, seen, times)
    return checked


def check_segment(checked: Checked, segment: Segment, after: int | None) -> list[Batch]:
    """Check the batches; `after` is the next segment's base offset, None for the active one."""
    seen: list[Batch] = []
    checked.next_offset = max(checked.next_offset, segment.base_offset)
    with SegmentReader(segment) as reader:
        checked.size_bytes += reader.size_bytes
        try:
            for batch in reader.batches():
                if batch.whole:
                    check_batch(checked, segment, batch, reader.read(batch), after)
                    seen.append(batch)
        except ApiError as error:
            checked.fault(segment.log, reader.position, str(error))
            return seen
        if reader.left_bytes and after is None:
            checked.torn_bytes = reader.left_bytes
        elif reader.left_bytes:
            checked.fault(
                segment.log, reader.position, f"{reader.left_bytes} bytes are not a batch"
            )
    return seen


def check_batch(
    checked: Checked, segment: Segment, batch: Batch, data: bytes, after: int | None
) -> None:
    header, found = batch.header, []
    if header.base_offset < checked.next_offset:
        found.append(f"offset {header.base_offset}, expected {checked.next_offset} or more")
    if after is not None and header.last_offset >= after:
        found.append(f"offset {header.last_offset} belongs in segment {after}")
    if header.leader_epoch < checked.leader_epoch:
        found.append(f"leader epoch {header.leader_epoch} after {checked.leader_epoch}")
    try:
        ensure_crc(header, data)
        # Walks every record, so it finds wrong counts and lengths.
        checked.records += sum(1 for _ in iterate_records(data, header))
    except ApiError as error:
        found.append(str(error))
    for what in found:
        checked.fault(segment.log, batch.position, what)
    if checked.start_offset is None:
        checked.start_offset = header.base_offset
    checked.batches += 1
    checked.next_offset = max(checked.next_offset, header.next_offset)
    checked.leader_epoch = max(checked.leader_epoch, header.leader_epoch)


def check_offset_index(
    checked: Checked, segment: Segment, seen: Sequence[Batch], entries: Sequence[tuple[int, int]]
) -> None:
    last_offsets = {batch.position: batch.header.last_offset for batch in seen}
    before = (-1, -1)
    for number, entry in enumerate(entries):
        offset, position = segment.base_offset + entry[0], entry[1]
        at = number * offset_index.ENTRY.size
        if entry <= before:
            checked.fault(segment.index, at, f"entry {entry} does not follow {before}")
        elif position not in last_offsets:
            checked.fault(segment.index, at, f"no batch begins at position {position}")
        elif last_offsets[position] != offset:
            checked.fault(
                segment.index,
                at,
                f"has offset {offset} for position {position}; "
                f"the batch there ends at {last_offsets[position]}",
            )
        before = entry


def check_time_index(
    checked: Checked, segment: Segment, seen: Sequence[Batch], entries: Sequence[tuple[int, int]]
) -> None:
    last_offsets = [batch.header.last_offset for batch in seen]
    before_ms = -1
    for number, (time_ms, relative) in enumerate(entries):
        offset, at = segment.base_offset + relative, number * time_index.ENTRY.size
        index = bisect_left(last_offsets, offset)
        if time_ms < before_ms:
            checked.fault(segment.time_index, at, f"time {time_ms} after {before_ms}")
        elif index == len(seen) or seen[index].header.base_offset > offset:
            checked.fault(segment.time_index, at, f"offset {offset} is not in the segment")
        elif seen[index].header.max_timestamp != time_ms:
            checked.fault(
                segment.time_index,
                at,
                f"has time {time_ms} for offset {offset}; "
                f"the batch there has {seen[index].header.max_timestamp}",
            )
        before_ms = time_ms
