"""The file with the history of groups: `groups.history` in the folder of a partition of
`__consumer_offsets`, beside its segments.

    ottla group history 1
    1b2c3d4e {"group":"billing",...,"number":17}

The first line names the format. Each other line is a document (`ottla.groups.history.fold`), oldest
first: the CRC-32C of its JSON in eight hexadecimal digits, a space, the JSON. The file is appended
to. Once it is `MAX_FILE_BYTES` long it is written again from the start: into `groups.history.new`,
which then takes its name.

A crash leaves a torn last line, which is left out when the file is read, and the file is written
again before the next append. It may also leave the `.new` file, which the next rewrite replaces. A
file of another format is left alone until then. Nothing is flushed to the disk: a power failure
may cost the last lines, never an offset or a group.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import crc32c

from ottla.groups.history.fold import Document
from ottla.groups.history.kept import MAX_BYTES, Kept

NAME: Final = "groups.history"
HEAD: Final = b"ottla group history 1\n"
MAX_FILE_BYTES: Final = 2 * MAX_BYTES


class HistoryFile:
    """Of one partition. Call it from one thread at a time, never from the event loop."""

    def __init__(self, folder: Path) -> None:
        """Reads what is there. Raises OSError."""
        self.folder = folder
        self._path = folder / NAME
        self._is_sound = False
        self._size = 0
        try:
            self.kept = Kept(self._read())
        except ValueError:
            # Somebody else has written it: a history is not worth a group's rest.
            self.kept, self._is_sound = Kept(), False

    def _read(self) -> list[bytes]:
        try:
            with open(self._path, "rb") as file:
                data = file.read(MAX_FILE_BYTES + (1 << 20))
        except FileNotFoundError:
            return []
        if not data.startswith(HEAD):
            return []
        lines, sound = [], True
        for line in data[len(HEAD) :].splitlines(keepends=True):
            content = line[9:-1]
            if line.endswith(b"\n") and line[:9] == _checksum(content):
                lines.append(content)
            else:
                sound = False
        self._is_sound, self._size = sound, len(data)
        return lines

    def write(self, documents: Sequence[Document]) -> None:
        """Keeps them, in the file too. A folder that is gone is not an error: the partition was
        deleted or moved away. Raises OSError.
        """
        added = b"".join(_line(self.kept.add(each)) for each in documents)
        if not self.folder.is_dir():
            return
        if (
            not self._is_sound
            or self._size + len(added) > MAX_FILE_BYTES
            or not self._path.exists()
        ):
            self._rewrite()
            return
        self._is_sound = False
        with open(self._path, "ab", buffering=0) as file:
            written = file.write(added)
        self._size += written
        self._is_sound = written == len(added)

    def _rewrite(self) -> None:
        self._is_sound = False
        data = HEAD + b"".join(map(_line, self.kept.lines()))
        new = self._path.with_name(NAME + ".new")
        new.write_bytes(data)
        new.replace(self._path)
        self._size, self._is_sound = len(data), True

    def moved_to(self, folder: Path) -> None:
        """The partition's folder is another one now."""
        self.folder, self._path, self._is_sound = folder, folder / NAME, False


def _checksum(content: bytes) -> bytes:
    return b"%08x " % crc32c.crc32c(content)


def _line(content: bytes) -> bytes:
    return _checksum(content) + content + b"\n"
