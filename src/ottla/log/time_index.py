"""From which offset a segment has records at or after a given time: `<first offset>.timeindex`.

    entries of 12 bytes: timestamp int64 | offset minus the segment's first, int32

An entry (t, o) means that no record up to offset o is later than t; o is the last offset of the
batch with the largest timestamp so far. Both fields only grow. A closed segment ends with its
largest timestamp, which retention uses. Crash: see `index_file`.
"""

from array import array
from bisect import bisect_left, bisect_right
from struct import Struct
from typing import Final

from ottla.log.errors import CorruptIndexError
from ottla.log.index_file import append_entries, find_entry, last_entry, read_entries
from ottla.records.header import NO_TIMESTAMP

ENTRY: Final = Struct(">qi")


class TimeIndex:
    """The time index of one segment."""

    __slots__ = ("_offsets", "_stored", "_times", "base_offset", "path")

    def __init__(self, path: str, base_offset: int) -> None:
        self.path = path
        self.base_offset = base_offset
        self._times: array[int] | None = None  # in memory after the first append
        self._offsets: array[int] = array("i")
        self._stored = 0

    def __len__(self) -> int:
        """The number of entries in memory; 0 while only the file is used."""
        return 0 if self._times is None else len(self._times)

    @property
    def is_loaded(self) -> bool:
        """Whether the entries are in memory, and the file may lack the last ones."""
        return self._times is not None

    def load(self) -> None:
        """Load the file's entries into memory, to append. Raises CorruptIndexError."""
        if self._times is not None:
            return
        times, offsets = _fields_of(read_entries(self.path, ENTRY))
        if offsets and (offsets[-1] < 0 or times[-1] < times[0]):
            raise CorruptIndexError(f"{self.path} does not grow")
        self._times, self._offsets, self._stored = times, offsets, len(times)

    def reset(self) -> None:
        """Remove all entries, to rebuild the index."""
        self._times, self._offsets, self._stored = array("q"), array("i"), 0

    def maybe_append(self, timestamp_ms: int, offset: int) -> None:
        """Add the entry if its time is later than the last one's. Records without a timestamp have
        none.
        """
        assert self._times is not None
        if timestamp_ms <= (self._times[-1] if self._times else NO_TIMESTAMP):
            return
        self._times.append(timestamp_ms)
        self._offsets.append(offset - self.base_offset)

    def lookup(self, timestamp_ms: int) -> tuple[int, int]:
        """The last entry whose time is at most this: (time, offset); (-1, first offset) if there is
        none.
        """
        if self._times is None:
            _, found = find_entry(self.path, ENTRY, timestamp_ms)
            return (
                (-1, self.base_offset) if found is None else (found[0], self.base_offset + found[1])
            )
        number = bisect_right(self._times, timestamp_ms) - 1
        if number < 0:
            return -1, self.base_offset
        return self._times[number], self.base_offset + self._offsets[number]

    def last(self) -> tuple[int, int]:
        """The last entry: (time, offset); (-1, first offset) if there is none."""
        if self._times is None:
            found = last_entry(self.path, ENTRY)
            return (
                (-1, self.base_offset) if found is None else (found[0], self.base_offset + found[1])
            )
        if not self._times:
            return -1, self.base_offset
        return self._times[-1], self.base_offset + self._offsets[-1]

    def truncate_to(self, offset: int) -> None:
        """Remove the entries of `offset` and above; from the file with the next `store`."""
        self.load()
        assert self._times is not None
        keep = bisect_left(self._offsets, offset - self.base_offset)
        del self._times[keep:]
        del self._offsets[keep:]
        self._stored = min(self._stored, keep)

    def store(self) -> None:
        """Write to the file what is only in memory."""
        if self._times is None:
            return
        entries = _entries_of(self._times[self._stored :], self._offsets[self._stored :])
        append_entries(self.path, self._stored * ENTRY.size, entries)
        self._stored = len(self._times)

    def discard(self) -> None:
        """Forget the entries in memory: the file has others."""
        self._times, self._offsets = None, array("i")

    def release(self) -> None:
        """Store the entries, then free the memory."""
        self.store()
        self._times, self._offsets = None, array("i")


# A segment of 1 GiB has 260,000 entries. One by one they take 50 ms; by the bytes at the same
# position of all entries, a fifth of that.


def _fields_of(entries: bytes) -> "tuple[array[int], array[int]]":
    """The times and the offsets."""
    count = len(entries) // ENTRY.size
    times, offsets = bytearray(8 * count), bytearray(4 * count)
    for at in range(8):
        times[at::8] = entries[at :: ENTRY.size]
    for at in range(4):
        offsets[at::4] = entries[8 + at :: ENTRY.size]
    fields = array("q", bytes(times)), array("i", bytes(offsets))
    for each in fields:
        each.byteswap()
    return fields


def _entries_of(times: "array[int]", offsets: "array[int]") -> bytes:
    """The inverse. It changes the arrays."""
    entries = bytearray(ENTRY.size * len(times))
    times.byteswap()
    offsets.byteswap()
    of_times, of_offsets = times.tobytes(), offsets.tobytes()
    for at in range(8):
        entries[at :: ENTRY.size] = of_times[at::8]
    for at in range(4):
        entries[8 + at :: ENTRY.size] = of_offsets[at::4]
    return bytes(entries)
