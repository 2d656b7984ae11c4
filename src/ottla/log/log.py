"""One partition's log: its segments, appends and reads.

Threads: call every method on the event loop's thread. None waits for the disk to sync. Long work is
a task (`FlushTask`, `Compaction`, `ProducerLoad`, `Removal`): created on the loop; its `run()`
belongs in a worker thread, its `apply()` back on the loop. Crash: see `recovery`.
"""

import logging
import os
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import NamedTuple
from uuid import UUID

from ottla.log import names
from ottla.log import producers as producer_files
from ottla.log.config import LogConfig
from ottla.log.errors import CorruptIndexError, SyncError, storage_error
from ottla.log.file_range import EMPTY, FileRange
from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.open_file import OpenFiles
from ottla.log.partition_metadata import make_folder
from ottla.log.producer_state import ProducerState
from ottla.log.rolling import must_roll
from ottla.log.segment import Found, Segment
from ottla.log.transaction_check import MAX_CHECKED, check_index
from ottla.log.transaction_rebuild import transaction_rebuild
from ottla.log.verification import Guard
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.control import read_end_marker
from ottla.records.errors import CorruptBatchError
from ottla.records.header import (
    HEADER_BYTES,
    OVERHEAD_BYTES,
    STAMP,
    STAMPED_BYTES,
    BatchHeader,
    Buffer,
    TimestampType,
    stamp_append_time,
)

logger = logging.getLogger("ottla.recovery")


class LogAppendInfo(NamedTuple):
    """What an append answers. `append_time_ms` is -1 where the producer's timestamps stay."""

    first_offset: int
    last_offset: int
    append_time_ms: int = -1
    is_duplicate: bool = False
    rolled: bool = False
    """A segment was rolled: the log needs a flush."""


class Log:
    """A log. Created by `opening.open_log`."""

    __slots__ = (
        "_producers",
        "_random",
        "config",
        "cuts",
        "end_offset",
        "epochs",
        "files",
        "folder",
        "is_clean",
        "is_closed",
        "loading",
        "recovery_point",
        "replay_from",
        "segments",
        "snapshots",
        "start_offset",
        "sync_failure",
        "topic_id",
        "unsynced_files",
        "unwanted_files",
    )

    def __init__(
        self,
        folder: str,
        config: LogConfig,
        files: OpenFiles,
        segments: list[Segment],
        *,
        start_offset: int,
        end_offset: int,
        recovery_point: int,
        snapshots: list[int],
        replay_from: int,
        producers: ProducerState | None = None,
        random: Random | None = None,
    ) -> None:
        self.folder = folder
        self.config = config
        self.files = files
        self.segments = segments
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.recovery_point = recovery_point
        """Everything before this offset is known to be on disk."""
        self.snapshots = snapshots
        """The offsets of the producer snapshots, sorted."""
        self.replay_from = replay_from
        """Where to read the producers from if there is no snapshot."""
        self.topic_id: UUID | None = None
        """None if unknown, or known only from the folder."""
        self.epochs = LeaderEpochs(folder)
        self.unsynced_files: list[str] = []
        self.unwanted_files: list[str] = []
        """Of a segment that the log does not have, and that the disk has refused to remove. As long
        as they are there nothing is appended: after a restart they would hide it.
        """
        self.is_clean = True
        """It was opened as a clean stop has left it."""
        self.is_closed = False
        """Deleted, or closed for good. Maintenance that chose the log before finds nothing to do:
        a flush does nothing, nothing expires, an append is refused."""
        self.sync_failure: str | None = None
        """Why an fsync failed. It is then closed; what it holds can be read."""
        self.cuts = 0
        """How often its end was cut: what a flush began with may be other records since."""
        self.loading: object | None = None
        """The load that reads the producers after a cut; see `producer_load`."""
        self._producers = producers
        self._random = random

    @property
    def active(self) -> Segment:
        """The segment that appends go to."""
        return self.segments[-1]

    @property
    def size_bytes(self) -> int:
        """The size of all segments' log files."""
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def unflushed_records(self) -> int:
        return self.end_offset - self.recovery_point

    @property
    def producers(self) -> ProducerState:
        """The active producers; on first use read from the latest snapshot and the batches after
        it. Raises ApiError: KAFKA_STORAGE_ERROR, and NOT_LEADER_OR_FOLLOWER while they are read
        after a cut.
        """
        if self._producers is None:
            self._check_not_loading()
            self._producers = self._load_producers()
        return self._producers

    def _check_not_loading(self) -> None:
        # Kafka's answer, too: the broker does not lead before its fetcher has let go of the log.
        if self.loading is not None:
            raise ApiError(
                ErrorCode.not_leader_or_follower,
                f"the producers of {self.folder} are read again after a truncation",
            )

    @property
    def loaded_producers(self) -> ProducerState | None:
        """The same if they were read already."""
        return self._producers

    @property
    def has_no_producers(self) -> bool:
        """Known without reading them; a cut cannot give it any."""
        if self._producers is not None:
            return not self._producers.producers
        return not self.snapshots and self.replay_from >= self.end_offset

    @property
    def knows_producers(self) -> bool:
        """They are in memory, or it is known that there are none."""
        return self._producers is not None or self.has_no_producers

    def set_producers(self, producers: ProducerState | None) -> None:
        """After a truncation: the producers as of the new end, or None to read them again."""
        self._producers = producers
        self.loading = None

    def forget_producers(self, now_ms: int, after_ms: int) -> None:
        """Expire producers that were silent for `after_ms` (producer.id.expiration.ms)."""
        if self._producers is not None:
            self._producers.remove_expired(now_ms, after_ms)

    def last_stable_offset(self, high_watermark: int) -> int:
        """Where read_committed ends: at the first record of a transaction that is open, or whose
        marker is not committed yet; else at the high watermark. Raises as `producers`.
        """
        if self._producers is None and self.has_no_producers:
            return high_watermark
        first = self.producers.first_unstable_offset(high_watermark)
        if first is None or first > high_watermark:
            return high_watermark
        return max(first, self.start_offset)

    def high_watermark_moved(self, high_watermark: int) -> None:
        """Transactions whose markers are below it are stable now."""
        if self._producers is not None:
            self._producers.high_watermark_moved(high_watermark)

    def append(
        self,
        records: Buffer,
        headers: Sequence[BatchHeader],
        *,
        leader_epoch: int,
        now_ms: int,
        guard: Guard | None = None,
        is_own: bool = False,
        transaction_version: int = 0,
    ) -> LogAppendInfo:
        """Appends the batches of `records`, checked before (`records.check`), as this partition's
        leader.

        Gives them the next offsets; `headers` are changed accordingly. A duplicate of an idempotent
        producer is answered with its old offsets. `guard` is that of the transaction's
        verification. `is_own`: a coordinator's batch, without sequence, or a marker, which has a
        `transaction_version`. Raises ApiError: KAFKA_STORAGE_ERROR (the log is as it was),
        RECORD_LIST_TOO_LARGE, UNKNOWN_TOPIC_OR_PARTITION once the log is deleted, and the refusals
        of `ProducerState`.
        """
        assert headers, "an append has at least one batch"
        if self.is_closed:
            raise self._refusal()
        append_time_ms = now_ms if self.config.stamped_type is TimestampType.log_append_time else -1
        view = memoryview(records)
        buffers: list[bytes | memoryview] = []
        if self._producers is None:
            self._wake()
        first_offset = offset = self.end_offset
        position = 0
        for header in headers:
            if header.producer_id >= 0:
                if is_own:
                    batch = view[position : position + header.size_bytes]
                    self._check_own(header, batch, guard, transaction_version)
                    duplicate = None
                else:
                    duplicate = self.producers.check(header, guard)
                if duplicate is not None and len(headers) == 1:
                    return LogAppendInfo(
                        duplicate.first_offset,
                        duplicate.last_offset,
                        append_time_ms if append_time_ms < 0 else duplicate.timestamp_ms,
                        is_duplicate=True,
                    )
            end = position + header.size_bytes
            header.base_offset = offset
            header.leader_epoch = leader_epoch
            if append_time_ms >= 0:
                buffers.append(stamp_append_time(header, view[position:end], append_time_ms))
                buffers.append(view[position + HEADER_BYTES : end])
            else:
                buffers.append(STAMP.pack(offset, header.size_bytes - OVERHEAD_BYTES, leader_epoch))
                buffers.append(view[position + STAMPED_BYTES : end])
            offset += header.last_offset_delta + 1
            position = end
        rolled = self._write(buffers, position, headers, now_ms)
        return LogAppendInfo(first_offset, offset - 1, append_time_ms, rolled=rolled)

    def _check_own(
        self,
        header: BatchHeader,
        batch: memoryview,
        guard: Guard | None,
        transaction_version: int,
    ) -> None:
        marker = read_end_marker(batch) if header.is_control else None
        if marker is None:
            self.producers.check_own(header, guard)
        else:
            self.producers.check_marker(header, marker, transaction_version)

    def append_as_follower(
        self, records: Buffer, headers: Sequence[BatchHeader], *, now_ms: int
    ) -> LogAppendInfo:
        """Appends batches as the leader has them: offsets, epochs and gaps stay.

        Raises ApiError: KAFKA_STORAGE_ERROR; OFFSET_OUT_OF_RANGE where a batch begins before the
        log's end; UNKNOWN_TOPIC_OR_PARTITION once the log is deleted.
        """
        assert headers, "an append has at least one batch"
        if self.is_closed:
            raise self._refusal()
        if self._producers is None:
            self._wake()
        # An epoch without records, from leading before, says nothing about the leader's epochs.
        self.epochs.truncate_from_end(self.end_offset)
        expected = self.end_offset
        for header in headers:
            if header.base_offset < expected:
                raise ApiError(
                    ErrorCode.offset_out_of_range,
                    f"a batch at offset {header.base_offset}; the log ends at {expected}",
                )
            expected = header.next_offset
        view, position, first, rolled = memoryview(records), 0, 0, False
        while first < len(headers):
            # A fetch may return more than fits into one segment.
            size_bytes, last = headers[first].size_bytes, first + 1
            while (
                last < len(headers)
                and size_bytes + headers[last].size_bytes <= self.config.segment_bytes
            ):
                size_bytes += headers[last].size_bytes
                last += 1
            part = view[position : position + size_bytes]
            rolled |= self._write([part], size_bytes, headers[first:last], now_ms)
            position, first = position + size_bytes, last
        return LogAppendInfo(headers[0].base_offset, expected - 1, rolled=rolled)

    def _wake(self) -> None:
        """Before the first append: the file's size is the truth, not the checkpoint. After a cut in
        a gap the end is above the last batch, and known.
        """
        self._check_not_loading()
        if not self.cuts:
            self.end_offset = self.segments[-1].next_offset
        self._producers = self._load_producers()

    def _write(
        self,
        buffers: list[bytes | memoryview],
        size_bytes: int,
        headers: Sequence[BatchHeader],
        now_ms: int,
    ) -> bool:
        assert self._producers is not None
        before = self.segments[-1]
        segment = self._segment_for(size_bytes, headers[0].base_offset, headers[-1], now_ms)
        if headers[-1].leader_epoch > self.epochs.latest:
            # An epoch whose records cannot be written does no harm: the next one takes its place.
            for header in headers:
                self.epochs.assign(header.leader_epoch, header.base_offset)
        elif self.epochs.is_pending:
            self.epochs.confirm()
        segment.append(buffers, size_bytes, headers)
        self.end_offset = headers[-1].next_offset
        producer_files.note_batches(self._producers, headers, buffers, segment)
        return segment is not before

    def prepare(self, header: BatchHeader, now_ms: int) -> Segment:
        """The segment that an append of this batch goes to. Raises ApiError, as `append`."""
        if self.is_closed:
            raise self._refusal()
        if self._producers is None:
            self._wake()
        header = replace(header, base_offset=self.end_offset)
        return self._segment_for(header.size_bytes, self.end_offset, header, now_ms)

    def _segment_for(
        self, size_bytes: int, base_offset: int, last: BatchHeader, now_ms: int
    ) -> Segment:
        """The last segment, or a new one if it is full. `last` is the last batch's header. Raises
        ApiError RECORD_LIST_TOO_LARGE before anything changes, and KAFKA_STORAGE_ERROR.
        """
        if size_bytes > self.config.segment_bytes:
            raise ApiError(
                ErrorCode.record_list_too_large,
                f"{size_bytes} bytes at once; segment.bytes is {self.config.segment_bytes}",
            )
        if self.unwanted_files:
            self._remove_unwanted()
        segment = self.segments[-1]
        if base_offset < segment.base_offset:
            segment = self._undo_roll()
        elif not segment.has_files:
            self.make_files()
        if must_roll(segment, size_bytes, last, now_ms, self.config):
            segment = self.roll(now_ms, base_offset)
        return segment

    @property
    def is_on_disk(self) -> bool:
        """Whether it has a folder and files, which are created with the first record."""
        return self.segments[-1].has_files

    def make_files(self) -> None:
        """Those of the last segment. Raises ApiError KAFKA_STORAGE_ERROR; there is then none."""
        made = make_folder(self.folder, self.topic_id)
        self._make_files(self.segments[-1])
        self.unsynced_files += made

    def roll(self, now_ms: int, base_offset: int | None = None) -> Segment:
        """Close the active segment and begin one at the log's end; the log then needs a flush.

        An empty active segment that already begins there stays. Raises ApiError
        KAFKA_STORAGE_ERROR.
        """
        offset = self.end_offset if base_offset is None else base_offset
        active = self.segments[-1]
        if active.base_offset > offset:
            active = self._undo_roll()
        if active.base_offset == offset and active.size_bytes == 0:
            active.created_ms = now_ms
            return active
        producers = self.producers
        self.seal(active)
        segment = self.begin_segment(offset, now_ms)
        try:
            self._write_snapshot(offset, producers)
        except ApiError:
            # Above a gap the segment would be the log's end, without the producers up to there.
            self._undo_roll()
            raise
        return segment

    def seal(self, segment: Segment) -> None:
        """End the writing to it. Its batches may be synced already, but not the last entries of its
        indexes. Raises ApiError KAFKA_STORAGE_ERROR.
        """
        segment.seal()
        self.unsynced_files += segment.index_paths

    def _undo_roll(self) -> Segment:
        """A roll was not completed, or a follower rolled at a batch after a gap and could not write
        it. Now another leader may have records in the gap. Raises ApiError KAFKA_STORAGE_ERROR.
        """
        unused = self.segments.pop()
        assert self.segments
        assert not unused.size_bytes
        self.discard(unused)
        producer_files.remove_snapshots(self.folder, self.snapshots, self.end_offset)
        self._remove_unwanted()
        return self.segments[-1]

    def check_transaction_index(self, number: int, *, wait: bool = True) -> None:
        """Rebuild the transaction index of `segments[number]` if it is not what the batches say.
        Raises ApiError KAFKA_STORAGE_ERROR, RebuildingError if it takes long, and NotCachedError if
        it must not `wait` for the disk.
        """
        segment = self.segments[number]
        index = segment.txn_index
        if index is None or index.is_checked:
            return
        segment.check_not_rebuilding()
        try:
            if self.files.rebuild_later is not None and index.load() > MAX_CHECKED:
                raise CorruptIndexError(f"{index.path} has many entries, which are not checked")
            check_index(self.segments, number, wait=wait)
        except CorruptIndexError as error:
            self.rebuild_transaction_index(number, error)
        except OSError as error:
            raise storage_error(f"cannot read {index.path}", error) from None

    def rebuild_transaction_index(self, number: int, why: Exception) -> None:
        """Raises ApiError KAFKA_STORAGE_ERROR, and RebuildingError if it takes long."""
        segment = self.segments[number]
        segment.check_rebuild()
        if segment.is_rebuilt_later(sum(each.size_bytes for each in self.segments[: number + 1])):
            rebuild = transaction_rebuild(self.folder, self.snapshots, self.segments, number, why)
            raise segment.begin_rebuild(rebuild)
        producer_files.rebuild_transaction_index(self.folder, self.snapshots, self.segments, number)
        logger.warning("the transaction index is built again: %s", why)

    def _load_producers(self) -> ProducerState:
        # Before the first append, which may abort a transaction.
        self.check_transaction_index(len(self.segments) - 1)
        return producer_files.load_producers(
            self.folder,
            self.snapshots,
            self.segments,
            replay_from=max(self.replay_from, self.start_offset),
            end_offset=self.end_offset,
        )

    def take_snapshot(self) -> None:
        """Write a snapshot of the producers at the log's end, unless there are none and never was
        one. Raises ApiError KAFKA_STORAGE_ERROR.
        """
        producers = self._producers
        if producers is not None and (producers.producers or self.snapshots):
            self._write_snapshot(self.end_offset, producers)

    def _write_snapshot(self, offset: int, producers: ProducerState) -> None:
        """Synced with the next flush."""
        path = producer_files.write_snapshot(self.folder, offset, producers.producers.values())
        if not self.snapshots or self.snapshots[-1] < offset:
            self.snapshots.append(offset)
        self.unsynced_files.append(path)

    def begin_segment(self, base_offset: int, now_ms: int) -> Segment:
        """A new empty segment after the others. Raises ApiError KAFKA_STORAGE_ERROR; the log is
        then as it was.
        """
        segment = self._new_segment(base_offset, now_ms)
        self._make_files(segment)
        self.segments.append(segment)
        return segment

    def begin_again(self, base_offset: int, now_ms: int) -> None:
        """A new empty segment, now that there is none. `make_files` makes its files."""
        assert not self.segments
        self.segments.append(self._new_segment(base_offset, now_ms))

    def _new_segment(self, base_offset: int, now_ms: int) -> Segment:
        jitter_ms = self.config.segment_jitter_ms
        return Segment.create(
            self.folder,
            base_offset,
            self.files,
            now_ms=now_ms,
            index_interval_bytes=self.config.index_interval_bytes,
            jitter_ms=self._random.randrange(jitter_ms) if self._random and jitter_ms > 0 else 0,
            with_files=False,
        )

    def _make_files(self, segment: Segment) -> None:
        self._remove_unwanted()
        try:
            segment.make_files(self.config.preallocate_bytes)
        except ApiError:
            self.discard(segment)
            raise
        self.unsynced_files.append(self.folder)

    def discard(self, segment: Segment) -> None:
        """Remove the files of an empty segment that the log does not have after all; now, or before
        the next append.
        """
        self.files.forget(segment)
        self.unwanted_files += map(segment.path_of, names.SEGMENT_SUFFIXES)
        with suppress(ApiError):  # the caller reports that the disk fails
            self._remove_unwanted()

    def _remove_unwanted(self) -> None:
        while self.unwanted_files:
            try:
                os.unlink(self.unwanted_files[-1])
            except FileNotFoundError:
                pass  # it was not made
            except OSError as error:
                path = self.unwanted_files[-1]
                raise storage_error(f"cannot remove {path}", error) from None
            self.unwanted_files.pop()

    def read(
        self,
        offset: int,
        *,
        max_bytes: int,
        up_to_offset: int | None = None,
        min_one_batch: bool = True,
        wait: bool = True,
    ) -> FileRange:
        """The file range that begins with the batch of `offset` and ends before `up_to_offset` or
        at the limit.

        With `min_one_batch` the first batch is whole, however large; otherwise the range is empty
        if it does not fit. It is also empty at the end. Raises ApiError OFFSET_OUT_OF_RANGE or
        KAFKA_STORAGE_ERROR. If it must not `wait` for the disk to look up the offset, raises
        NotCachedError: `find_work` then reads what it needs.
        """
        end_offset = self.end_offset
        if not self.start_offset <= offset <= end_offset:
            raise ApiError(
                ErrorCode.offset_out_of_range,
                f"offset {offset}; the log has {self.start_offset} to {end_offset}",
            )
        if up_to_offset is None or up_to_offset > end_offset:
            up_to_offset = end_offset
        if offset >= up_to_offset:
            return EMPTY
        for number in range(self.segment_number(offset), len(self.segments)):
            segment = self.segments[number]
            found = self.find(segment, offset, wait=wait)
            if found is None:
                continue  # compaction left a gap at the end of the segment
            limit = self._limit(number, up_to_offset, wait=wait)
            wanted = max(max_bytes, found.size_bytes) if min_one_batch else max_bytes
            size_bytes = min(limit - found.position, wanted)
            if size_bytes <= 0 or (size_bytes < found.size_bytes and not min_one_batch):
                return EMPTY
            return FileRange(segment.file(), found.position, size_bytes, segment.base_offset)
        return EMPTY

    def upper_bound(self, found: FileRange, up_to_offset: int, *, wait: bool = True) -> int:
        """An offset above those of all records in `found`, which was read up to `up_to_offset`. The
        index decides: it may be above records that follow, too.

        Raises NotCachedError if it must not `wait` for the disk.
        """
        number = self.segment_number(found.base_offset)
        segment = self.segments[number]
        bound = segment.upper_bound(found.position + found.size_bytes, wait=wait)
        if bound is None:
            is_active = number + 1 == len(self.segments)
            bound = self.end_offset if is_active else self.segments[number + 1].base_offset
        return min(bound, up_to_offset)

    def segment_number(self, offset: int) -> int:
        """The index in `segments` of the segment that contains `offset`."""
        if offset >= self.segments[-1].base_offset:
            return len(self.segments) - 1
        return max(bisect_right(self.segments, offset, key=_base_offset) - 1, 0)

    def find_work(self, offset: int) -> Callable[[], None]:
        """See `Segment.find_work`; raises ApiError KAFKA_STORAGE_ERROR."""
        return self.segments[self.segment_number(offset)].find_work(offset)

    def _limit(self, number: int, up_to_offset: int, *, wait: bool) -> int:
        """The position in the segment's file at which the readable part ends."""
        segment = self.segments[number]
        next_offset = (
            self.end_offset
            if number + 1 == len(self.segments)
            else self.segments[number + 1].base_offset
        )
        if up_to_offset >= next_offset:
            return segment.size_bytes
        found = self.find(segment, up_to_offset, wait=wait)
        return segment.size_bytes if found is None else found.position

    def find(self, segment: Segment, offset: int, *, wait: bool = True) -> Found | None:
        """`Segment.find`; a damaged file raises KAFKA_STORAGE_ERROR."""
        try:
            return segment.find(offset, wait=wait)
        except CorruptBatchError as error:
            raise ApiError(
                ErrorCode.kafka_storage_error, f"{segment.path} is damaged: {error}"
            ) from None

    def advance_start(self, offset: int) -> None:
        """Advance the log's start (DeleteRecords, retention). Earlier records are no longer served.

        Raises ApiError OFFSET_OUT_OF_RANGE past the end. `retention.remove_expired` removes the
        files.
        """
        if offset > self.end_offset:
            raise ApiError(
                ErrorCode.offset_out_of_range, f"offset {offset}; the log ends at {self.end_offset}"
            )
        if offset > self.start_offset:
            self.start_offset = offset
            self.epochs.truncate_from_start(offset)

    def close(self) -> None:
        """Store what is only in memory: index entries and producers. Raises ApiError
        KAFKA_STORAGE_ERROR.

        A log that has no snapshot at the next start has no producers (KAFKA-5435), so those that a
        cut has made unknown are read first.
        """
        self._remove_unwanted()
        active = self.segments[-1]
        active.end_staging()
        if self.is_on_disk and active.offset_index.is_loaded:
            self.seal(active)
        if self.cuts:
            # The disk may have refused the last step of one: see `truncation`.
            if not self.is_on_disk:
                self.make_files()
                self.seal(active)  # it may be preallocated
            elif active.next_offset < self.end_offset:
                self.seal(self.begin_segment(self.end_offset, active.created_ms))
        if self.cuts and not self.knows_producers:
            self.set_producers(self._load_producers())
        self.take_snapshot()
        if self.epochs.is_dirty:
            self.unsynced_files.append(self.folder)  # the flush that is needed writes their file
        for segment in self.segments:
            self.files.forget(segment)

    def deleted(self, folder: str) -> None:
        """Its folder was renamed to `folder`, which is removed later.

        The log keeps using its files: a recreated topic has new files under the old name, and
        readers or maintenance that still hold this log must not touch those.
        """
        self.is_closed = True
        self.loading = None
        self.folder = folder
        self.epochs.move_to(folder)
        self.unsynced_files.clear()
        self.unwanted_files.clear()
        for segment in self.segments:
            self.files.forget(segment)
            segment.rebuild = None
            segment.move_to(folder)

    def give_up(self, sync_failure: str) -> None:
        """An fsync of it has failed. May be called in any thread."""
        self.sync_failure = sync_failure
        self.is_closed = True

    def _refusal(self) -> ApiError:
        if self.sync_failure is not None:
            return SyncError(self.sync_failure)
        return ApiError(ErrorCode.unknown_topic_or_partition, f"{self.folder} is closed")


def _base_offset(segment: Segment) -> int:
    return segment.base_offset
