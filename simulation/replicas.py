"""The content of one replica's log, read from the files that its broker writes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from ottla.records.errors import CorruptBatchError
from ottla.records.header import HEADER_BYTES, iterate_headers


class Entry(NamedTuple):
    """The batch at one offset, by its epoch and its checksum; no two batches share both."""

    leader_epoch: int
    crc: int


NOTHING: Final = Entry(-1, 0)
"""At offsets before the start of a log."""


class Replica:
    """A copy of one replica's log by offset, kept up to date with the files.

    Reads only the bytes appended since the last update, as long as the last known batch is still at
    its place in the file; otherwise reads everything.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.ends: list[int] = []
        """By offset: the position in the file at which its batch ends."""
        self.epochs: dict[tuple[int, int], int] = {}
        """By base offset and checksum: the leader epoch of each batch that was ever in the log."""
        self.path = ""
        """Of the last segment."""
        self._position = 0
        """The position after the last complete batch that was read."""
        self._last = b""
        """The header of that batch."""
        self._last_position = 0

    def update(self, log: Any) -> None:
        """Update from a broker's `Log`; do nothing if its files are gone."""
        segments = [each for each in log.segments if each.size_bytes]
        if not segments:
            self.clear()
        elif not (len(segments) == 1 and self._read_on(segments[0].path, segments[0].size_bytes)):
            self._read_all([each.path for each in segments])

    def update_from_folder(self, folder: Path) -> None:
        """Update from the files of a broker that is down, up to a torn batch."""
        self._read_all(sorted(map(str, folder.glob("*.log"))))

    def clear(self) -> None:
        """The log is empty, or gone."""
        self.entries.clear()
        self.ends.clear()
        self.path, self._position, self._last, self._last_position = "", 0, b"", 0

    def _read_on(self, path: str, size_bytes: int) -> bool:
        if path != self.path or size_bytes < self._position:
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

    def _read_all(self, paths: Sequence[str]) -> None:
        self.clear()
        for path in paths:
            try:
                data = Path(path).read_bytes()
            except FileNotFoundError:
                return
            self.path, self._position, self._last, self._last_position = path, 0, b"", 0
            self._take(data)

    def _take(self, data: bytes) -> None:
        entries, begin = self.entries, self._position
        try:
            for header in iterate_headers(data):
                if len(entries) < header.base_offset:
                    entries += [NOTHING] * (header.base_offset - len(entries))
                entry = Entry(header.leader_epoch, header.crc)
                self.epochs[header.base_offset, header.crc] = header.leader_epoch
                entries += [entry] * (header.next_offset - len(entries))
                self._last_position = self._position
                self._position += header.size_bytes
                self.ends += [self._position] * (len(entries) - len(self.ends))
        except CorruptBatchError:
            pass  # a torn tail, which the broker truncates at its next start
        if self._position > begin:
            start = self._last_position - begin
            self._last = data[start : start + HEADER_BYTES]


def content(log: Any) -> bytes:
    """All bytes of a broker's `Log`."""
    parts = []
    for segment in log.segments:
        if segment.size_bytes:
            with open(segment.path, "rb") as file:
                parts.append(file.read(segment.size_bytes))
    return b"".join(parts)
