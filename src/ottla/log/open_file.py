"""A limited number of open segment files, for any number of partitions.

A reader may hold a file while its segment is dropped from here, deleted or compacted away: the
descriptor closes when its last holder releases it, so that every started read can finish.
"""

import os
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Protocol

from ottla.log.task import Rebuild
from ottla.runtime.durable import reserve

MAX_OPEN_FILES: Final = 512


class OpenFile:
    """A file descriptor that closes itself."""

    __slots__ = ("fd",)

    def __init__(self, path: str, flags: int = os.O_RDWR) -> None:
        self.fd = -1
        self.fd = os.open(path, flags | os.O_CLOEXEC, 0o644)

    def preallocate(self, size_bytes: int) -> None:
        """Reserve the file's space on the disk. Raises OSError."""
        reserve(self.fd, size_bytes)

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)


class Openable(Protocol):
    """An object with a file that can be opened when needed."""

    @property
    def path(self) -> str: ...


class OpenFiles:
    """The open files, least recently used first. Use it only on the event loop's thread."""

    def __init__(self, limit: int = MAX_OPEN_FILES) -> None:
        assert limit > 0
        self.rebuild_later: Callable[[Rebuild], None] | None = None
        """Receives what builds the indexes of a large segment again, to run it off the event loop;
        see `index_rebuild`. Without it they are built at once."""
        self._limit = limit
        self._open: OrderedDict[Openable, OpenFile] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def of(self, owner: Openable) -> OpenFile:
        """The owner's file, opened if necessary. Raises OSError."""
        file = self._open.get(owner)
        if file is not None:
            self._open.move_to_end(owner)
            return file
        file = OpenFile(owner.path)
        self._open[owner] = file
        if len(self._open) > self._limit:
            self._open.popitem(last=False)
        return file

    def forget(self, owner: Openable) -> None:
        """Drop the owner's file. It closes when no reader holds it."""
        self._open.pop(owner, None)

    def forget_all(self) -> None:
        """Drop all files: nobody writes to them any more."""
        self._open.clear()
