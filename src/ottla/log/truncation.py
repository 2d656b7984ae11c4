"""Truncates a log's end: a follower removes what its leader does not have (KIP-101).

The producers after it are those of the latest snapshot that is left and of the batches after that
one (UnifiedLog.rebuildProducerState), so no snapshot of what is gone may stay. A segment that is
kept is truncated in place, as in Kafka, so that its snapshot stays, too.

Crash: segments go from the last one on, so what is left has no gap; a log that is emptied loses
them from the first one on, and is empty in the end. Then the leader makes the follower truncate it
again. Snapshots go first: without them the producers are read from the batches. If the disk
refuses a step, the log has what it still has files of.
"""

from ottla.log.errors import CorruptIndexError
from ottla.log.log import Log
from ottla.log.partition_metadata import make_folder
from ottla.log.producer_state import ProducerState
from ottla.log.producers import remove_snapshots
from ottla.log.removal import Removal
from ottla.log.retention import take_out


def truncate_to(log: Log, offset: int, *, now_ms: int) -> Removal | None:
    """Make `offset` the log's end, or the start of the batch that contains it. Does nothing past
    the end.

    Returns the files of removed segments, if any. Raises ApiError KAFKA_STORAGE_ERROR.
    """
    if offset >= log.end_offset:
        return None
    if offset < log.segments[0].base_offset:
        return truncate_fully(log, offset, now_ms=now_ms)
    ends = [*(segment.base_offset for segment in log.segments[1:]), log.end_offset]
    dropped = log.segments[log.segment_number(offset) + 1 :]
    end_offset = log.end_offset
    # First, so that a disk that refuses it changes nothing: none of them is below the new end.
    remove_snapshots(log.folder, log.snapshots, offset)
    try:
        removal = take_out(log, reversed(dropped)) if dropped else None
        end_offset = _cut(log, offset)
    finally:
        end_offset = min(end_offset, ends[len(log.segments) - 1])
        if end_offset < log.end_offset:
            _set_end(log, end_offset)
    _keep_end(log, now_ms)
    return removal


def _cut(log: Log, offset: int) -> int:
    """Truncate the last segment, and return its new end."""
    try:
        return log.active.truncate_to(offset)
    except CorruptIndexError as error:
        log.rebuild_transaction_index(len(log.segments) - 1, error)
        return log.active.truncate_to(offset)


def truncate_fully(log: Log, offset: int, *, now_ms: int) -> Removal:
    """Empty the log and begin again at `offset`: for a follower too far behind its leader
    (UnifiedLog.truncateFullyAndStartAt).

    Raises ApiError KAFKA_STORAGE_ERROR.
    """
    if not log.is_on_disk:
        log.unsynced_files += make_folder(log.folder, log.topic_id)
    last = log.active
    remove_snapshots(log.folder, log.snapshots, -1)
    try:
        removal = take_out(log, log.segments[:-1])
        if offset != last.base_offset:
            removal += _replace(log, offset, now_ms)
        elif last.has_files:
            _cut(log, offset)
        else:
            log.make_files()
    finally:
        if log.active.base_offset == offset and not log.active.size_bytes:
            log.start_offset = offset
            _set_end(log, offset)
            log.epochs.clear()
        else:
            log.advance_start(max(log.start_offset, log.segments[0].base_offset))
    return removal


def _replace(log: Log, offset: int, now_ms: int) -> Removal:
    """Begin a segment at `offset` in place of the only one.

    Its files are made after the old ones are gone: with both, a start after a crash would find the
    old records, and the transactions that are open there would never end.
    """
    try:
        removal = take_out(log, log.segments)
    finally:
        if not log.segments:
            log.begin_again(offset, now_ms)
    log.make_files()
    return removal


def _set_end(log: Log, offset: int) -> None:
    had_no_producers = log.has_no_producers
    log.cuts += 1
    log.end_offset = offset
    log.start_offset = min(log.start_offset, offset)
    log.recovery_point = min(log.recovery_point, offset)
    is_empty = log.end_offset == log.start_offset
    if is_empty or had_no_producers:
        log.replay_from = offset
        log.set_producers(ProducerState(offset))
    else:
        log.replay_from = min(log.replay_from, log.start_offset)
        log.set_producers(None)
    if log.folder not in log.unsynced_files:
        log.unsynced_files.append(log.folder)
    # All of an empty log, as ProducerStateManager.truncateAndReload: they are not above its start.
    remove_snapshots(log.folder, log.snapshots, -1 if is_empty else offset)
    log.epochs.truncate_from_end(offset)


def _keep_end(log: Log, now_ms: int) -> None:
    """After a cut in a gap the log ends above its last batch, where its high watermark may be. A
    segment that begins there says so after a restart.
    """
    last = log.active
    if last.next_offset >= log.end_offset:
        return
    # It is no longer the last one, so only the recovery point makes recovery look at its end.
    log.recovery_point = min(log.recovery_point, last.base_offset)
    log.seal(last)
    log.begin_segment(log.end_offset, now_ms)
    if last.size_bytes == 0 and last is not log.segments[0]:
        take_out(log, [last]).run()
