"""The producers of a log, from its snapshots and its batches."""

import logging
import os
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import suppress

from ottla.log import names
from ottla.log.checkpoint import replace_file
from ottla.log.errors import damaged_error, storage_error
from ottla.log.open_file import OpenFile
from ottla.log.producer_snapshot import decode_snapshot, encode_snapshot
from ottla.log.producer_state import Producer, ProducerState
from ottla.log.segment import Segment
from ottla.log.set_aside import make_way
from ottla.log.transaction_index import AbortedTransaction
from ottla.records.control import read_end_marker
from ottla.records.errors import CorruptBatchError
from ottla.records.header import BatchHeader, Buffer

logger = logging.getLogger("ottla.recovery")


def load_producers(
    folder: str,
    snapshots: list[int],
    segments: Sequence[Segment],
    *,
    replay_from: int,
    end_offset: int,
) -> ProducerState:
    """The producers as of the log's end: the latest valid snapshot, and the batches after it.

    Without a valid snapshot, the batches are read from `replay_from` on.
    """
    state = load_snapshot(folder, snapshots, end_offset, segments)
    if state is None:
        state = ProducerState(replay_from)
    # Each segment's batches are before the next one's base offset.
    first = bisect_right(segments, state.end_offset, key=lambda segment: segment.base_offset) - 1
    for segment in segments[max(first, 0) :]:
        replay_segment(state, segment)
    state.end_offset = end_offset
    return state


def load_snapshot(
    folder: str, snapshots: list[int], up_to_offset: int, segments: Sequence[Segment]
) -> ProducerState | None:
    """The latest valid snapshot at or before the offset; damaged ones are removed, with a line.

    Raises ApiError KAFKA_STORAGE_ERROR.
    """
    while True:
        number = bisect_right(snapshots, up_to_offset) - 1
        if number < 0:
            return None
        offset = snapshots[number]
        path = f"{folder}/{names.file_name(offset, names.SNAPSHOT)}"
        try:
            with open(path, "rb") as file:
                state = ProducerState(offset, decode_snapshot(file.read()))
            if _is_of(state, segments, offset):
                return state
            why = "it is of another log or offset"
        except FileNotFoundError:
            del snapshots[number]
            continue
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        logger.warning("%s is damaged (%s): the producers are read from the batches", path, why)
        _remove(path)
        del snapshots[number]


def _is_of(state: ProducerState, segments: Sequence[Segment], offset: int) -> bool:
    """Whether the last batch before the snapshot is what the snapshot has of its producer. An idle
    producer may have expired. Raises ApiError KAFKA_STORAGE_ERROR.
    """
    number = bisect_right(segments, offset - 1, key=lambda segment: segment.base_offset) - 1
    if number < 0:
        return True
    try:
        found = segments[number].find(offset - 1)
        if found is None:
            return True
        _, header = next(segments[number].headers(found.position))
    except (CorruptBatchError, StopIteration) as error:
        raise damaged_error(segments[number].path, error) from None
    known = state.producers.get(header.producer_id)
    if known is None or header.is_control or header.next_offset != offset:
        return True
    return known.last_offset == header.last_offset


def _remove(path: str) -> None:
    try:
        make_way(path)
        with suppress(FileNotFoundError):
            os.unlink(path)
    except OSError as error:
        raise storage_error(f"cannot remove {path}", error) from None


def remove_snapshots(folder: str, snapshots: list[int], above_offset: int) -> None:
    """Remove the snapshots above the offset. Raises ApiError KAFKA_STORAGE_ERROR."""
    while snapshots and snapshots[-1] > above_offset:
        path = f"{folder}/{names.file_name(snapshots[-1], names.SNAPSHOT)}"
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise storage_error(f"cannot remove {path}", error) from None
        del snapshots[-1]


def replay_segment(state: ProducerState, segment: Segment, *, into_index: bool = False) -> None:
    """Apply the segment's batches from the state's end on; with `into_index`, also add aborted
    transactions to its transaction index.
    """
    if segment.size_bytes == 0:
        return
    found = segment.find(state.end_offset)
    if found is None:
        return
    batches = segment.headers(found.position)
    replay_batches(state, segment.file(), batches, segment if into_index else None)


def replay_batches(
    state: ProducerState,
    file: OpenFile,
    batches: Iterable[tuple[int, BatchHeader]],
    segment: Segment | None = None,
) -> None:
    """The same for batches with their positions in `file`; with `segment`, also into its
    transaction index.
    """
    for position, header in batches:
        if header.producer_id < 0 or header.next_offset <= state.end_offset:
            continue
        if header.is_control:
            batch = os.pread(file.fd, header.size_bytes, position)
            note_marker(state, header, batch, segment)
        else:
            state.append(header)


def note_marker(
    state: ProducerState,
    header: BatchHeader,
    batch: Buffer,
    segment: Segment | None,
) -> None:
    """Apply one control batch that is in the log. If it aborts a transaction, that is added to the
    transaction index of `segment`.
    """
    marker = read_end_marker(batch)
    if marker is None:
        return
    done = state.append_marker(header, marker)
    if done is not None and done.is_aborted and segment is not None:
        segment.add_aborted(
            AbortedTransaction(
                done.producer_id, done.first_offset, done.last_offset, done.last_stable_offset
            )
        )


def note_batches(
    state: ProducerState,
    headers: Sequence[BatchHeader],
    buffers: Sequence[bytes | memoryview],
    segment: Segment,
) -> None:
    """Apply the batches that were just appended to `segment`; `buffers` are their bytes as
    written.
    """
    whole: Buffer | None = None
    position = 0
    for header in headers:
        end = position + header.size_bytes
        if header.producer_id >= 0:
            if header.is_control:
                if whole is None:
                    whole = memoryview(buffers[0] if len(buffers) == 1 else b"".join(buffers))
                note_marker(state, header, whole[position:end], segment)
            else:
                state.append(header)
        position = end
    state.end_offset = headers[-1].next_offset


def rebuild_transaction_index(
    folder: str, snapshots: list[int], segments: Sequence[Segment], number: int
) -> None:
    """Rebuild the damaged transaction index of `segments[number]` from the batches.

    A transaction may have begun in an earlier segment: the latest snapshot before this one has it,
    or the batches since the log's start. Raises ApiError KAFKA_STORAGE_ERROR.
    """
    segment = segments[number]
    state = load_snapshot(folder, snapshots, segment.base_offset, segments)
    if state is None:
        state = ProducerState(segments[0].base_offset)
    for earlier in segments[:number]:
        replay_segment(state, earlier)
    state.end_offset = segment.base_offset
    segment.reset_transaction_index()
    replay_segment(state, segment, into_index=True)
    segment.store_transaction_index()


def write_snapshot(folder: str, offset: int, producers: Iterable[Producer]) -> str:
    """Write the producers as of `offset` and return the file's path; does not sync it.

    Raises ApiError KAFKA_STORAGE_ERROR.
    """
    path = f"{folder}/{names.file_name(offset, names.SNAPSHOT)}"
    replace_file(path, encode_snapshot(producers), sync=False)
    return path
