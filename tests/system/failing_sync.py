"""`ottla serve` on a disk whose next fsync fails once, as Linux reports it: EIO, and then success.

Arguments: a file, and those of `ottla`. When the file exists, the first `fdatasync` of a segment
removes it and fails. For `BrokerProcess(program=...)`.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def fail_once(signal: Path) -> Callable[[int], None]:
    """An `os.fdatasync` that fails once when the file `signal` is there."""
    sync = os.fdatasync

    def failing(fd: int) -> None:
        try:
            signal.unlink()
        except FileNotFoundError:
            sync(fd)
        else:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    return failing


if __name__ == "__main__":
    setting: Any = os
    setting.fdatasync = fail_once(Path(sys.argv.pop(1)))

    from ottla.cli.main import main

    sys.exit(main())
