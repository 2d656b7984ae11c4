"""The disk below one log: what is synced, and failures in the middle of an operation.

kill     the process ends before one of the operation's system calls, or half-way in a write.
         What was written stays.
error    one system call fails; the process lives on.
power    (`fail_power`) what was not synced is lost: each file ends anywhere after its last
         sync, or the rest is zeros. Names are kept, as by a journal in ordered mode.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

WATCHED = ("open", "pwritev", "pwrite", "rename", "replace", "unlink", "ftruncate")


class Killed(BaseException):
    """The process ends here. No handler of errors catches it."""


class Disk:
    """The system calls of one process, which `watching` replaces."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._synced: dict[int, int] = {}
        """The size of each file at its last sync, by inode; less if it was cut since."""
        self._forgotten: set[int] = set()
        """Files of which the kernel has dropped what it could not write."""
        self._countdown = -1
        self._fault = ""
        self._is_dead = False
        self.fired = ""
        """The system call that failed, of the last `failing`."""

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Until the end of the block, this disk decides about all system calls that write."""
        originals = {name: getattr(os, name) for name in (*WATCHED, "fsync", "fdatasync")}
        for name in WATCHED:
            setattr(os, name, self._checked(name, originals[name]))
        os.fsync = os.fdatasync = self._sync  # type: ignore[assignment]
        try:
            yield
        finally:
            for name, original in originals.items():
                setattr(os, name, original)

    @contextmanager
    def failing(self, fault: str, countdown: int) -> Iterator[None]:
        """In the block the system call of this number fails. `fault`: "kill", "error", "sync", or
        "".
        """
        self._fault, self._countdown, self.fired = fault, countdown, ""
        try:
            yield
        finally:
            self._fault, self._is_dead = "", False

    def _checked(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **how: Any) -> Any:
            if self._fault in ("kill", "error") and self._is_due(name, args):
                self._fail(name, args)
            if name == "ftruncate":
                inode = os.fstat(args[0]).st_ino
                if inode in self._synced:
                    self._synced[inode] = min(self._synced[inode], args[1])
            return original(*args, **how)

        return call

    def _is_due(self, name: str, args: Sequence[Any]) -> bool:
        if self._is_dead:
            raise Killed
        if name == "open" and not args[1] & os.O_CREAT:
            return False
        self._countdown -= 1
        return self._countdown < 0 and not self.fired

    def _fail(self, name: str, args: Sequence[Any]) -> None:
        self.fired = name
        if self._fault == "kill":
            self._is_dead = True
            self._write_half(name, args)
            raise Killed
        if name == "pwritev":
            self._write_half(name, args)
        number = errno.ENOSPC if name in ("open", "pwritev", "pwrite") else errno.EIO
        raise OSError(number, os.strerror(number))

    def _write_half(self, name: str, args: Sequence[Any]) -> None:
        if name not in ("pwritev", "pwrite"):
            return
        fd, data, position = args
        whole = b"".join(data) if name == "pwritev" else bytes(data)
        part = whole[: self.random.randrange(len(whole) + 1)]
        os.lseek(fd, position, os.SEEK_SET)
        os.write(fd, part)

    def _sync(self, fd: int) -> None:
        status = os.fstat(fd)
        if self._is_dead:
            raise Killed
        if self._fault == "sync" and not self.fired:
            self._countdown -= 1
            if self._countdown < 0:
                self.fired = "fsync"
                self._forgotten.add(status.st_ino)
                raise OSError(errno.EIO, os.strerror(errno.EIO))
        if status.st_ino not in self._forgotten:
            self._synced[status.st_ino] = status.st_size

    def synced_bytes(self, path: str) -> int:
        """How much of the file a power failure leaves in any case."""
        try:
            return self._synced.get(os.stat(path).st_ino, 0)
        except FileNotFoundError:
            return 0

    def fail_power(self, folder: Path, spared: Collection[str] = ()) -> list[str]:
        """Lose what is not synced, but for the files `spared`; returns the names of the files that
        lost something.
        """
        lost: list[str] = []
        self._forgotten.clear()
        for path in sorted(folder.iterdir()) if folder.exists() else ():
            status = path.stat()
            synced = min(self._synced.get(status.st_ino, 0), status.st_size)
            size = self.random.choice(
                (synced, status.st_size, self.random.randint(synced, status.st_size))
            )
            self._synced[status.st_ino] = status.st_size
            if path.name in spared:
                continue
            if size == status.st_size:
                continue
            lost.append(path.name)
            with path.open("r+b") as file:
                self._synced[status.st_ino] = file.truncate(size)
                if self.random.random() < 0.2:
                    self._synced[status.st_ino] = file.truncate(status.st_size)  # zeros
        return lost
