"""The lock of a data folder: `.lock` in it, locked by one process at a time (flock).

The lock ends with the process that holds it, however it ends. So the holder knows that every other
process which has ever held the lock of the same file has ended, or has released it and serves no
more. `identity` names that file: its device and inode, and the boot of the kernel that tells them
apart. A copy of the folder has another inode; a copy on another machine, also a cloned one with the
same inodes, has another boot.
"""

from __future__ import annotations

import fcntl
import os
from typing import Final

from ottla.log.errors import DataFolderError

FILE_NAME: Final = ".lock"
BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
_RELEASED: Final = -1


class FolderLock:
    """A lock that is held until `release` or the end of the process."""

    def __init__(self, fd: int, path: str, *, is_new: bool = False) -> None:
        self._fd = fd
        self._path = path
        self.is_new = is_new
        """The folder had no such file."""
        self.identity = identity_of(path)
        """See `identity_of`."""

    @classmethod
    def take(cls, folder: str) -> FolderLock:
        """Raises OSError; DataFolderError if another process holds the lock."""
        path = f"{folder}/{FILE_NAME}"
        is_new = not os.path.lexists(path)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise DataFolderError(
                f"{folder} is in use by another broker: stop it, or give this one another folder"
            ) from None
        if not _is_at(path, fd):  # its holder has withdrawn it
            os.close(fd)
            return cls.take(folder)
        return cls(fd, path, is_new=is_new)

    @property
    def is_there(self) -> bool:
        """Whether the folder still has this file: otherwise somebody deleted or replaced it, and
        the lock keeps nobody out. Raises OSError.
        """
        return _is_at(self._path, self._fd)

    def withdraw(self) -> None:
        """Releases it, and removes the file if it is new. Raises OSError."""
        try:
            if self.is_new:
                os.unlink(self._path)
        finally:
            self.release()

    def release(self) -> None:
        """May be called again."""
        if self._fd != _RELEASED:
            os.close(self._fd)
            self._fd = _RELEASED


def _is_at(path: str, fd: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))
    except (FileNotFoundError, NotADirectoryError):
        return False


def identity_of(path: str) -> str | None:
    """The file, among all files of all machines. None where the system does not say which boot this
    is (Linux does); then nothing is proved about other processes. Raises OSError.
    """
    boot, status = _boot_id(), os.stat(path)
    return None if boot is None else f"{boot}/{status.st_dev}/{status.st_ino}"


def _boot_id() -> str | None:
    try:
        with open(BOOT_ID, encoding="ascii") as file:
            return file.read().strip() or None
    except (OSError, ValueError):
        return None
