"""The copy of the embedded tree's last good state, and what a start does with damage.

    coordination.sqlite            the tree (see `embedded_store`)
    coordination.sqlite.copy       a whole SQLite file: the tree as of some time before
    coordination.sqlite.damaged-N  a damaged file that its copy has replaced, kept for examination;
                                   nothing reads it

The copy is written beside, checked, synced and renamed, so it is always whole, and a damaged file
never replaces a good copy. Crash: a `.copy.tmp` remains, which the next copy replaces.

A start that finds the file damaged or missing, or with fewer changes than its copy, uses the copy
and says so. Without a good copy it refuses. If the copy may lack changes, the controller makes up
for what must not go back (`controller.older_tree`).
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ottla.coordination.store_check import DamagedStoreError, StoreState, read_state, scan
from ottla.coordination.store_error import StoreError

logger = logging.getLogger("ottla.coordination")

FILE_NAME: Final = "coordination.sqlite"
COPY_NAME: Final = f"{FILE_NAME}.copy"
_SIDE_FILES: Final = ("-wal", "-shm")
_READ_WITHIN_S: Final = 1


def write_copy(folder: Path) -> None:
    """Replaces the copy, unless the file is damaged. Takes long for a large tree: run it in a
    thread of its own.

    Raises DamagedStoreError, sqlite3.Error and OSError; the copy before stays.
    """
    made = folder / f"{COPY_NAME}.tmp"
    try:
        # The source first, and only if it exists: the folder may be gone, or another broker's.
        with closing(_existing(folder / FILE_NAME)) as source:
            made.unlink(missing_ok=True)
            with closing(sqlite3.connect(made)) as target:
                # It is synced below, once.
                target.execute("PRAGMA synchronous=OFF")
                target.execute("PRAGMA journal_mode=OFF")
                source.backup(target)
        with closing(_read_only(made)) as copied:
            scan(copied, pause=lambda: time.sleep(0.0005))
        _sync(made)
        made.replace(folder / COPY_NAME)
        _sync(folder)
    finally:
        made.unlink(missing_ok=True)


def copied_state(folder: Path) -> StoreState | None:
    """The state of the copy; None if there is none, or if it cannot be read."""
    try:
        with closing(_read_only(folder / COPY_NAME)) as copied:
            return read_state(copied)
    except (sqlite3.Error, DamagedStoreError):
        return None


def use_copy(folder: Path, damage: str) -> bool:
    """Replaces the file, which has this damage, with its copy. Returns whether the copy may lack
    changes.

    Raises StoreError if there is no good copy.
    """
    file, copy = folder / FILE_NAME, folder / COPY_NAME
    try:
        with closing(_read_only(copy)) as copied:
            state = scan(copied).state
        copied_at = datetime.fromtimestamp(copy.stat().st_mtime, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (sqlite3.Error, DamagedStoreError, OSError) as error:
        why = f"is damaged, too ({error})" if copy.exists() else "does not exist"
        raise StoreError(
            f"{file} cannot be used ({damage}), and {COPY_NAME} {why}: restore {FILE_NAME} from a"
            " backup of the data folder"
        ) from None
    lacks = _state_of(file) != state
    try:
        aside = _move_aside(file)
        made = folder / f"{FILE_NAME}.tmp"
        made.write_bytes(copy.read_bytes())
        _sync(made)
        made.replace(file)
        _sync(folder)
    except OSError as error:
        raise StoreError(f"{file} cannot be used ({damage}): {error.strerror}") from None
    logger.error(
        "%s cannot be used (%s): using its copy of %s UTC%s%s",
        file,
        damage,
        copied_at,
        "; topics and settings that were changed later are as they were then, and records of topics"
        " that it does not have are kept as strays" if lacks else ", which has every change",
        f". The damaged file is kept: {aside}" if aside is not None else "",
    )  # fmt: skip
    return lacks


def _state_of(file: Path) -> StoreState | None:
    """The state of a damaged file; None if that is not known."""
    try:
        with closing(_existing(file)) as database:
            return read_state(database)
    except (sqlite3.Error, DamagedStoreError):
        return None


def _move_aside(file: Path) -> Path | None:
    """Returns its new place; None if it is missing. Raises OSError."""
    number = 1
    while (aside := file.with_name(f"{file.name}.damaged-{number}")).exists():
        number += 1
    # The write-ahead log first: with another file it would be wrong.
    for suffix in _SIDE_FILES:
        with suppress(FileNotFoundError):
            os.replace(f"{file}{suffix}", f"{aside}{suffix}")
    try:
        file.replace(aside)
    except FileNotFoundError:
        return None
    return aside


def _existing(file: Path) -> sqlite3.Connection:
    """A connection that does not make the file."""
    uri = f"{file.absolute().as_uri()}?mode=rw"
    return sqlite3.connect(uri, uri=True, timeout=_READ_WITHIN_S)


def _read_only(file: Path) -> sqlite3.Connection:
    """A connection that makes no files beside: nobody else uses it."""
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro&immutable=1", uri=True)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
