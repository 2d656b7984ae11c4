"""What recovery cuts off a log: it says so, and keeps aside what must have been sound before.

    <first offset that is gone>.log.cut   bytes of the log, from the first bad batch of a segment on
    <first offset>.log.cut                a whole later segment

The files lie in the partition's folder, and are deleted with it. No other code reads them: Kafka's
tools and ours take only files whose names end with `.log`. To look at one, copy it to another
folder under a name without `.cut`.

Kafka removes everything after the first bad batch and logs one line (`LogLoader.recoverLog`). What
is after the recovery point may be torn, because no flush has reached it. But what is below it was
on the disk: if it is bad, the disk or something else has changed it, and the batches after it may
be intact. So these bytes are kept. They are kept, too, if whole segments would go, or if the
recovery point is not known.

Crash: the bytes are kept aside before they are cut, so a crash leaves them twice at most.
"""

import logging
import os
from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.log import names
from ottla.log.errors import storage_error
from ottla.log.segment import Segment
from ottla.log.set_aside import free_path
from ottla.records.errors import CorruptBatchError
from ottla.runtime.durable import sync_folder

logger = logging.getLogger("ottla.recovery")

_CHUNK_BYTES: Final = 1 << 20


class Cut(NamedTuple):
    """Where a segment's sound batches end."""

    position: int
    offset: int
    """The first offset that is gone."""
    size_bytes: int
    """From the position to the end of the file."""
    reason: str


def missing_end(segment: Segment, following: Segment) -> Cut | None:
    """Where a recovered segment ends, if its last batches are missing: the disk kept the following
    segment and not these. None if nothing is missing.

    Only for logs without gaps. Kafka recovers each segment by itself, and would serve a log with a
    hole (`LogLoader.recoverLog`): a replica in sync that lacks committed records.
    """
    next_offset = segment.next_offset
    if next_offset >= following.base_offset:
        return None
    reason = f"offset {following.base_offset} where {next_offset} is next"
    return Cut(segment.size_bytes, next_offset, 0, reason)


def cut_must_be_kept(
    segment: Segment, cut: Cut, later: Sequence[Segment], recovery_point: int | None
) -> bool:
    """See the top of this file. `recovery_point` None: it is not known. Zeros are not kept."""
    if any(each.size_bytes for each in later):
        return True
    if recovery_point is not None and cut.offset >= recovery_point:
        return False
    return not _are_zeros(segment.file().fd, cut.position)


def keep_aside(segment: Segment, cut: Cut, later: Sequence[Segment]) -> list[str]:
    """Copy the segment's bytes from the cut on, and rename the later segments' logs; returns the
    names of the files.

    Raises ApiError KAFKA_STORAGE_ERROR; then nothing is cut.
    """
    end = [_copy_end(segment, cut)] if cut.size_bytes else []
    return [*end, *keep_segments_aside(segment.folder, later)]


def keep_segments_aside(folder: str, segments: Sequence[Segment]) -> list[str]:
    """Rename the logs of the segments that have any records; returns the names of the files.

    Raises ApiError KAFKA_STORAGE_ERROR.
    """
    kept = []
    try:
        for each in segments:
            if each.size_bytes:
                path = _path_for(folder, each.base_offset)
                os.rename(each.path, path)
                kept.append(os.path.basename(path))
        sync_folder(folder)
    except OSError as error:
        raise storage_error(f"cannot keep segments of {folder} aside", error) from None
    return kept


def log_cut(
    segment: Segment,
    cut: Cut,
    later: Sequence[Segment],
    *,
    end_offset: int,
    recovery_point: int | None,
    kept: Sequence[str],
) -> None:
    """Log one line about the cut. `end_offset`: see `end_of_cut`."""
    records = end_offset - cut.offset
    gone = f"{cut.size_bytes + sum(each.size_bytes for each in later)} bytes"
    if later:
        gone += f" of {1 + len(later)} segments"
    if records > 0:
        gone = f"up to {records} records (offsets {cut.offset} to {end_offset - 1}), {gone}"
    if recovery_point is None:
        below = ", and it is not known which of them had reached the disk"
    elif cut.offset < recovery_point:
        below = f", though everything below offset {recovery_point} had reached the disk"
    else:
        below = ""
    where = f"; kept aside in {segment.folder}: {', '.join(kept)}" if kept else ""
    logger.log(
        logging.ERROR if below or kept else logging.WARNING,
        "%s now ends at offset %d. %s, position %d: %s. Cut off: %s%s%s",
        segment.folder, cut.offset, os.path.basename(segment.path), cut.position, cut.reason,
        gone, below, where,
    )  # fmt: skip


def tell_lost_end(
    folder: str,
    segments: Sequence[Segment],
    start_offset: int,
    end_offset: int,
    kept: Sequence[str],
) -> None:
    """Log one line: the log's start is after its end, so it begins again, without records."""
    logger.error(
        "%s begins again at offset %d, without records: the checkpoint of log starts has this"
        " offset, and its segments have only offsets %d to %d; kept aside in %s: %s",
        folder, start_offset, segments[0].base_offset, end_offset - 1, folder, ", ".join(kept),
    )  # fmt: skip


def end_of_cut(segment: Segment, cut: Cut, later: Sequence[Segment]) -> int:
    """The offset after the last batch that is cut, as far as headers can be read."""
    end_offset = cut.offset
    for each, position in ((segment, cut.position), *((each, 0) for each in later)):
        try:
            for _, header in each.headers(position):
                # What follows the bad batch may be anything.
                if end_offset < header.next_offset < each.base_offset + 2**31:
                    end_offset = header.next_offset
        except CorruptBatchError:
            continue
    return end_offset


def _copy_end(segment: Segment, cut: Cut) -> str:
    path = _path_for(segment.folder, cut.offset)
    fd, position = segment.file().fd, cut.position
    try:
        with open(path, "xb", buffering=0) as file:
            while chunk := os.pread(fd, _CHUNK_BYTES, position):
                position += file.write(chunk)
            os.fsync(file.fileno())
    except OSError as error:
        raise storage_error(f"cannot keep what is cut off {segment.path}", error) from None
    return os.path.basename(path)


def _are_zeros(fd: int, position: int) -> bool:
    while chunk := os.pread(fd, _CHUNK_BYTES, position):
        if chunk.count(0) != len(chunk):
            return False
        position += len(chunk)
    return True


def _path_for(folder: str, offset: int) -> str:
    """An earlier start may have cut at the same offset."""
    return free_path(f"{folder}/{names.file_name(offset, names.LOG)}{names.CUT}")
