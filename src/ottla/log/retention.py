"""Which segments are deleted: by time, by size, and before the log's start (Kafka's
deleteOldSegments).

Only whole segments are deleted, oldest first, and none with uncommitted records. A segment's age is
its largest timestamp. If the active segment expires too, an empty one is begun first, so that idle
topics also become empty. The files are renamed to `.deleted` at once and removed after
`file.delete.delay.ms`; after a crash in between, the next start removes them.
"""

import os
from collections.abc import Iterable

from ottla.log import names
from ottla.log.config import LogConfig
from ottla.log.errors import RebuildingError, storage_error
from ottla.log.expiry import expires_ms, missing_bytes
from ottla.log.log import Log
from ottla.log.removal import Removal
from ottla.log.segment import Segment


def remove_expired(log: Log, *, now_ms: int, high_watermark: int) -> Removal | None:
    """Remove the expired segments from the log and advance its start; None if there are none, the
    log is closed, or its producers are read after a cut.

    On the loop: reads a few numbers per segment, renames files. The removal's `run()` belongs in a
    worker thread, after its delay. Raises ApiError KAFKA_STORAGE_ERROR.
    """
    if log.is_closed or log.loading is not None:
        return None
    expired = expired_segments(log, now_ms=now_ms, high_watermark=high_watermark)
    if not expired:
        return None
    if len(expired) == len(log.segments):
        log.roll(now_ms)
    try:
        return take_out(log, expired)
    finally:
        log.advance_start(log.segments[0].base_offset)


def expired_segments(log: Log, *, now_ms: int, high_watermark: int) -> list[Segment]:
    """The segments that retention would delete now, oldest first."""
    config, bytes_after = log.config, log.size_bytes
    bases = [segment.base_offset for segment in log.segments[1:]] + [log.end_offset]
    expired: list[Segment] = []
    for number, (segment, next_offset) in enumerate(zip(log.segments, bases, strict=True)):
        is_active = number + 1 == len(log.segments)
        if next_offset > high_watermark or (is_active and segment.size_bytes == 0):
            break
        bytes_after -= segment.size_bytes
        before_start = not is_active and next_offset <= log.start_offset
        try:
            if not (before_start or _is_expired(segment, bytes_after, config, now_ms)):
                break
        except RebuildingError:
            break  # its time is known in the next round
        expired.append(segment)
    return expired


def _is_expired(segment: Segment, bytes_after: int, config: LogConfig, now_ms: int) -> bool:
    missing = missing_bytes(bytes_after, config)
    if missing is not None and missing <= 0:
        return True
    if not config.cleanup_delete or config.retention_ms < 0:
        return False  # the time of a segment may have to be read from its files
    expires = expires_ms(segment.largest_timestamp(), config)
    return expires is not None and now_ms > expires


def take_out(log: Log, segments: Iterable[Segment]) -> Removal:
    """Take the segments out of the log, in this order, and mark them as deleted.

    Raises ApiError KAFKA_STORAGE_ERROR; the log then still has those whose files are still there.
    """
    paths: list[str] = []
    for segment in list(segments):
        try:
            paths += mark_deleted(log, [segment]).paths
        finally:
            if not os.path.exists(segment.path):
                log.segments.remove(segment)
    return Removal(tuple(paths), log.config.file_delete_delay_ms)


def mark_deleted(log: Log, segments: Iterable[Segment], *, snapshots: bool = True) -> Removal:
    """Rename the segments' files, and their producer snapshots, so that no start opens them.

    Raises ApiError KAFKA_STORAGE_ERROR.
    """
    paths: list[str] = []
    for segment in segments:
        log.files.forget(segment)
        segment.rebuild = None
        suffixes = [*names.SEGMENT_SUFFIXES]
        if snapshots and segment.base_offset in log.snapshots:
            suffixes.append(names.SNAPSHOT)
        for suffix in suffixes:
            path = segment.path_of(suffix)
            try:
                os.rename(path, path + names.DELETED)
            except FileNotFoundError:
                continue  # a transaction index, which few segments have
            except OSError as error:
                raise storage_error(f"cannot rename {path}", error) from None
            paths.append(path + names.DELETED)
        if names.SNAPSHOT in suffixes:
            log.snapshots.remove(segment.base_offset)
    return Removal(tuple(paths), log.config.file_delete_delay_ms)
