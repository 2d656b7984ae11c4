"""What goes wrong with the file of the embedded tree.

StoreError            it cannot be opened, read or written, or it is damaged
    StoreSyncError    an fsync failed
"""

from __future__ import annotations

import sqlite3
from typing import Final

from ottla.coordination.sqlite_reason import sqlite_reason
from ottla.coordination.tree import CoordinationError

_SYNC_CODES: Final = (sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC)


class StoreError(CoordinationError):
    """The file cannot be opened, read or written; the text has its path and the reason."""


class StoreSyncError(StoreError):
    """An fsync failed: whether the file holds the transaction is known after the next start."""


def store_error(path: str, error: sqlite3.Error) -> StoreError:
    """What SQLite's error means for the file."""
    kind = StoreSyncError if getattr(error, "sqlite_errorcode", None) in _SYNC_CODES else StoreError
    return kind(sqlite_reason(path, error))
