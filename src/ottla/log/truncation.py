"""Truncates a log's end: a follower removes what its leader does not have (KIP-101)."""

import os
from contextlib import suppress

from ottla.log import names
from ottla.log.log import Log
from ottla.log.partition_metadata import make_folder
from ottla.log.producer_state import ProducerState
from ottla.log.removal import Removal
from ottla.log.retention import mark_deleted


def truncate_to(log: Log, offset: int, *, now_ms: int) -> Removal | None:
    """Make `offset` the log's end, or the start of the batch that contains it. Does nothing past
    the end.

    Returns the files of removed segments, if any. Raises ApiError KAFKA_STORAGE_ERROR.
    """
    if offset >= log.end_offset:
        return None
    if offset <= log.segments[0].base_offset:
        return truncate_fully(log, offset, now_ms=now_ms)
    keep = max(log.segment_number(offset - 1), 0) + 1
    dropped = log.segments[keep:]
    del log.segments[keep:]
    # Last segment first: a crash in between must not leave a gap below the recovery point.
    removal = mark_deleted(log, reversed(dropped)) if dropped else None
    log.check_transaction_index(len(log.segments) - 1)
    _set_end(log, log.active.truncate_to(offset))
    return removal


def truncate_fully(log: Log, offset: int, *, now_ms: int) -> Removal:
    """Empty the log and begin again at `offset`: for a follower too far behind its leader."""
    if not log.is_on_disk:
        make_folder(log.folder, log.topic_id)
    removal = mark_deleted(log, log.segments)
    log.segments.clear()
    log.begin_segment(offset, now_ms)
    log.start_offset = offset
    _set_end(log, offset)
    log.epochs.clear()
    return removal


def _set_end(log: Log, offset: int) -> None:
    log.cuts += 1
    log.end_offset = offset
    log.start_offset = min(log.start_offset, offset)
    log.recovery_point = min(log.recovery_point, offset)
    log.epochs.truncate_from_end(offset)
    # Restore the producers from a snapshot at or before the new end, and the batches after it.
    for snapshot in [at for at in log.snapshots if at > offset]:
        with suppress(FileNotFoundError):
            os.unlink(f"{log.folder}/{names.file_name(snapshot, names.SNAPSHOT)}")
        log.snapshots.remove(snapshot)
    log.replay_from = min(log.replay_from, log.start_offset)
    is_empty = log.end_offset == log.start_offset
    log.set_producers(ProducerState(offset) if is_empty else None)
