"""One segment: a log file with its indexes.

    <first offset>.log         record batches as clients see them, one after the other
    <first offset>.index       see `offset_index`
    <first offset>.timeindex   see `time_index`
    <first offset>.txnindex    see `transaction_index`; only if a transaction was aborted

Only the last segment of a log is written to. Crash: its end may hold half a batch, which recovery
removes.
"""

import logging
import os
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

from ottla.log import names, scan
from ottla.log.errors import CorruptIndexError, RebuildingError, damaged_error, storage_error
from ottla.log.index_file import find_entry
from ottla.log.index_rebuild import MAX_AT_ONCE_BYTES, IndexRebuild, scratch_suffix
from ottla.log.offset_index import ENTRY, OffsetIndex
from ottla.log.open_file import OpenFile, OpenFiles
from ottla.log.page_cache import Pread, pread_cached
from ottla.log.scan import scan_headers
from ottla.log.set_aside import make_way
from ottla.log.task import Rebuild
from ottla.log.time_index import TimeIndex
from ottla.log.transaction_index import AbortedTransaction, TransactionIndex
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.errors import CorruptBatchError
from ottla.records.header import HEADER_BYTES, NO_TIMESTAMP, BatchHeader

logger = logging.getLogger("ottla.recovery")

_MAX_RECENT: Final = 512
_MAX_BUFFERS: Final = 1000
"""Below the system's limit of 1024 buffers per write."""
MAX_SCANNED: Final = 20_000
"""Batches between two entries of a sound offset index: 30 ms. Apache Kafka has one for each append
of up to 1 MiB from a leader."""


class Found(NamedTuple):
    """A batch that was found: its position in the file, and its size in bytes."""

    position: int
    size_bytes: int


class Segment:
    """A segment. Use it on the event loop's thread; tasks may use what they captured of it."""

    __slots__ = (
        "_bytes_since_entry",
        "_ends_known",
        "_first_timestamp",
        "_next_offset",
        "_rebuild_failure",
        "_recent_from",
        "_recent_offsets",
        "_recent_positions",
        "_staged",
        "_staged_bytes",
        "_were_rebuilt",
        "base_offset",
        "created_ms",
        "files",
        "folder",
        "has_files",
        "index_interval_bytes",
        "jitter_ms",
        "max_timestamp",
        "max_timestamp_offset",
        "offset_index",
        "rebuild",
        "size_bytes",
        "suffix",
        "time_index",
        "txn_index",
    )

    def __init__(
        self,
        folder: str,
        base_offset: int,
        files: OpenFiles,
        *,
        size_bytes: int,
        created_ms: int,
        index_interval_bytes: int,
        jitter_ms: int = 0,
        suffix: str = "",
        has_aborted: bool = False,
    ) -> None:
        """`has_aborted`: there is a file of its transaction index."""
        self.folder = folder
        self.base_offset = base_offset
        self.files = files
        self.size_bytes = size_bytes
        self.created_ms = created_ms
        self.index_interval_bytes = index_interval_bytes
        self.jitter_ms = jitter_ms
        self.suffix = suffix
        self.has_files = True
        self.offset_index = OffsetIndex(self.path_of(names.INDEX), base_offset)
        self.time_index = TimeIndex(self.path_of(names.TIME_INDEX), base_offset)
        self.txn_index: TransactionIndex | None = None
        """None if no transaction was aborted here."""
        if has_aborted:
            self.txn_index = TransactionIndex(self.path_of(names.TXN_INDEX), base_offset)
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        self._ends_known = False
        self._were_rebuilt = False
        """The indexes, because they were damaged. It helps once."""
        self.rebuild: Rebuild | None = None
        """The rebuild that is under way."""
        self._rebuild_failure: ApiError | None = None
        """Why the last one has failed: the error of the next look-up that needs it."""
        self._next_offset = base_offset
        self._bytes_since_entry = 0
        self._first_timestamp: int | None = None
        # The last appends: tailing readers and the high watermark need no lookup. Last offsets, as
        # in the index: a follower's log has gaps, and in one the next batch is the wanted one.
        self._recent_offsets: array[int] | None = None
        self._recent_positions: array[int] | None = None
        self._recent_from = base_offset
        """Where the batch before them ends."""
        self._staged: memoryview | None = None
        """A batch that is written before its append: see `staged_append`."""
        self._staged_bytes = 0
        """So many, after its header, are in the file past the segment's end."""

    @classmethod
    def create(
        cls,
        folder: str,
        base_offset: int,
        files: OpenFiles,
        *,
        now_ms: int,
        index_interval_bytes: int,
        jitter_ms: int = 0,
        suffix: str = "",
        preallocate_bytes: int = 0,
        with_files: bool = True,
    ) -> "Segment":
        """A new empty segment, with its files unless they are created later. Raises ApiError
        KAFKA_STORAGE_ERROR.
        """
        segment = cls(
            folder,
            base_offset,
            files,
            size_bytes=0,
            created_ms=now_ms,
            index_interval_bytes=index_interval_bytes,
            jitter_ms=jitter_ms,
            suffix=suffix,
        )
        segment.offset_index.reset()
        segment.time_index.reset()
        segment._ends_known = True
        segment.has_files = False
        if with_files:
            segment.make_files(preallocate_bytes)
        return segment

    def make_files(self, preallocate_bytes: int = 0) -> None:
        """Raises ApiError KAFKA_STORAGE_ERROR."""
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
        try:
            file = OpenFile(self.path, flags)
            if preallocate_bytes:
                file.preallocate(preallocate_bytes)
            # Kafka treats a segment without index files as damaged.
            OpenFile(self.offset_index.path, flags)
            OpenFile(self.time_index.path, flags)
        except OSError as error:
            raise storage_error(f"cannot create {self.path}", error) from None
        self.has_files = True

    def path_of(self, suffix: str) -> str:
        """The path of this segment's file with `suffix`, even during a swap."""
        name = names.file_name(self.base_offset, suffix)
        return f"{self.folder}/{name}{self.suffix}"

    def move_to(self, folder: str) -> None:
        """The files are now in `folder`."""
        self.folder = folder
        self.offset_index.path = self.path_of(names.INDEX)
        self.time_index.path = self.path_of(names.TIME_INDEX)
        if self.txn_index is not None:
            self.txn_index.path = self.path_of(names.TXN_INDEX)

    @property
    def index_paths(self) -> list[str]:
        """The files that `seal` completes."""
        paths = [self.offset_index.path, self.time_index.path]
        return paths if self.txn_index is None else [*paths, self.txn_index.path]

    @property
    def path(self) -> str:
        return self.path_of(names.LOG)

    @property
    def next_offset(self) -> int:
        """The offset after the last record; the first call scans from the last index entry."""
        if not self._ends_known:
            self.load_ends()
        return self._next_offset

    def file(self) -> OpenFile:
        """The open log file. Raises ApiError KAFKA_STORAGE_ERROR."""
        try:
            return self.files.of(self)
        except OSError as error:
            raise storage_error(f"cannot open {self.path}", error) from None

    def load_ends(self) -> None:
        """Find what appends need: the next offset and the largest timestamp. Raises ApiError
        KAFKA_STORAGE_ERROR and RebuildingError.
        """
        self.check_not_rebuilding()
        try:
            self._load_ends()
        except (CorruptIndexError, CorruptBatchError) as error:
            self._mend_indexes(error)

    def _load_ends(self) -> None:
        time, time_offset = self.time_index.last()
        last_offset, position = self.offset_index.last()
        if not 0 <= position <= self.size_bytes or position == self.size_bytes > 0:
            raise CorruptIndexError(f"{self.offset_index.path} points past the log's end")
        max_time, max_offset = time, time_offset
        next_offset = self.base_offset
        is_proven = time == NO_TIMESTAMP
        for at, header in self._ordered_headers(position):
            if at == position > 0 and header.base_offset > last_offset:
                raise CorruptIndexError(f"{self.offset_index.path} points to another batch")
            next_offset = header.next_offset
            if header.max_timestamp > max_time:
                max_time, max_offset = header.max_timestamp, header.last_offset
            if not is_proven and header.base_offset <= time_offset < next_offset:
                is_proven = header.max_timestamp == time
        if max_time > time and not self.time_index.is_loaded:
            raise CorruptIndexError(f"{self.time_index.path} does not end with the largest time")
        if not is_proven and not self._has_time(time_offset, time):
            raise CorruptIndexError(f"{self.time_index.path} names another batch's time")
        self.max_timestamp, self.max_timestamp_offset = max_time, max_offset
        self._next_offset = next_offset
        self._bytes_since_entry = self.size_bytes - position
        self._ends_known = True

    def _has_time(self, offset: int, time: int) -> bool:
        """Whether the batch that contains `offset` has this largest timestamp, as an entry of the
        time index says.
        """
        found = self.find(offset)
        if found is None:
            return False
        _, header = next(self.headers(found.position))
        return header.base_offset <= offset and header.max_timestamp == time

    def _mend_indexes(self, error: Exception) -> None:
        """Rebuild the indexes of offsets and times, once: if the batches themselves are damaged, it
        is no use. Raises ApiError KAFKA_STORAGE_ERROR, and RebuildingError if it takes long.
        """
        self.check_rebuild()
        if self._were_rebuilt:
            raise damaged_error(self.path, error)
        if self.is_rebuilt_later(self.size_bytes):
            raise self.begin_rebuild(self._index_rebuild(error))
        self._were_rebuilt = True
        try:
            self.rebuild_indexes()
        except CorruptBatchError as fault:
            raise damaged_error(self.path, fault) from None
        logger.warning("the indexes of %s are built again: %s", self.path, error)

    def is_rebuilt_later(self, size_bytes: int) -> bool:
        """Whether an index for which so many bytes of batches are read is rebuilt off the loop."""
        return self.files.rebuild_later is not None and size_bytes > MAX_AT_ONCE_BYTES

    def begin_rebuild(self, rebuild: Rebuild) -> RebuildingError:
        """Let it run off the loop. Nothing is appended or cut until `end_rebuild`."""
        assert self.rebuild is None
        assert self.files.rebuild_later is not None
        self.rebuild = rebuild
        self._ends_known = False
        self.files.rebuild_later(rebuild)
        return RebuildingError(self.path, rebuild)

    def end_rebuild(self, failure: ApiError | None, *, is_damaged: bool) -> None:
        """See `index_rebuild.Rebuilt`."""
        self.rebuild = None
        self._rebuild_failure = failure
        self._were_rebuilt = self._were_rebuilt or is_damaged

    def _index_rebuild(self, why: Exception) -> IndexRebuild:
        """Raises ApiError KAFKA_STORAGE_ERROR."""
        scratch = self.scratch()
        return IndexRebuild(
            self,
            self.path,
            why,
            build=partial(_build_indexes, scratch, self.file()),
            take=partial(self._take_indexes, scratch),
            scratch_paths=scratch.index_paths,
        )

    def check_not_rebuilding(self) -> None:
        """Raises RebuildingError."""
        if self.rebuild is not None:
            raise RebuildingError(self.path, self.rebuild)

    def check_rebuild(self) -> None:
        """Raises RebuildingError, and the error of a rebuild that has failed, once."""
        self.check_not_rebuilding()
        failure, self._rebuild_failure = self._rebuild_failure, None
        if failure is not None:
            raise failure

    def scratch(self) -> "Segment":
        """The same batches, whose index files have other names: to build them again."""
        return Segment(
            self.folder,
            self.base_offset,
            OpenFiles(1),
            size_bytes=self.size_bytes,
            created_ms=self.created_ms,
            index_interval_bytes=self.index_interval_bytes,
            suffix=scratch_suffix(),
        )

    def _take_indexes(self, scratch: "Segment") -> None:
        """Use the index files of offsets and times that were built for `scratch`. Raises ApiError
        KAFKA_STORAGE_ERROR.
        """
        assert scratch.size_bytes == self.size_bytes
        try:
            for suffix in (names.INDEX, names.TIME_INDEX):
                make_way(self.path_of(suffix))
                os.replace(scratch.path_of(suffix), self.path_of(suffix))
        except OSError as error:
            raise storage_error(f"cannot rebuild the indexes of {self.path}", error) from None
        finally:
            self.offset_index.discard()
            self.time_index.discard()
        self.max_timestamp = scratch.max_timestamp
        self.max_timestamp_offset = scratch.max_timestamp_offset
        self._next_offset = scratch._next_offset
        self._bytes_since_entry = scratch._bytes_since_entry
        self._ends_known = self._were_rebuilt = True

    def take_transaction_index(self, scratch: "Segment") -> None:
        """The same for its transaction index. Raises ApiError KAFKA_STORAGE_ERROR."""
        assert scratch.txn_index is not None
        path = self.path_of(names.TXN_INDEX)
        try:
            make_way(path)
            with suppress(FileNotFoundError):
                os.unlink(path)
            with suppress(FileNotFoundError):  # no transaction was aborted here
                os.replace(scratch.txn_index.path, path)
        except OSError as error:
            raise storage_error(f"cannot write {path}", error) from None
        self.txn_index = scratch.txn_index
        self.txn_index.path = path

    def headers(
        self, position: int = 0, pread: Pread = os.pread
    ) -> Iterator[tuple[int, BatchHeader]]:
        """Positions and headers of the batches from `position` on."""
        if self.size_bytes == 0:
            return iter(())
        return scan_headers(self.file(), position, self.size_bytes, pread=pread)

    def _ordered_headers(
        self, position: int = 0, pread: Pread = os.pread
    ) -> Iterator[tuple[int, BatchHeader]]:
        # An index that lacks entries is noticed by how long this takes, if a rebuild may help.
        is_limited = (
            not self._were_rebuilt
            and self.is_rebuilt_later(self.size_bytes)
            and self.index_interval_bytes <= MAX_AT_ONCE_BYTES
        )
        return self.ordered(self.headers(position, pread), MAX_SCANNED if is_limited else -1)

    def ordered(
        self, headers: Iterator[tuple[int, BatchHeader]], left: int = -1
    ) -> Iterator[tuple[int, BatchHeader]]:
        """The same headers. Raises CorruptBatchError also for an offset that cannot be right: no
        checksum covers it; and CorruptIndexError after the batches that are `left`, if 0 or more.
        """
        expected = self.base_offset
        for at, header in headers:
            if left == 0:
                raise CorruptIndexError(f"{self.offset_index.path} lacks entries before {at}")
            left -= 1
            next_offset = header.next_offset
            if not expected <= header.base_offset < next_offset <= self.base_offset + 2**31:
                raise CorruptBatchError(
                    f"the batch at {at} has offsets {header.base_offset} to {next_offset - 1}"
                )
            yield at, header
            expected = next_offset

    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch; -1 for an empty segment."""
        if self._first_timestamp is None:
            found = next(self.headers(), None)
            if found is None:
                return NO_TIMESTAMP
            self._first_timestamp = found[1].max_timestamp
        return self._first_timestamp

    def append(
        self, buffers: list[bytes | memoryview], size_bytes: int, headers: Sequence[BatchHeader]
    ) -> int:
        """Write `buffers`, which hold the batches of `headers`; returns the position at which they
        begin.

        Raises ApiError KAFKA_STORAGE_ERROR; the file then ends where it did before.
        """
        if not self._ends_known:
            self.load_ends()
        self._load_indexes()
        start = position = self.size_bytes
        self._write(buffers, size_bytes)
        self.size_bytes += size_bytes
        if self._first_timestamp is None and position == 0:
            self._first_timestamp = headers[0].max_timestamp
        if self._recent_offsets is None or self._recent_positions is None:
            self._recent_offsets, self._recent_positions = array("q"), array("q")
            self._recent_from = self._next_offset
        for header in headers:
            self.index_batch(position, header)
            self._recent_offsets.append(self._next_offset - 1)
            self._recent_positions.append(position)
            position += header.size_bytes
        if len(self._recent_offsets) > _MAX_RECENT:
            self._recent_from = self._recent_offsets[-_MAX_RECENT // 2 - 1] + 1
            del self._recent_offsets[: -_MAX_RECENT // 2]
            del self._recent_positions[: -_MAX_RECENT // 2]
        return start

    def _load_indexes(self) -> None:
        try:
            self.offset_index.load()
            self.time_index.load()
        except CorruptIndexError as error:
            self._mend_indexes(error)
            self.offset_index.load()
            self.time_index.load()

    def index_batch(self, position: int, header: BatchHeader) -> None:
        """Update the ends with the batch at `position` and, if one is due, add an index entry."""
        last_offset = header.base_offset + header.last_offset_delta
        if header.max_timestamp > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_offset = header.max_timestamp, last_offset
        if self._bytes_since_entry > self.index_interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
            self._bytes_since_entry = 0
        self._bytes_since_entry += header.size_bytes
        self._next_offset = last_offset + 1

    def add_aborted(self, transaction: AbortedTransaction) -> None:
        """A marker in this segment has aborted the transaction."""
        if self.txn_index is None:
            self.txn_index = TransactionIndex(self.path_of(names.TXN_INDEX), self.base_offset)
        self.txn_index.append(transaction)

    def reset_transaction_index(self) -> None:
        """Empty it, so that `add_aborted` can rebuild it. Raises ApiError KAFKA_STORAGE_ERROR."""
        if self.txn_index is not None:
            try:
                make_way(self.txn_index.path)
                self.txn_index.reset()
            except OSError as error:
                raise storage_error(f"cannot write {self.txn_index.path}", error) from None

    def store_transaction_index(self) -> None:
        """Raises ApiError KAFKA_STORAGE_ERROR."""
        if self.txn_index is not None:
            try:
                self.txn_index.store()
            except OSError as error:
                raise storage_error(f"cannot write {self.txn_index.path}", error) from None

    def reset_indexes(self) -> None:
        """Empty the indexes of offsets and times, so that `index_batch` can rebuild them. Raises
        ApiError KAFKA_STORAGE_ERROR.
        """
        try:
            make_way(self.offset_index.path)
            make_way(self.time_index.path)
        except OSError as error:
            raise storage_error(f"cannot rebuild the indexes of {self.path}", error) from None
        self.offset_index.reset()
        self.time_index.reset()
        self.max_timestamp, self.max_timestamp_offset = NO_TIMESTAMP, self.base_offset
        self._next_offset, self._bytes_since_entry = self.base_offset, 0
        self._first_timestamp = None
        self._ends_known = True

    def rebuild_indexes(self) -> None:
        """Rebuild both index files from the batches' headers. Raises CorruptBatchError, and leaves
        the files as they are; ApiError KAFKA_STORAGE_ERROR.
        """
        self.reset_indexes()
        try:
            for position, header in self._ordered_headers():
                self.index_batch(position, header)
        except CorruptBatchError:
            self.offset_index.discard()
            self.time_index.discard()
            self._ends_known = False
            raise
        self.store_indexes()

    def store_indexes(self) -> None:
        """Complete the indexes with the largest timestamp, store them, and free the memory: of the
        offset index last, so that it says whether all are stored.
        """
        self.store_transaction_index()
        try:
            if self.max_timestamp > NO_TIMESTAMP:
                self.time_index.load()
                self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
            self.time_index.release()
            self.offset_index.release()
        except OSError as error:
            raise storage_error(f"cannot write the indexes of {self.path}", error) from None

    def begin_staging(self, batch: memoryview) -> None:
        """The next calls of `stage` write this batch past the segment's end. Raises ApiError
        KAFKA_STORAGE_ERROR.
        """
        self.end_staging()  # that of another connection, which begins again
        self._staged, self._staged_bytes = batch, 0

    def stage(self, batch: memoryview, size_bytes: int) -> bool:
        """Write the next bytes of the batch, from the end of its header on. False if anything else
        has used the end of the file since `begin_staging`. Raises ApiError KAFKA_STORAGE_ERROR.
        """
        if self._staged is not batch:
            return False
        start = HEADER_BYTES + self._staged_bytes
        part = batch[start : start + size_bytes]
        self._write_at(self.file().fd, [part], len(part), self.size_bytes + start)
        self._staged_bytes += len(part)
        return True

    def end_staging(self, batch: memoryview | None = None) -> None:
        """Remove what was not appended, of this batch or of any. Raises ApiError
        KAFKA_STORAGE_ERROR.
        """
        if self._staged is not None and (batch is None or self._staged is batch):
            self._cut(self.file().fd)

    def _write(self, buffers: list[bytes | memoryview], size_bytes: int) -> None:
        fd = self.file().fd
        if len(buffers) > _MAX_BUFFERS:
            buffers = [b"".join(buffers)]
        if self._staged is not None:
            buffers, size_bytes = self._unstaged(buffers, size_bytes)
        self._write_at(fd, buffers, size_bytes, self.size_bytes)

    def _unstaged(
        self, buffers: list[bytes | memoryview], size_bytes: int
    ) -> tuple[list[bytes | memoryview], int]:
        """What is left to write: the header, if the whole rest of these very bytes is staged."""
        staged, last = self._staged, buffers[-1]
        assert staged is not None
        if (
            isinstance(last, memoryview)
            and last.obj is staged.obj
            and size_bytes == len(staged) == HEADER_BYTES + self._staged_bytes
        ):
            self._staged = None
            return [*buffers[:-1], last[: len(last) - self._staged_bytes]], HEADER_BYTES
        # Another append: it may be shorter than what is staged.
        self._cut(self.file().fd)
        return buffers, size_bytes

    def _write_at(
        self, fd: int, buffers: list[bytes | memoryview], size_bytes: int, position: int
    ) -> None:
        try:
            written = os.pwritev(fd, buffers, position)
        except OSError as error:
            self._cut(fd)
            raise storage_error(f"cannot write {self.path}", error) from None
        if written != size_bytes:
            self._cut(fd)
            raise ApiError(
                ErrorCode.kafka_storage_error,
                f"cannot write {self.path}: only {written} of {size_bytes} bytes were written; "
                "the disk may be full",
            )

    def _cut(self, fd: int) -> None:
        self._staged = None
        try:
            os.ftruncate(fd, self.size_bytes)
        except OSError as error:
            raise storage_error(
                f"cannot truncate the half-written end of {self.path}", error
            ) from None

    def find(self, offset: int, *, wait: bool = True) -> Found | None:
        """The batch that contains `offset`, or the first one after it; None if there is none here.

        Raises CorruptBatchError and ApiError KAFKA_STORAGE_ERROR, and NotCachedError if it must not
        `wait` for the disk.
        """
        recent, positions = self._recent_offsets, self._recent_positions
        if recent and positions and offset >= self._recent_from:
            if offset >= self._next_offset:
                return None
            # The first whose last offset reaches it (FileRecords.searchForOffsetFromPosition).
            number = bisect_left(recent, offset)
            position = positions[number]
            end = positions[number + 1] if number + 1 < len(positions) else self.size_bytes
            return Found(position, end - position)
        if self.size_bytes == 0:
            return None
        try:
            return self._find(offset, os.pread if wait else pread_cached)
        except (CorruptIndexError, CorruptBatchError) as error:
            self._mend_indexes(error)
            return self._find(offset, os.pread)

    def _find(self, offset: int, pread: Pread) -> Found | None:
        """`find` by the index. Raises CorruptBatchError if the index points to another batch, and
        CorruptIndexError if it lacks entries.
        """
        start = self.lookup(offset, pread)
        headers = self._ordered_headers(start, pread)
        header: BatchHeader | None = None
        for at, header in headers:
            if header.base_offset + header.last_offset_delta >= offset:
                if header.base_offset > offset:
                    # Rightly if the log has a gap, but not if the index has pointed to it. The
                    # batch after it tells whether its offset can be right.
                    if at == start > 0:
                        raise CorruptBatchError(f"the batch at {at} is after offset {offset}")
                    next(headers, None)
                return Found(at, header.size_bytes)
        if header is None and start > 0:
            raise CorruptBatchError(f"there is no batch at {start}, where the index has one")
        return None

    def upper_bound(self, position: int, *, wait: bool = True) -> int | None:
        """An offset that is above those of all batches that begin before `position`, from the
        indexes; None if they have no such batch. Raises ApiError KAFKA_STORAGE_ERROR.
        """
        recent, positions = self._recent_offsets, self._recent_positions
        if recent and positions and position >= positions[0]:
            number = bisect_left(positions, position)
            return recent[number - 1] + 1 if number else self._recent_from
        pread: Pread = os.pread if wait else pread_cached
        try:
            return self._upper_bound(position, pread)
        except (CorruptIndexError, CorruptBatchError) as error:
            self._mend_indexes(error)
            return self._upper_bound(position, os.pread)

    def _upper_bound(self, position: int, pread: Pread) -> int | None:
        entry = self.offset_index.entry_from(position, pread)
        if entry is None:
            return None
        offset, at = entry
        found = next(self.headers(at, pread), None)
        if found is None or not self.base_offset <= found[1].base_offset <= offset:
            raise CorruptIndexError(f"{self.offset_index.path} points to another batch")
        return offset

    def find_work(self, offset: int) -> Callable[[], None]:
        """Read what `find` reads, in a worker thread, so that it is in the page cache."""
        return partial(_find, self.offset_index.path, self.base_offset, self.file(), offset)

    def find_all_work(self, offsets: Callable[[], Iterable[int]]) -> Callable[[], None]:
        """The same for the offsets that `offsets` returns in the worker thread."""
        return partial(_find_all, self.offset_index.path, self.base_offset, self.file(), offsets)

    def lookup(self, offset: int, pread: Pread = os.pread) -> int:
        """The position that the index has for `offset`: its batch begins there or later. Raises
        ApiError KAFKA_STORAGE_ERROR.
        """
        try:
            _, position = self.offset_index.lookup(offset, pread)
            if 0 <= position < self.size_bytes:
                return position
            why = f"{self.offset_index.path} points to {position}"
        except CorruptIndexError as error:
            why = str(error)
        self._mend_indexes(CorruptIndexError(why))
        return self.offset_index.lookup(offset)[1]

    def time_index_entry(self, timestamp_ms: int) -> tuple[int, int]:
        """The time index's last entry that is not later: (time, offset). Raises ApiError
        KAFKA_STORAGE_ERROR.
        """
        try:
            time, offset = self.time_index.lookup(timestamp_ms)
            if time == NO_TIMESTAMP or self._has_time(offset, time):
                return time, offset
            why = f"{self.time_index.path} names another batch's time"
        except CorruptIndexError as error:
            why = str(error)
        self._mend_indexes(CorruptIndexError(why))
        return self.time_index.lookup(timestamp_ms)

    def largest_record_timestamp(self) -> int:
        """The largest timestamp of all records; -1 if no record has one."""
        if self.max_timestamp < 0 and self.size_bytes and not self._ends_known:
            self.load_ends()
        return self.max_timestamp

    def largest_timestamp(self) -> int:
        """The largest timestamp of all records, which retention by time uses.

        If no record has one, the time of the file's last write. Raises ApiError
        KAFKA_STORAGE_ERROR.
        """
        if self.largest_record_timestamp() >= 0 or self.size_bytes == 0:
            return self.max_timestamp
        try:
            return os.stat(self.path).st_mtime_ns // 1_000_000
        except OSError as error:
            raise storage_error(f"cannot read the time of {self.path}", error) from None

    def truncate_to(self, offset: int) -> int:
        """Remove every batch that contains `offset` or more; returns the log's new end.

        That is `offset`, or the first offset of the batch that contained it. Raises ApiError
        KAFKA_STORAGE_ERROR, RebuildingError, and CorruptIndexError if the transaction index must be
        rebuilt first.
        """
        self.check_not_rebuilding()
        self._recent_offsets = self._recent_positions = None
        self.end_staging()
        try:
            return self._truncate_to(offset)
        except CorruptBatchError as error:
            raise ApiError(
                ErrorCode.kafka_storage_error, f"cannot truncate {self.path}: {error}"
            ) from None
        except OSError as error:
            raise storage_error(f"cannot truncate {self.path}", error) from None

    def _truncate_to(self, offset: int) -> int:
        found = self.find(offset)
        if found is not None:
            _, header = next(self.headers(found.position))
            offset = min(offset, header.base_offset)
        # What must be read is read first: if that fails, nothing has changed.
        self._load_indexes()
        aborted = None if self.txn_index is None else self.txn_index.count_before(offset)
        if found is not None:
            os.ftruncate(self.file().fd, found.position)
            self.size_bytes = found.position
        if self.size_bytes == 0:
            self._first_timestamp = None
        self._ends_known = False
        self.max_timestamp, self.max_timestamp_offset = NO_TIMESTAMP, self.base_offset
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        if self.txn_index is not None and aborted is not None:
            self.txn_index.keep(aborted)
        return offset

    def seal(self) -> None:
        """End the writing: the indexes are complete and stored. Raises ApiError
        KAFKA_STORAGE_ERROR.
        """
        if not self._ends_known:
            self.load_ends()
        self.store_indexes()
        self._staged = None
        fd = self.file().fd
        if os.fstat(fd).st_size != self.size_bytes:
            try:
                os.ftruncate(fd, self.size_bytes)  # the rest was preallocated
            except OSError as error:
                raise storage_error(f"cannot truncate {self.path}", error) from None
        self._recent_offsets = self._recent_positions = None


def _build_indexes(scratch: Segment, file: OpenFile, is_stale: Callable[[], bool]) -> None:
    """In a thread. Raises OSError, CorruptBatchError, ApiError KAFKA_STORAGE_ERROR."""
    scratch.reset_indexes()
    headers = scan_headers(file, 0, scratch.size_bytes)
    for position, header in scratch.ordered(scan.in_portions(headers, is_stale)):
        scratch.index_batch(position, header)
    scratch.store_indexes()


def _find_all(
    index_path: str, base_offset: int, file: OpenFile, offsets: Callable[[], Iterable[int]]
) -> None:
    for offset in offsets():
        _find(index_path, base_offset, file, offset)


def _find(index_path: str, base_offset: int, file: OpenFile, offset: int) -> None:
    """Damaged or missing files are left to `Segment.find`, which reports them."""
    try:
        _, entry = find_entry(index_path, ENTRY, offset - base_offset)
        position = 0 if entry is None else entry[1]
        for _, header in scan_headers(file, position, os.fstat(file.fd).st_size):
            if header.last_offset >= offset:
                return
    except (CorruptIndexError, CorruptBatchError, OSError):
        return
