"""Makes a file's data durable, and reserves space, with what the system has.

Linux has fdatasync and posix_fallocate, macOS neither. There, fsync returns before the drive has
written its own cache; F_FULLFSYNC waits for it, as SQLite and Java's FileChannel.force do.
"""

from __future__ import annotations

import errno
import fcntl
import os
from typing import Final

_NOT_HERE: Final = (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY)


def sync_data(fd: int) -> None:
    """Wait until the file's data, and what is needed to read it, is on the disk. Raises OSError."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(fd)
        return
    full_sync: int | None = getattr(fcntl, "F_FULLFSYNC", None)
    if full_sync is not None:
        try:
            fcntl.fcntl(fd, full_sync)
        except OSError as error:
            # Network file systems do not have it.
            if error.errno not in _NOT_HERE:
                raise
        else:
            return
    os.fsync(fd)


def sync_folder(path: str) -> None:
    """Wait until what was created, renamed and removed in this folder is on the disk (Kafka's
    Utils.flushDir). Raises OSError.
    """
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _NOT_HERE:
            raise
    finally:
        os.close(fd)


def reserve(fd: int, size_bytes: int) -> None:
    """Extend the file to this size, with space on the disk if the system can. Raises OSError."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, 0, size_bytes)
    elif os.fstat(fd).st_size < size_bytes:
        os.ftruncate(fd, size_bytes)
