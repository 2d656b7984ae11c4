"""The content of one replica's log, read from the files that its broker writes."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from ottla.records.errors import CorruptBatchError
from ottla.records.header import HEADER_BYTES, iterate_headers
from ottla.records.iterate import iterate_records


class Entry(NamedTuple):
    """The batch at one offset, by its epoch and its checksum; no two batches share both."""

    leader_epoch: int
    crc: int


NOTHING: Final = Entry(-1, 0)
"""At offsets before the start of a log, and in the gaps of a compacted one."""


class Replica:
    """A copy of one replica's log by offset, kept up to date with the files.

    Reads only the bytes appended since the last update, as long as the last known batch is still at
    its position in the file; otherwise reads everything.
    """

    def __init__(self, *, is_compacted: bool = False) -> None:
        """`is_compacted`: batches change and vanish, so an entry has its epoch only."""
        self.is_compacted = is_compacted
        self.entries: list[Entry] = []
        self.start = 0
        """The start of the log: what is before it does not matter."""
        self.taken: list[tuple[int, int, int]] = []
        """(leader epoch, base offset, checksum) of the batches of the last update."""
        self._ends: list[int] = []
        """By offset: the position in its file at which its batch ends."""
        self.epochs: dict[tuple[int, int], int] = {}
        """By base offset and checksum: the leader epoch of each batch that was ever in the log."""
        self._paths: list[str] = []
        self._firsts: list[int] = []
        """Of each segment: the first offset after those of the segment before."""
        self._position = 0
        """The position after the last complete batch that was read."""
        self._last = b""
        """The header of that batch."""
        self._last_position = 0
        self._read_end = 0
        """The offset after the last batch that was read; entries after it are padding."""

    def update(self, log: Any) -> None:
        """Update from a broker's `Log`; do nothing if its files are gone."""
        segments = [each for each in log.segments if each.size_bytes]
        paths = [each.path for each in segments]
        self.taken.clear()
        self._remove_padding()
        if not segments:
            self.clear()
        elif paths != self._paths or not self._read_on(paths[-1], segments[-1].size_bytes):
            self._read_all(paths)
        self.start = log.start_offset
        last = log.segments[-1]
        if not last.size_bytes and last.base_offset == log.end_offset:
            self._pad(log.end_offset)

    def update_from_folder(self, folder: Path) -> None:
        """Update from the files of a broker that is down, up to a torn batch, or to a segment that
        does not follow the one before."""
        paths = sorted(map(str, folder.glob("*.log")))
        self._read_all(paths, is_down=True)
        # The checkpoint of log starts may be older. Then the log begins with its first segment.
        self.start = int(Path(paths[0]).stem) if paths else 0

    def synced_by(self, offset: int, synced_bytes: Callable[[str], int]) -> bool:
        """Whether the batch of this offset is within what `synced_bytes` returns for its file."""
        number = bisect_right(self._firsts, offset) - 1
        return self._ends[offset] <= synced_bytes(self._paths[number])

    def clear(self) -> None:
        """The log is empty, or gone."""
        self.start = 0
        for each in (self.entries, self._ends, self._paths, self._firsts):
            each.clear()
        self._position, self._last, self._last_position = 0, b"", 0
        self._read_end = 0

    def _remove_padding(self) -> None:
        """A truncation may have removed the empty segment that the padding led to."""
        for each in (self.entries, self._ends):
            del each[self._read_end :]

    def _pad(self, end_offset: int) -> None:
        self.entries += [NOTHING] * (end_offset - len(self.entries))
        self._ends += [0] * (len(self.entries) - len(self._ends))

    def _read_on(self, path: str, size_bytes: int) -> bool:
        if size_bytes < self._position:
            return False
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return True
        try:
            data = os.pread(fd, size_bytes - self._last_position, self._last_position)
        finally:
            os.close(fd)
        if not data.startswith(self._last):
            return False
        self._take(data[self._position - self._last_position :])
        return True

    def _read_all(self, paths: Sequence[str], *, is_down: bool = False) -> None:
        self.clear()
        for path in paths:
            if is_down:
                base_offset = int(Path(path).stem)
                if self._paths and not self.is_compacted and base_offset > len(self.entries):
                    return
                self._pad(base_offset)
            try:
                data = Path(path).read_bytes()
            except FileNotFoundError:
                return
            self._paths.append(path)
            self._firsts.append(len(self.entries))
            self._position, self._last, self._last_position = 0, b"", 0
            self._take(data)
            if self._position < len(data):
                return  # the next start removes the segments after a torn one

    def _take(self, data: bytes) -> None:
        entries, begin = self.entries, self._position
        try:
            for header in iterate_headers(data):
                if len(entries) < header.base_offset:
                    self._pad(header.base_offset)
                entry = Entry(header.leader_epoch, 0 if self.is_compacted else header.crc)
                self.epochs[header.base_offset, header.crc] = header.leader_epoch
                self.taken.append((header.leader_epoch, header.base_offset, header.crc))
                entries += [entry] * (header.next_offset - len(entries))
                self._last_position = self._position
                self._position += header.size_bytes
                self._ends += [self._position] * (len(entries) - len(self._ends))
        except CorruptBatchError:
            pass  # a torn tail, which the broker truncates at its next start
        self._read_end = len(entries)
        if self._position > begin:
            start = self._last_position - begin
            self._last = data[start : start + HEADER_BYTES]


def content(log: Any, start: int = 0) -> bytes:
    """All bytes of a broker's `Log`, from the batch that has the offset `start` on."""
    parts = []
    for segment in log.segments:
        if segment.size_bytes:
            with open(segment.path, "rb") as file:
                data = file.read(segment.size_bytes)
            position = 0
            for header in iterate_headers(data) if segment.base_offset < start else ():
                if header.next_offset > start:
                    break
                position += header.size_bytes
            parts.append(data[position:])
    return b"".join(parts)


def values_of(log: Any) -> Iterator[str]:
    """The values of all records of a broker's `Log`."""
    data, position = content(log), 0
    for header in iterate_headers(data):
        batch = data[position : position + header.size_bytes]
        position += header.size_bytes
        for record in iterate_records(batch, header):
            yield (record.value or b"").decode()
