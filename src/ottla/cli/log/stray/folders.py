"""A stray folder as it was typed."""

from __future__ import annotations

import os
from pathlib import Path

from ottla.cli.failures import Failed
from ottla.storage.stray_folder import StrayFolder, read_stray


def found_stray(folder: Path) -> StrayFolder:
    """Raises Failed that says what the folder is instead."""
    path = os.path.normpath(folder)
    hint = f"To list stray folders: ottla log stray list {folder.parent}"
    try:
        stray = read_stray(path) if os.path.isdir(path) else None
    except OSError as error:
        raise Failed(f"cannot read {folder}: {error.strerror}.") from error
    if stray is None:
        what = "is not a stray folder" if os.path.exists(path) else "does not exist"
        raise Failed(f"{folder} {what}.", hint)
    return stray
