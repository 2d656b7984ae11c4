"""Opens a partition's folder.

After a clean shutdown this takes one directory listing and opens no file; the end is the recovery
point. After a crash, it first completes or undoes an interrupted deletion or swap (like Kafka's
LogLoader), and then recovers the segments from the recovery point on:

- `.deleted` files are removed;
- `.cleaned` files are removed, and with them `.swap` files from the same offset on: that compaction
  was not finished;
- other `.swap` files are complete: the segments that they cover are removed, and they lose the
  suffix;
- index files without a log file are removed, and `.rebuilt` ones: see `index_rebuild`.
"""

import errno
import logging
import os
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Final

from ottla.log import names
from ottla.log.config import LogConfig
from ottla.log.epochs_of_batches import agree, epochs_of
from ottla.log.errors import storage_error
from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.log import Log
from ottla.log.open_file import OpenFiles
from ottla.log.producer_state import LARGEST_OFFSET, ProducerState
from ottla.log.producers import load_snapshot, remove_snapshots, replay_segment
from ottla.log.recovery import end_segment, recover_segment
from ottla.log.recovery_cut import (
    Cut,
    cut_must_be_kept,
    end_of_cut,
    keep_aside,
    keep_segments_aside,
    log_cut,
    missing_end,
    tell_lost_end,
)
from ottla.log.segment import Segment
from ottla.log.set_aside import make_way
from ottla.records.errors import CorruptBatchError

logger = logging.getLogger("ottla.recovery")

_KNOWN_SUFFIXES: Final = (*names.SEGMENT_SUFFIXES, names.SNAPSHOT)


@dataclass(slots=True)
class _Listing:
    """The contents of a partition's folder."""

    logs: dict[int, os.stat_result] = field(default_factory=dict)
    indexes: dict[str, int] = field(default_factory=dict)
    snapshots: list[int] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    size_bytes: int = 0
    """Of the files whose loss would not be noticed otherwise: see `size_on_disk`."""


def open_log(
    folder: str,
    config: LogConfig,
    files: OpenFiles,
    *,
    now_ms: int,
    random: Random | None = None,
    start_offset: int = 0,
    recovery_point: int = 0,
    clean: bool = False,
    is_doubtful: bool = False,
    was_compacted: bool = False,
    size_bytes: int | None = None,
    epochs_checksum: int | None = None,
) -> Log:
    """The log in `folder`. If the folder is empty or missing, so is the log; it gets a folder and
    files with its first record, if it begins at 0. Offsets are those of the checkpoints. `clean`:
    the last shutdown was clean, and left `size_bytes` of log (`size_on_disk`) and leader epochs of
    that checksum if these are known: with another size the log is checked whole. `is_doubtful`: the
    recovery point is not known. `was_compacted`: it may have gaps, whatever its cleanup.policy is
    now. `random` chooses the jitter of new segments; without it there is none.

    Raises ApiError KAFKA_STORAGE_ERROR.
    """
    try:
        listing = _list(folder)
        if listing.unfinished:
            _settle(folder, listing, config, files)
            listing = _list(folder)
        if clean and size_bytes is not None and not _has_size(folder, listing, size_bytes):
            clean, is_doubtful, recovery_point = False, True, 0
        return _open(
            folder,
            listing,
            config,
            files,
            now_ms,
            random,
            start_offset,
            recovery_point,
            clean,
            is_doubtful,
            was_compacted or config.cleanup_compact,
            epochs_checksum,
        )
    except OSError as error:
        raise storage_error(f"cannot open {folder}", error) from None


def size_on_disk(folder: str) -> int:
    """The bytes of all `.log` and `.txnindex` files of a log, and of its latest `.snapshot`: those
    before it may be gone. Raises OSError.
    """
    return _list(folder).size_bytes


def _has_size(folder: str, listing: _Listing, size_bytes: int) -> bool:
    if listing.size_bytes != size_bytes:
        logger.error(
            "%s has %d bytes in its .log and .txnindex files and its last .snapshot, and had %d"
            " when the broker stopped: every batch is checked",
            folder, listing.size_bytes, size_bytes,
        )  # fmt: skip
    return listing.size_bytes == size_bytes


def _open(
    folder: str,
    listing: _Listing,
    config: LogConfig,
    files: OpenFiles,
    now_ms: int,
    random: Random | None,
    start_offset: int,
    recovery_point: int,
    clean: bool,
    is_doubtful: bool,
    may_have_gaps: bool,
    epochs_checksum: int | None,
) -> Log:
    segments = _segments(folder, listing, config, files)
    state: ProducerState | None = None
    epochs = LeaderEpochs(folder)
    is_new = False
    if segments and not clean:
        # First, so that recovery does not begin with the producers of what a truncation removed.
        _remove_stray_snapshots(folder, listing.snapshots, segments, LARGEST_OFFSET)
        state = _recover(
            folder,
            segments,
            listing.snapshots,
            start_offset,
            recovery_point,
            epochs,
            is_doubtful=is_doubtful,
            may_have_gaps=may_have_gaps,
        )
        if not may_have_gaps:
            _tell_gaps(segments)
    elif segments and not epochs.read(epochs_checksum):
        epochs.replace(epochs_of(segments))
    if not segments or _end_of(segments, clean, recovery_point) < start_offset:
        # No segment, or all deleted: begin at the start offset.
        if any(segment.size_bytes for segment in segments):
            end_offset = _end_of(segments, clean, recovery_point)
            kept = keep_segments_aside(folder, segments)
            tell_lost_end(folder, segments, start_offset, end_offset, kept)
        for segment in segments:
            _unlink_segment(segment)
        segments = [_first_segment(folder, start_offset, config, files, now_ms)]
        is_new = True
        state = ProducerState(start_offset)
    end_offset = _end_of(segments, clean, recovery_point)
    if clean and listing.snapshots and listing.snapshots[-1] > end_offset:
        end_offset = segments[-1].next_offset  # the checkpoint cannot be right
    _remove_stray_snapshots(folder, listing.snapshots, segments, -1 if is_new else end_offset)
    log = Log(
        folder,
        config,
        files,
        segments,
        start_offset=max(start_offset, segments[0].base_offset),
        end_offset=end_offset,
        recovery_point=end_offset if clean else min(recovery_point, end_offset),
        snapshots=listing.snapshots,
        # A clean log without any snapshot has no producers. One whose snapshots are damaged has.
        replay_from=end_offset if clean and not listing.snapshots else start_offset,
        producers=state,
        random=random,
    )
    if start_offset > 0 and not log.is_on_disk:
        log.make_files()
    log.epochs = epochs
    log.is_clean = clean
    if is_new:
        epochs.clear()
    elif not clean:
        # The file is as old as the last flush (LogLoader.load does both, too).
        epochs.truncate_from_end(end_offset)
        epochs.truncate_from_start(log.start_offset)
        _sync_later(log)
    return log


def _sync_later(log: Log) -> None:
    """What recovery has cut and rebuilt: a clean stop must not trust what a power failure may still
    undo. And the last index entries of a segment that ends exactly at the recovery point.
    """
    for segment in log.segments[log.segment_number(max(log.recovery_point - 1, 0)) :]:
        if segment.size_bytes:
            log.unsynced_files += (segment.path, *segment.index_paths)


def _segments(folder: str, listing: _Listing, config: LogConfig, files: OpenFiles) -> list[Segment]:
    """The listed segments, by offset, each with both indexes."""
    for name, base_offset in listing.indexes.items():
        if base_offset not in listing.logs:
            logger.warning("%s/%s has no .log file, and is removed", folder, name)
            os.unlink(f"{folder}/{name}")
    segments = [
        Segment(
            folder,
            base_offset,
            files,
            size_bytes=stat.st_size,
            created_ms=int(stat.st_mtime * 1000),
            index_interval_bytes=config.index_interval_bytes,
            has_aborted=names.file_name(base_offset, names.TXN_INDEX) in listing.indexes,
        )
        for base_offset, stat in sorted(listing.logs.items())
    ]
    for segment in segments:
        for suffix in (names.INDEX, names.TIME_INDEX):
            if names.file_name(segment.base_offset, suffix) not in listing.indexes:
                logger.warning("%s is missing: it is built again", segment.path_of(suffix))
                # A torn end stops the rebuild. Recovery truncates it and rebuilds the rest.
                with suppress(CorruptBatchError):
                    segment.rebuild_indexes()
                break
    return segments


def _tell_gaps(segments: list[Segment]) -> None:
    """Only compaction leaves gaps in a log."""
    for segment, following in pairwise(segments):
        end_offset = segment.next_offset
        if end_offset < following.base_offset:
            logger.error(
                "%s has no offsets %d to %d: %s has lost its end, or the next segment",
                segment.folder, end_offset, following.base_offset - 1, segment.path,
            )  # fmt: skip


def _first_segment(
    folder: str, base_offset: int, config: LogConfig, files: OpenFiles, now_ms: int
) -> Segment:
    return Segment.create(
        folder,
        base_offset,
        files,
        now_ms=now_ms,
        index_interval_bytes=config.index_interval_bytes,
        with_files=False,
    )


def _list(folder: str) -> _Listing:
    listing = _Listing()
    latest = latest_bytes = 0
    try:
        entries = os.scandir(folder)
    except FileNotFoundError:
        return listing
    with entries:
        for entry in entries:
            name = entry.name
            offset = names.offset_of(name)
            if name.endswith((names.DELETED, names.CLEANED, names.SWAP, names.REBUILT)):
                listing.unfinished.append(name)
            elif offset is None or not name.endswith(_KNOWN_SUFFIXES):
                continue
            elif name.endswith(names.LOG):
                if entry.is_dir():
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), entry.path)
                listing.logs[offset] = stat = entry.stat()
                listing.size_bytes += stat.st_size
            elif entry.is_dir():
                make_way(entry.path)
            elif name.endswith(names.SNAPSHOT):
                listing.snapshots.append(offset)
                if offset >= latest:
                    latest, latest_bytes = offset, entry.stat().st_size
            else:
                listing.indexes[name] = offset
                if name.endswith(names.TXN_INDEX):
                    listing.size_bytes += entry.stat().st_size
    listing.snapshots.sort()
    listing.size_bytes += latest_bytes
    return listing


def _end_of(segments: list[Segment], clean: bool, recovery_point: int) -> int:
    """The log's end. After a clean shutdown the checkpoint has it, and no file needs to be
    opened.
    """
    last = segments[-1]
    if last.size_bytes == 0:
        return last.base_offset
    if clean and recovery_point > last.base_offset:
        return recovery_point
    return last.next_offset


def _recover(
    folder: str,
    segments: list[Segment],
    snapshots: list[int],
    start_offset: int,
    recovery_point: int,
    epochs: LeaderEpochs,
    *,
    is_doubtful: bool,
    may_have_gaps: bool,
) -> ProducerState:
    """Recover the segments from the recovery point on; those after a cut are removed. The epochs
    of the records there are restored.
    """
    first = 0
    while first + 1 < len(segments) and segments[first + 1].base_offset <= recovery_point:
        first += 1
    # Snapshots inside the recovered range may contain records that are now truncated.
    base_offset = segments[first].base_offset
    for offset in [offset for offset in snapshots if offset > base_offset]:
        os.unlink(f"{folder}/{names.file_name(offset, names.SNAPSHOT)}")
        snapshots.remove(offset)
    state = load_snapshot(folder, snapshots, base_offset, segments)
    if state is None:
        state = ProducerState(max(start_offset, segments[0].base_offset))
    for segment in segments[:first]:
        if segment.next_offset > state.end_offset:
            replay_segment(state, segment)
            state.end_offset = segment.next_offset
    if (
        not epochs.read()
        or not epochs.entries
        or not agree(epochs.entries, segments, segments[first].base_offset)
    ):
        epochs.replace(epochs_of(segments[:first]))
    for number in range(first, len(segments)):
        cut = recover_segment(segments[number], state, epochs)
        is_unsynced = segments[number].next_offset >= recovery_point
        if cut is None and is_unsynced and not may_have_gaps and number + 1 < len(segments):
            cut = missing_end(segments[number], segments[number + 1])
        if cut is not None:
            _cut(segments, number, cut, None if is_doubtful else recovery_point)
            break
    # The disk kept what a truncation in a gap cut, or an empty file of a roll that failed.
    while len(segments) > 1 and not segments[-1].size_bytes:
        if segments[-1].base_offset >= segments[-2].next_offset:
            break
        _unlink_segment(segments.pop())
    return state


def _cut(segments: list[Segment], number: int, cut: Cut, recovery_point: int | None) -> None:
    """End the log in `segments[number]`; the segments after it go."""
    segment, later = segments[number], segments[number + 1 :]
    kept: list[str] = []
    end_offset = end_of_cut(segment, cut, later)
    if cut_must_be_kept(segment, cut, later, recovery_point):
        kept = keep_aside(segment, cut, later)
    log_cut(segment, cut, later, end_offset=end_offset, recovery_point=recovery_point, kept=kept)
    end_segment(segment, cut)
    for each in later:
        _unlink_segment(each)
    del segments[number + 1 :]


def _unlink_segment(segment: Segment) -> None:
    segment.files.forget(segment)
    for suffix in (*names.SEGMENT_SUFFIXES, names.SNAPSHOT):
        _unlink(segment.path_of(suffix))


def _unlink(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _remove_stray_snapshots(
    folder: str, snapshots: list[int], segments: list[Segment], end_offset: int
) -> None:
    """Remove the snapshots above the log's end, and those that belong to no segment, except the
    latest if it is above the last segment's base offset: a clean shutdown wrote it at the end
    (ProducerStateManager.removeStraySnapshots, truncateAndReload).

    An older one is left by a truncation that was interrupted: another leader may have ended its
    transactions where this log has nothing.
    """
    remove_snapshots(folder, snapshots, end_offset)
    bases = {segment.base_offset for segment in segments}
    latest = snapshots[-1] if snapshots else 0
    for offset in list(snapshots):
        if offset not in bases and (offset < latest or offset < segments[-1].base_offset):
            _unlink(f"{folder}/{names.file_name(offset, names.SNAPSHOT)}")
            snapshots.remove(offset)


def _settle(folder: str, listing: _Listing, config: LogConfig, files: OpenFiles) -> None:
    """Complete or undo what a crash interrupted; see the top of this file."""
    cleaned = [name for name in listing.unfinished if name.endswith(names.CLEANED)]
    undone_from = min((names.offset_of(name) or 0 for name in cleaned), default=None)
    swaps: list[str] = []
    for name in listing.unfinished:
        if name.endswith(names.SWAP) and (
            undone_from is None or (names.offset_of(name) or 0) < undone_from
        ):
            swaps.append(name)
        else:
            _unlink(f"{folder}/{name}")
    for name in swaps:
        if name.endswith(names.LOG + names.SWAP):
            _remove_covered(folder, name, listing, config, files)
    for name in swaps:
        os.replace(f"{folder}/{name}", f"{folder}/{name.removesuffix(names.SWAP)}")


def _remove_covered(
    folder: str, name: str, listing: _Listing, config: LogConfig, files: OpenFiles
) -> None:
    """Remove the segments that a finished compaction replaced with the one in `name`."""
    base_offset = names.offset_of(name)
    assert base_offset is not None
    swapped = Segment(
        folder,
        base_offset,
        files,
        size_bytes=os.stat(f"{folder}/{name}").st_size,
        created_ms=0,
        index_interval_bytes=config.index_interval_bytes,
        suffix=names.SWAP,
    )
    end_offset = base_offset + 1
    for _, header in swapped.headers():
        end_offset = header.next_offset
    files.forget(swapped)
    for offset in [offset for offset in listing.logs if base_offset <= offset < end_offset]:
        for suffix in (*names.SEGMENT_SUFFIXES, names.SNAPSHOT):
            _unlink(f"{folder}/{names.file_name(offset, suffix)}")
