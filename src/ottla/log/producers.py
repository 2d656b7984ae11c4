"""The producers of a log, from its snapshots and its batches."""

import os
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.log import names
from ottla.log.checkpoint import replace_file
from ottla.log.producer_snapshot import decode_snapshot, encode_snapshot
from ottla.log.producer_state import ProducerState
from ottla.log.segment import Segment
from ottla.records.control import read_end_marker
from ottla.records.header import BatchHeader

if TYPE_CHECKING:
    from ottla.log.log import Log


def load_producers(log: "Log") -> ProducerState:
    """The producers as of the log's end: the latest good snapshot, and the batches behind it."""
    state = load_snapshot(log.folder, log.snapshots, log.end_offset)
    if state is None:
        state = ProducerState(max(log.replay_from, log.start_offset))
    for segment in log.segments[log.segment_number(state.end_offset) :]:
        replay_segment(state, segment)
    state.end_offset = log.end_offset
    return state


def load_snapshot(folder: str, snapshots: list[int], up_to_offset: int) -> ProducerState | None:
    """The latest snapshot at or before the offset that is whole; damaged ones are removed."""
    while True:
        number = bisect_right(snapshots, up_to_offset) - 1
        if number < 0:
            return None
        path = f"{folder}/{names.file_name(snapshots[number], names.SNAPSHOT)}"
        try:
            with open(path, "rb") as file:
                return ProducerState(snapshots[number], decode_snapshot(file.read()))
        except FileNotFoundError:
            pass
        except ValueError:
            os.unlink(path)
        del snapshots[number]


def replay_segment(state: ProducerState, segment: Segment) -> None:
    """Takes in the segment's batches from the state's end on."""
    if segment.size_bytes == 0:
        return
    found = segment.find(state.end_offset)
    if found is None:
        return
    fd = segment.file().fd
    for position, header in segment.headers(found.position):
        if header.producer_id < 0 or header.next_offset <= state.end_offset:
            continue
        if header.is_control:
            note_batch(state, header, os.pread(fd, header.size_bytes, position))
        else:
            state.append(header)


def note_batch(state: ProducerState, header: BatchHeader, batch: bytes) -> None:
    """Takes in one control batch that is in the log."""
    marker = read_end_marker(batch)
    if marker is not None:
        state.append_marker(header, marker)


def note_batches(
    log: "Log",
    state: ProducerState,
    headers: Sequence[BatchHeader],
    buffers: Sequence[bytes | memoryview],
) -> None:
    """Takes in the batches just appended; `buffers` are their bytes as written."""
    for header in headers:
        if header.producer_id < 0:
            continue
        if header.is_control:
            whole = b"".join(buffers)
            start = sum(h.size_bytes for h in headers if h.base_offset < header.base_offset)
            note_batch(state, header, whole[start : start + header.size_bytes])
        else:
            state.append(header)
    state.end_offset = log.end_offset


def take_snapshot(log: "Log", offset: int) -> None:
    """Writes the producers as of `offset`, the log's end; synced with the next flush.

    Raises ApiError KAFKA_STORAGE_ERROR.
    """
    path = f"{log.folder}/{names.file_name(offset, names.SNAPSHOT)}"
    replace_file(path, encode_snapshot(log.producers.producers.values()), sync=False)
    if not log.snapshots or log.snapshots[-1] < offset:
        log.snapshots.append(offset)
    log.unsynced_files.append(path)
