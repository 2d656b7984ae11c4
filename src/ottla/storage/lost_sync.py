"""What a failed fsync leaves behind: `.ottla-lost-sync`, an empty file in the data folder.

After a failed fsync Linux counts the pages that it could not write as clean. They are in the page
cache as if they were on the disk, also for the next process. Recovery would find their records
whole, and append behind them; after a power failure they are missing, and with them everything that
was acknowledged behind them. So a start that finds this file drops the folder's pages from the
cache first, and recovers what the disk really has.

Crash: the file is not synced. It is there as long as the pages are: a power failure takes both.
"""

import logging
import os
from contextlib import suppress
from typing import Final

logger = logging.getLogger("ottla.storage")

FILE_NAME: Final = ".ottla-lost-sync"


def note(root: str) -> None:
    """An fsync has failed below this data folder. A disk that refuses even this is logged."""
    path = f"{root}/{FILE_NAME}"
    try:
        with open(path, "wb"):
            pass
    except OSError as error:
        logger.error("cannot create %s: %s", path, error.strerror)


def read_disk_again(root: str) -> None:
    """If an fsync has failed, drop what is cached of the folder's files; before any is read. Does
    nothing where the system cannot (macOS).
    """
    if not os.path.exists(f"{root}/{FILE_NAME}"):
        return
    logger.warning("%s: an fsync has failed; its files are read from the disk again", root)
    for folder, _, files in os.walk(root):
        for name in files:
            _drop_cached(f"{folder}/{name}")


def forget(root: str) -> None:
    """The logs are recovered. Raises OSError."""
    with suppress(FileNotFoundError):
        os.unlink(f"{root}/{FILE_NAME}")


def _drop_cached(path: str) -> None:
    if not hasattr(os, "posix_fadvise"):
        return
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        logger.warning("cannot read %s again: %s", path, error.strerror)
        return
    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)
