"""Checks the index files against the batches, as Kafka's DumpLogSegments does."""

from __future__ import annotations

from contextlib import suppress

from tests.log.model.model import LogModel
from tests.log.model.violation import ensure

from ottla.log import names, offset_index, time_index, transaction_index
from ottla.log.log import Log
from ottla.log.segment import Segment


def check_index_files(log: Log, model: LogModel) -> None:
    """Each entry says what the batches say.

    A segment whose indexes are in memory is left out: its files change with the next flush.
    """
    number = 0
    batches = model.stored
    bases = [segment.base_offset for segment in log.segments[1:]]
    for segment, following in zip(log.segments, [*bases, model.end + 1], strict=True):
        positions: dict[int, int] = {}
        times: list[tuple[int, int]] = []
        position = 0
        while number < len(batches) and batches[number].base < following:
            batch = batches[number]
            positions[batch.last] = position
            times.append((batch.last, batch.header.max_timestamp))
            position += len(batch.data)
            number += 1
        if segment.offset_index.is_loaded:
            continue
        _check_offsets(segment, positions)
        _check_times(segment, times)
        _check_aborted(segment, model, following)


def _entries(segment: Segment, suffix: str) -> bytes:
    with suppress(FileNotFoundError), open(segment.path_of(suffix), "rb") as file:
        return file.read()
    return b""


def _check_offsets(segment: Segment, positions: dict[int, int]) -> None:
    before = -1
    for relative, position in offset_index.ENTRY.iter_unpack(_entries(segment, names.INDEX)):
        offset = segment.base_offset + relative
        ensure(
            positions.get(offset) == position and offset > before,
            f"{segment.path_of(names.INDEX)} says {offset} is at {position}",
        )
        before = offset


def _check_times(segment: Segment, times: list[tuple[int, int]]) -> None:
    before = (-1, -1)
    for time_ms, relative in time_index.ENTRY.iter_unpack(_entries(segment, names.TIME_INDEX)):
        offset = segment.base_offset + relative
        is_right = all(each <= time_ms for last, each in times if last <= offset)
        ensure(
            is_right and time_ms > before[0] and offset >= before[1],
            f"{segment.path_of(names.TIME_INDEX)} says nothing up to {offset} is after {time_ms}",
        )
        before = (time_ms, offset)


def _check_aborted(segment: Segment, model: LogModel, following: int) -> None:
    before = -1
    known = {(e.producer_id, e.marker) for e in model.lineage.ended if e.is_aborted}
    data = _entries(segment, names.TXN_INDEX)
    for _, producer_id, _, last, _ in transaction_index.ENTRY.iter_unpack(data):
        is_right = (producer_id, last) in known and segment.base_offset <= last < following
        ensure(
            is_right and last > before,
            f"{segment.path_of(names.TXN_INDEX)} says producer {producer_id} aborted at {last}",
        )
        before = last
