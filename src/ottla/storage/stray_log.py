"""What the log in a stray folder holds."""

from __future__ import annotations

from pathlib import Path

from ottla.log.inspect.errors import InspectError
from ottla.log.inspect.folder import SegmentReader, read_partition
from ottla.log.leader_epochs import LeaderEpochs
from ottla.protocol.errors import ApiError
from ottla.storage.stray_folder import StoredLog, StrayFolder


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
