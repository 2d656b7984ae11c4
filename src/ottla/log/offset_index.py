"""Maps offsets to positions in a segment's file: `<first offset>.index`.

    entries of 8 bytes: offset minus the segment's first, int32 | position in the log file, int32

Sparse: one entry for about every `index.interval.bytes`. An entry has a batch's last offset and the
position where that batch begins, so the batch of any offset begins at or after the preceding entry.
Crash: see `index_file`.
"""

import os
from array import array
from bisect import bisect_left, bisect_right
from struct import Struct
from typing import Final

from ottla.log.errors import CorruptIndexError
from ottla.log.index_file import (
    append_entries,
    find_entry,
    find_entry_from,
    last_entry,
    read_entries,
)
from ottla.log.page_cache import Pread

ENTRY: Final = Struct(">ii")


class OffsetIndex:
    """The offset index of one segment."""

    __slots__ = ("_offsets", "_positions", "_stored", "base_offset", "path")

    def __init__(self, path: str, base_offset: int) -> None:
        self.path = path
        self.base_offset = base_offset
        self._offsets: array[int] | None = None  # in memory after the first append
        self._positions: array[int] = array("i")
        self._stored = 0

    def __len__(self) -> int:
        """The number of entries in memory; 0 while only the file is used."""
        return 0 if self._offsets is None else len(self._offsets)

    @property
    def is_loaded(self) -> bool:
        """Whether the entries are in memory, and the file may lack the last ones."""
        return self._offsets is not None

    def load(self) -> None:
        """Load the file's entries into memory, to append. Raises CorruptIndexError."""
        if self._offsets is not None:
            return
        fields = array("i", read_entries(self.path, ENTRY))
        fields.byteswap()
        offsets = fields[0::2]
        if offsets and (offsets[-1] < 0 or fields[-1] <= 0):
            # A killed Apache Kafka leaves zeros at the end: it writes into a larger file.
            raise CorruptIndexError(f"{self.path} does not end with an entry")
        self._offsets, self._positions = offsets, fields[1::2]
        self._stored = len(offsets)

    def reset(self) -> None:
        """Remove all entries, to rebuild the index."""
        self._offsets, self._positions, self._stored = array("i"), array("i"), 0

    def append(self, offset: int, position: int) -> None:
        """Add the batch that ends with `offset` and begins at `position`."""
        assert self._offsets is not None
        self._offsets.append(offset - self.base_offset)
        self._positions.append(position)

    def lookup(self, offset: int, pread: Pread = os.pread) -> tuple[int, int]:
        """The last entry at or before `offset`: (offset, position); (first offset, 0) if there is
        none.

        Raises CorruptIndexError, and what `pread` raises.
        """
        relative = offset - self.base_offset
        if self._offsets is None:
            _, found = find_entry(self.path, ENTRY, relative, pread)
            if found is None:
                return self.base_offset, 0
            return self.base_offset + found[0], found[1]
        number = bisect_right(self._offsets, relative) - 1
        if number < 0:
            return self.base_offset, 0
        return self.base_offset + self._offsets[number], self._positions[number]

    def entry_from(self, position: int, pread: Pread = os.pread) -> tuple[int, int] | None:
        """The first entry at or after `position`: (offset, position); None if there is none.

        Raises CorruptIndexError, and what `pread` raises.
        """
        if self._offsets is None:
            found = find_entry_from(self.path, ENTRY, position, pread)
            return None if found is None else (self.base_offset + found[0], found[1])
        number = bisect_left(self._positions, position)
        if number == len(self._offsets):
            return None
        return self.base_offset + self._offsets[number], self._positions[number]

    def last(self) -> tuple[int, int]:
        """The last entry: (offset, position); (first offset, 0) if there is none."""
        if self._offsets is None:
            found = last_entry(self.path, ENTRY)
            if found is None:
                return self.base_offset, 0
            return self.base_offset + found[0], found[1]
        if not self._offsets:
            return self.base_offset, 0
        return self.base_offset + self._offsets[-1], self._positions[-1]

    def truncate_to(self, offset: int) -> None:
        """Remove the entries of `offset` and above; from the file with the next `store`."""
        self.load()
        assert self._offsets is not None
        keep = bisect_left(self._offsets, offset - self.base_offset)
        del self._offsets[keep:]
        del self._positions[keep:]
        self._stored = min(self._stored, keep)

    def store(self) -> None:
        """Write to the file what is only in memory."""
        if self._offsets is None:
            return
        fields = array("i", bytes(8 * (len(self._offsets) - self._stored)))
        fields[0::2] = self._offsets[self._stored :]
        fields[1::2] = self._positions[self._stored :]
        fields.byteswap()
        append_entries(self.path, self._stored * ENTRY.size, fields.tobytes())
        self._stored = len(self._offsets)

    def discard(self) -> None:
        """Forget the entries in memory: the file has others."""
        self._offsets, self._positions = None, array("i")

    def release(self) -> None:
        """Store the entries, then free the memory."""
        self.store()
        self._offsets, self._positions = None, array("i")
