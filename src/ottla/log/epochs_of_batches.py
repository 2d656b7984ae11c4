"""The leader epochs as the batches have them: the file may be missing, damaged or another log's."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from ottla.log.leader_epochs import EpochStart
from ottla.log.segment import Segment
from ottla.protocol.errors import ApiError
from ottla.records.header import BatchHeader


def epochs_of(segments: Sequence[Segment]) -> list[EpochStart]:
    """Reads the first batch of each segment, and all of a segment in which the epoch changes. What
    cannot be read is left out: it is found when it is read.
    """
    found: list[EpochStart] = []
    used = [segment for segment in segments if segment.size_bytes]
    firsts = [_first(segment) for segment in used]
    for segment, (first, following) in zip(used, pairwise([*firsts, None]), strict=True):
        is_uniform = first and following and first.leader_epoch == following.leader_epoch
        _note(found, [first] if first and is_uniform else _headers(segment))
    return found


def agree(entries: Sequence[EpochStart], segments: Sequence[Segment], end_offset: int) -> bool:
    """Whether the entries say of the batches below `end_offset` what they say: of those where
    epochs and segments begin, and of the last. What cannot be read says nothing.
    """
    starts = {entry.start_offset for entry in entries}
    offsets = {*starts, *(segment.base_offset for segment in segments), end_offset - 1}
    for offset in sorted(offsets):
        if not segments[0].base_offset <= offset < end_offset:
            continue
        header = _batch_with(segments, offset)
        number = bisect_right(entries, offset, key=lambda entry: entry.start_offset) - 1
        if header is None or number < 0:
            continue
        # An epoch begins with a batch; but the log's start may have moved into one.
        if header.leader_epoch != entries[number].epoch or (
            number > 0 and offset in starts and header.base_offset != offset
        ):
            return False
    return True


def _batch_with(segments: Sequence[Segment], offset: int) -> BatchHeader | None:
    """None also if compaction has removed it, or it cannot be read."""
    number = bisect_right(segments, offset, key=lambda segment: segment.base_offset) - 1
    try:
        found = segments[number].find(offset)
        if found is None:
            return None
        _, header = next(segments[number].headers(found.position))
    except (ApiError, StopIteration):
        return None
    return header if header.base_offset <= offset else None


def _note(found: list[EpochStart], headers: Sequence[BatchHeader]) -> None:
    for header in headers:
        if header.leader_epoch >= 0 and (not found or header.leader_epoch > found[-1].epoch):
            found.append(EpochStart(header.leader_epoch, header.base_offset))


def _first(segment: Segment) -> BatchHeader | None:
    try:
        return next((header for _, header in segment.headers()), None)
    except ApiError:
        return None


def _headers(segment: Segment) -> list[BatchHeader]:
    """Those in which the epoch changes."""
    changes: list[BatchHeader] = []
    try:
        for _, header in segment.headers():
            if not changes or header.leader_epoch != changes[-1].leader_epoch:
                changes.append(header)
    except ApiError:
        pass  # see `epochs_of`
    return changes
