"""`python -m faults.broker FOLDER serve ...`: `ottla serve` on a disk that a fault controls.

The shipped broker runs unchanged, but for what its process takes for `os.fsync` and `os.fdatasync`.
Files of FOLDER, which a test makes and reads (see `disk.ControlledDisk`):

    fail      while it is there, the next sync of a segment removes it and fails with EIO, once, as
              Linux reports a page that it could not write
    synced    a line for each sync of a segment: its inode, and its size before the sync
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

FAIL: Final = "fail"
SYNCED: Final = "synced"


def controlled(sync: Callable[[int], None], folder: Path) -> Callable[[int], None]:
    """`sync` as a fault controls it."""
    signal = folder / FAIL
    written = os.open(folder / SYNCED, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def controlled_sync(fd: int) -> None:
        if not os.readlink(f"/proc/self/fd/{fd}").endswith(".log"):
            sync(fd)
            return
        # What is appended during the sync may not be part of it.
        status = os.fstat(fd)
        try:
            signal.unlink()
        except FileNotFoundError:
            sync(fd)
        else:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        # One write of less than a page: threads do not mix their lines.
        os.write(written, f"{status.st_ino} {status.st_size}\n".encode())

    return controlled_sync


if __name__ == "__main__":
    if hasattr(os, "fdatasync"):
        os.fdatasync = controlled(os.fdatasync, Path(sys.argv.pop(1)))  # type: ignore[assignment]
    else:
        os.fsync = controlled(os.fsync, Path(sys.argv.pop(1)))  # type: ignore[assignment]

    from ottla.cli.main import main

    sys.exit(main())
