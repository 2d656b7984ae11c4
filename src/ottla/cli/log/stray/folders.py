"""A stray folder as it was typed, and what its log holds."""

from __future__ import annotations

import os
from pathlib import Path

from ottla.cli.failures import Failed
from ottla.log.inspect.errors import InspectError
from ottla.log.inspect.folder import SegmentReader, read_partition
from ottla.log.leader_epochs import LeaderEpochs
from ottla.protocol.errors import ApiError
from ottla.storage.stray_folder import StoredLog, StrayFolder, read_stray


def stored_log(stray: StrayFolder) -> StoredLog:
    """The offsets and the latest leader epoch of a log, up to the first invalid batch."""
    epoch = LeaderEpochs(stray.path).latest
    try:
        segments = read_partition(Path(stray.path))
    except InspectError:
        return StoredLog(0, 0, epoch)
    start = max(segments[0].base_offset, stray.log_start_offset or 0)
    end = segments[-1].base_offset
    with SegmentReader(segments[-1]) as reader:
        try:
            for batch in reader.batches():
                if batch.whole:
                    end = batch.header.next_offset
                    epoch = max(epoch, batch.header.leader_epoch)
        except ApiError:
            pass  # `ottla log check` names it, and the next start of the broker recovers the log
    return StoredLog(start, max(start, end), epoch)


def found_stray(folder: Path) -> StrayFolder:
    """Raises Failed that says what the folder is instead."""
    path = os.path.normpath(folder)
    hint = f"To list stray folders: ottla log stray list {folder.parent}"
    try:
        stray = read_stray(path) if os.path.isdir(path) else None
    except OSError as error:
        raise Failed(f"cannot read {folder}: {error.strerror}.") from error
    if stray is None:
        what = "is not a stray folder" if os.path.exists(path) else "does not exist"
        raise Failed(f"{folder} {what}.", hint)
    return stray
