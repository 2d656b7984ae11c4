"""The aborted transactions whose markers lie in one segment: `<first offset>.txnindex`.

    entries of 34 bytes: version int16 (0) | producer id int64 | first offset int64
    | last offset int64 (the marker's) | last stable offset at the abort int64

In the order of the markers, so last offsets grow, and last stable offsets never go back. A fetch
under read_committed returns those that overlap what it read (KIP-98). Most segments have no aborted
transaction, and no file. New entries are kept in memory and stored with the other indexes.

Crash: entries may be missing or torn. Recovery rebuilds the file of every segment from the recovery
point on, which advances only past stored entries. A damaged file of an older segment is rebuilt
when it is read (see `producers`).
"""

import os
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from operator import attrgetter
from struct import Struct
from typing import Final, NamedTuple

from ottla.log.errors import CorruptIndexError
from ottla.log.index_file import append_entries, unreadable
from ottla.log.page_cache import Pread

ENTRY: Final = Struct(">hqqqq")
_VERSION: Final = 0
_READ_ENTRIES: Final = 120
"""Entries per read: one page."""


class AbortedTransaction(NamedTuple):
    """One entry."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


_last_offset: Final = attrgetter("last_offset")


class TransactionIndex:
    """The transaction index of one segment."""

    __slots__ = ("_added", "_is_too_long", "_stored", "base_offset", "is_checked", "path")

    def __init__(self, path: str, base_offset: int) -> None:
        self.path = path
        self.base_offset = base_offset
        self._stored: int | None = None
        """How many entries the file has; None before the first look."""
        self._added: list[AbortedTransaction] = []
        self._is_too_long = False
        """The file has entries that were removed."""
        self.is_checked = False
        """See `transaction_check`."""

    def load(self) -> int:
        """How many entries are stored. Raises CorruptIndexError if the file ends inside an entry,
        or has none: then there would be no file.
        """
        if self._stored is None:
            try:
                size_bytes = os.stat(self.path).st_size
            except FileNotFoundError:
                size_bytes = 0
            except OSError as error:
                raise unreadable(self.path, error) from None
            else:
                if size_bytes == 0:
                    raise CorruptIndexError(f"{self.path} is empty")
            if size_bytes % ENTRY.size:
                raise CorruptIndexError(f"{self.path} ends inside an entry")
            self._stored = size_bytes // ENTRY.size
        return self._stored

    def copy(self) -> "TransactionIndex":
        """The entries of now, for another thread. Raises CorruptIndexError as `load`."""
        copied = TransactionIndex(self.path, self.base_offset)
        copied._stored, copied._added = self.load(), list(self._added)
        return copied

    def reset(self) -> None:
        """Remove all entries, to rebuild the index."""
        self._stored, self._added, self._is_too_long = 0, [], False
        self.is_checked = True
        self._remove()

    def _remove(self) -> None:
        # There is never an empty file: an index that has lost its entries is known by that.
        with suppress(FileNotFoundError):
            os.unlink(self.path)

    def entries(self) -> Iterator[AbortedTransaction]:
        """All of them. Raises CorruptIndexError and OSError."""
        return self._ending_from(-1, os.pread)

    def append(self, entry: AbortedTransaction) -> None:
        """Add a transaction whose marker comes after those of the others."""
        assert not self._added or self._added[-1].last_offset < entry.last_offset
        self._added.append(entry)

    def overlapping(
        self, offset: int, up_to_offset: int, pread: Pread = os.pread
    ) -> tuple[list[AbortedTransaction], bool]:
        """The transactions that overlap `offset` (inclusive) to `up_to_offset` (exclusive), and
        whether later segments can have no other ones.

        Raises CorruptIndexError for a damaged file, and what `pread` raises.
        """
        found: list[AbortedTransaction] = []
        for entry in self._ending_from(offset, pread):
            if entry.first_offset < up_to_offset:
                found.append(entry)
            if entry.last_stable_offset >= up_to_offset:
                return found, True
        return found, False

    @contextmanager
    def _opened(self) -> Iterator[int]:
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise unreadable(self.path, error) from None
        try:
            yield fd
        finally:
            os.close(fd)

    def _ending_from(self, offset: int, pread: Pread) -> Iterator[AbortedTransaction]:
        """The entries with a last offset of at least `offset`."""
        if self.load():
            with self._opened() as fd:
                yield from self._stored_from(fd, offset, pread)
        yield from self._added[bisect_left(self._added, offset, key=_last_offset) :]

    def _stored_from(self, fd: int, offset: int, pread: Pread) -> Iterator[AbortedTransaction]:
        low, stored = self._stored_before(fd, offset, pread), self.load()
        while low < stored:
            count = min(_READ_ENTRIES, stored - low)
            yield from self._read(fd, low, count, pread)
            low += count

    def _stored_before(self, fd: int, offset: int, pread: Pread) -> int:
        """How many stored entries have a last offset before this one."""
        low, high = 0, self.load()
        while low < high:
            middle = (low + high) // 2
            (entry,) = self._read(fd, middle, 1, pread)
            if entry.last_offset < offset:
                low = middle + 1
            else:
                high = middle
        return low

    def _read(self, fd: int, number: int, count: int, pread: Pread) -> list[AbortedTransaction]:
        data = pread(fd, count * ENTRY.size, number * ENTRY.size)
        if len(data) != count * ENTRY.size:
            raise CorruptIndexError(f"{self.path} is shorter than it was")
        entries = []
        for version, *fields in ENTRY.iter_unpack(data):
            entry = AbortedTransaction(*fields)
            if version != _VERSION or entry.last_offset < self.base_offset:
                raise CorruptIndexError(f"{self.path} has an entry that cannot be right")
            entries.append(entry)
        return entries

    def count_before(self, offset: int) -> int:
        """How many transactions have their markers before `offset`: the first ones. Raises
        CorruptIndexError and OSError.

        A segment of 1 GiB may have millions, so only a few are read.
        """
        stored = self.load()
        if not stored:
            return bisect_left(self._added, offset, key=_last_offset)
        with self._opened() as fd:
            if os.fstat(fd).st_size < stored * ENTRY.size:
                raise CorruptIndexError(f"{self.path} is shorter than it was")
            before = self._stored_before(fd, offset, os.pread)
        if before < stored:
            return before
        return stored + bisect_left(self._added, offset, key=_last_offset)

    def keep(self, count: int) -> None:
        """Remove the transactions after the first `count`; from the file with the next `store`."""
        stored = self.load()
        self._stored = min(count, stored)
        del self._added[count - self._stored :]
        self._is_too_long |= self._stored < stored

    def store(self) -> None:
        """Write to the file what is only in memory."""
        if self._added or self._is_too_long:
            entries = b"".join(ENTRY.pack(_VERSION, *entry) for entry in self._added)
            stored = self.load()
            if stored or entries:
                append_entries(self.path, stored * ENTRY.size, entries)
            else:
                self._remove()
            self._stored = stored + len(self._added)
            self._added, self._is_too_long = [], False
