"""Why SQLite failed, in one line.

On a full disk SQLite says "disk I/O error" if it cannot extend its shared-memory or write-ahead
file, because it keeps the system's reason to itself. So the reason is found by writing a file
beside the database.
"""

import os
import sqlite3
from pathlib import Path
from typing import Final

_PROBE_BYTES: Final = 64 * 1024
"""More than SQLite adds at once: 32 KiB of shared memory, and pages of 4 KiB."""


def sqlite_reason(path: str, error: sqlite3.Error) -> str:
    """The file, the system's reason if the disk refuses writes, and SQLite's own words."""
    for file in (path, f"{path}-wal", f"{path}-shm"):
        if os.path.isdir(file):
            return f"{file} is a folder; rename it (SQLite says: {error})"
    refusal = None if path == ":memory:" else _refusal(Path(path).parent)
    if refusal is None:
        return f"{path}: {error}"
    why = refusal.strerror or str(refusal)
    return f"{path}: {why} (SQLite says: {error}); make room on this disk, or make it writable"


def _refusal(folder: Path) -> OSError | None:
    """Why no file can be written in the folder, or None."""
    import tempfile  # a broker without trouble does without it

    try:
        # Unbuffered, so that no byte is left to be written when it closes.
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            written = 0
            while written < _PROBE_BYTES:
                written += file.write(bytes(_PROBE_BYTES - written))
            os.fsync(file.fileno())
    except OSError as error:
        return error
    return None
