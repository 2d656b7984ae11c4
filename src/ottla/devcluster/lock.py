"""The lock of a cluster's folder: one `ottla cluster start` runs on it at a time.

The lock is an flock on the empty file `.lock`. The system releases it with the process, however
that ends.
"""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Final, TextIO

from ottla.devcluster.errors import DevClusterError

LOCK_NAME: Final = ".lock"


def held(data: Path) -> TextIO:
    """Create the folder if missing, and lock it for this process until closed.

    Raises DevClusterError.
    """
    try:
        data.mkdir(parents=True, exist_ok=True)
        file = (data / LOCK_NAME).open("w")
    except OSError as error:
        raise DevClusterError(f"cannot use {data}: {error.strerror or error}.") from None
    if not _locked(file):
        file.close()
        raise DevClusterError(
            f"{data} is in use by another `ottla cluster start`.",
            "Stop that one, or give another --data.",
        )
    return file


def is_held(data: Path) -> bool:
    """Whether an `ottla cluster start` runs on the folder."""
    try:
        with (data / LOCK_NAME).open() as file:
            return not _locked(file)
    except OSError:
        return False


def _locked(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
