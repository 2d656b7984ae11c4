"""Compaction: only the last record of each key stays (cleanup.policy=compact, KIP-58, KIP-354,
KIP-534).

`plan_compaction` decides on the event loop, like Kafka's LogCleanerManager: it selects the closed
segments between the first dirty offset and the first one that is too recent, once enough of the log
is dirty. `Compaction.run()` writes the remaining batches to new files, in a worker thread.
`apply()` replaces the old segments with them, on the loop.

Files: `.cleaned` while they are written; then, in one step, `.cleaned` is renamed to `.swap`, the
old files to `.deleted`, and `.swap` to the final names. Crash: if a `.cleaned` file is left, the
work is lost and the old segments are valid. If only `.swap` files are left, they are valid and the
old segments that they cover are removed (see `opening`).
"""

import os
from contextlib import suppress
from itertools import chain, pairwise

from ottla.log import names
from ottla.log.cleaned_transactions import CleanedTransactions
from ottla.log.cleaning import Group, Kept, Source, clean_group, map_keys
from ottla.log.config import LogConfig
from ottla.log.errors import CorruptIndexError, SyncError, storage_error
from ottla.log.expiry import cleanable_ms
from ottla.log.last_offsets import LastOffsets
from ottla.log.log import Log
from ottla.log.removal import Removal
from ottla.log.retention import mark_deleted
from ottla.log.rolling import LARGEST_RELATIVE_OFFSET
from ottla.log.segment import Segment
from ottla.log.transaction_index import TransactionIndex
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.errors import CorruptBatchError, InvalidRecordError


def plan_compaction(
    log: Log,
    *,
    clean_offset: int | None,
    now_ms: int,
    high_watermark: int,
    only_if_due: bool = True,
) -> "Compaction | None":
    """The compaction that is due; None if there is none, the log is closed, or its producers are
    read after a cut. Without `only_if_due` it is due if there is anything that may be cleaned.

    `clean_offset` is the partition's cleaner checkpoint: the log is clean up to there. Raises
    ApiError KAFKA_STORAGE_ERROR.
    """
    if log.is_closed or log.loading is not None:
        return None
    config = log.config
    first_dirty = log.start_offset if clean_offset is None else clean_offset
    if not log.start_offset <= first_dirty <= log.end_offset:
        first_dirty = log.start_offset  # truncated or deleted in the meantime: all of it is dirty
    end_offset = _first_uncleanable(log, first_dirty, now_ms, high_watermark)
    segments = [segment for segment in log.segments[:-1] if segment.base_offset < end_offset]
    dirty = [
        segment
        for segment, following in pairwise(chain(segments, [None]))
        if segment is not None and (following is None or following.base_offset > first_dirty)
    ]
    dirty_bytes = sum(segment.size_bytes for segment in dirty)
    if first_dirty >= end_offset or dirty_bytes == 0:
        return None
    total_bytes = sum(segment.size_bytes for segment in segments)
    waited_since = min((at for s in dirty if (at := s.first_timestamp()) >= 0), default=now_ms)
    overdue = now_ms - waited_since > config.max_compaction_lag_ms
    # LogCleanerManager.grabFilthiestCompactedLog
    is_due = overdue or dirty_bytes / total_bytes > config.min_cleanable_dirty_ratio
    if only_if_due and not is_due:
        return None
    return Compaction(log, segments, first_dirty, end_offset, now_ms)


def _first_uncleanable(log: Log, first_dirty: int, now_ms: int, high_watermark: int) -> int:
    """The first offset that must not be cleaned: not committed, active, or too recent."""
    end_offset = min(log.last_stable_offset(high_watermark), log.active.base_offset)
    for segment, following in pairwise(log.segments[log.segment_number(first_dirty) :]):
        if _is_too_young(segment, log.config, now_ms) or end_offset < following.base_offset:
            # Only whole segments are cleaned.
            return min(end_offset, segment.base_offset)
    return end_offset


def _is_too_young(segment: Segment, config: LogConfig, now_ms: int) -> bool:
    if config.min_compaction_lag_ms <= 0:
        return False  # its time may have to be read from its files
    cleanable = cleanable_ms(segment.largest_timestamp(), config)
    return cleanable is not None and now_ms < cleanable


class Compaction:
    """One round for one log. `clean_offset` is the new cleaner checkpoint, once applied."""

    def __init__(
        self, log: Log, segments: list[Segment], first_dirty: int, end_offset: int, now_ms: int
    ) -> None:
        self.log = log
        self.clean_offset = first_dirty
        self._segments = segments
        self._first_dirty = first_dirty
        self._end_offset = end_offset
        config = log.config
        self._rules = Kept(
            now_ms=now_ms,
            delete_retention_ms=config.delete_retention_ms,
            end_offset=end_offset,
            last_offsets={
                producer.producer_id: producer.last_offset
                for producer in log.producers.producers.values()
            },
            last_epochs={
                producer.producer_id: producer.producer_epoch
                for producer in log.producers.producers.values()
                if not producer.batches
            },
        )
        self._sources = {
            id(segment): Source.of(segment, indexes)
            for segment, indexes in zip(segments, _txn_indexes(log, len(segments)), strict=True)
        }
        self._groups: list[tuple[list[Segment], Group]] = []

    def run(self) -> None:
        """Writes the cleaned segments, synced. Raises ApiError KAFKA_STORAGE_ERROR or
        CORRUPT_MESSAGE.

        Writes nothing if retention came first or the log was deleted in the meantime.
        """
        try:
            mapped_to = self._clean()
        except (
            OSError, ApiError, CorruptBatchError, InvalidRecordError, CorruptIndexError
        ) as error:  # fmt: skip
            is_gone = self.log.is_closed or isinstance(error, FileNotFoundError)
            try:
                self.discard()
            except ApiError:
                if is_gone:
                    raise
                # Otherwise what failed first is raised below.
            if isinstance(error, SyncError):
                raise
            if is_gone:
                return
            doing = f"cannot compact {self.log.folder}"
            if isinstance(error, OSError):
                raise storage_error(doing, error) from None
            # What cannot be read as records is no failure of the disk.
            code = error.code if isinstance(error, ApiError) else ErrorCode.corrupt_message
            raise ApiError(code, f"{doing}: {error}") from None
        self.clean_offset = mapped_to

    def _clean(self) -> int:
        """Returns the offset up to which the log will be clean."""
        sources = [self._sources[id(segment)] for segment in self._segments]
        with LastOffsets() as keys:
            mapped_to = map_keys(keys, sources, self._first_dirty, self._end_offset)
            self._clean_groups(keys, mapped_to)
        return mapped_to

    def _clean_groups(self, keys: LastOffsets, mapped_to: int) -> None:
        within = [s for s in self._segments if s.base_offset < mapped_to]
        ends = {
            id(segment): self._end_offset if following is None else following.base_offset
            for segment, following in pairwise(chain(self._segments, [None]))
            if segment is not None
        }
        transactions = CleanedTransactions()
        for segments in _group(within, self.log.config.segment_bytes, self._end_offset):
            members = [self._sources[id(segment)] for segment in segments]
            group = clean_group(
                self.log.folder,
                members,
                keys,
                mapped_to,
                self._rules,
                transactions,
                ends[id(segments[-1])],
            )
            self._groups.append((segments, group))

    def apply(self) -> list[Removal]:
        """Install the cleaned segments, and return the old ones' files to remove.

        Does nothing if the log is closed or no longer has the old segments. Raises ApiError
        KAFKA_STORAGE_ERROR.
        """
        present = {id(segment): segment.size_bytes for segment in self.log.segments}
        if self.log.is_closed or not all(
            present.get(id(segment)) == self._sources[id(segment)].size_bytes
            for segments, _ in self._groups
            for segment in segments
        ):
            self.discard()  # retention or a truncation came first
            self.clean_offset = self._first_dirty
            return []
        return [self._swap(segments, group) for segments, group in self._groups]

    def _swap(self, old: list[Segment], group: Group) -> Removal:
        log = self.log
        _rename_all(log.folder, group.base_offset, names.CLEANED, names.SWAP)
        kept_snapshot = old[0].base_offset in log.snapshots
        if kept_snapshot:
            log.snapshots.remove(
                old[0].base_offset
            )  # its file stays: a segment still has this base offset
        removal = mark_deleted(log, old)
        if kept_snapshot:
            log.snapshots.append(old[0].base_offset)
            log.snapshots.sort()
        _rename_all(log.folder, group.base_offset, names.SWAP, "")
        log.unsynced_files.append(log.folder)
        first = log.segments.index(old[0])
        log.segments[first : first + len(old)] = [
            Segment(
                log.folder,
                group.base_offset,
                log.files,
                size_bytes=group.size_bytes,
                created_ms=old[-1].created_ms,
                index_interval_bytes=log.config.index_interval_bytes,
                has_aborted=group.has_aborted,
            )
        ]
        return removal

    def discard(self) -> None:
        """Remove what `run` wrote; the log does not change. Raises ApiError KAFKA_STORAGE_ERROR:
        the next start removes what is left.
        """
        self._groups.clear()
        try:
            for segment in self._segments:
                for suffix in names.SEGMENT_SUFFIXES:
                    with suppress(FileNotFoundError):
                        os.unlink(segment.path_of(suffix) + names.CLEANED)
        except OSError as error:
            doing = f"cannot remove what was compacted in {self.log.folder}"
            raise storage_error(doing, error) from None


def _txn_indexes(log: Log, count: int) -> list[tuple[TransactionIndex, ...]]:
    """For each of the first `count` segments: the transaction indexes from it on, as they are now.
    Raises ApiError KAFKA_STORAGE_ERROR.
    """
    copies: list[TransactionIndex | None] = []
    for number, segment in enumerate(log.segments):
        log.check_transaction_index(number)
        copies.append(None if segment.txn_index is None else segment.txn_index.copy())
    return [tuple(filter(None, copies[number:])) for number in range(count)]


def _rename_all(folder: str, base_offset: int, old: str, new: str) -> None:
    for suffix in names.SEGMENT_SUFFIXES:
        path = f"{folder}/{names.file_name(base_offset, suffix)}"
        try:
            os.rename(path + old, path + new)
        except FileNotFoundError:
            continue  # few segments have a transaction index
        except OSError as error:
            raise storage_error(f"cannot rename {path}{old}", error) from None


def _group(segments: list[Segment], segment_bytes: int, end_offset: int) -> list[list[Segment]]:
    """Adjacent segments that fit into one, so that segments do not become ever smaller."""
    groups: list[list[Segment]] = []
    bases = [segment.base_offset for segment in segments[1:]] + [end_offset]
    for segment, next_offset in zip(segments, bases, strict=True):
        if (
            groups
            and sum(each.size_bytes for each in groups[-1]) + segment.size_bytes <= segment_bytes
            and next_offset - groups[-1][0].base_offset <= LARGEST_RELATIVE_OFFSET
        ):
            groups[-1].append(segment)
        else:
            groups.append([segment])
    return groups
