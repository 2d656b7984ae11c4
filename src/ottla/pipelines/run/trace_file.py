"""Where Spark's traces are kept: a folder of the user's, one text file for each failure.

The folder is `$OTTLA_STATE_DIR`, else `$XDG_STATE_HOME/ottla`, else `~/.local/state/ottla`, else
one in the system's temporary folder. Traces may quote rows, so only the user may read them.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

MAX_TRACES: Final = 20
MAX_TRACE_CHARS: Final = 4_000_000
_NUMBERS: Final = 1_000


def folders(environment: Mapping[str, str]) -> Iterator[Path]:
    """Give the folders in which to try to write, the best first."""
    if chosen := environment.get("OTTLA_STATE_DIR"):
        yield Path(chosen)
        return
    if state := environment.get("XDG_STATE_HOME"):
        yield Path(state) / "ottla"
    if home := environment.get("HOME"):
        yield Path(home) / ".local" / "state" / "ottla"
    yield Path(tempfile.gettempdir()) / f"ottla-{os.getuid() if hasattr(os, 'getuid') else 0}"


def state_folder(environment: Mapping[str, str], name: str) -> Path | None:
    """Return a folder `name` that this user can write to, made if needed, None without one."""
    for folder in folders(environment):
        try:
            (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder / name, os.W_OK | os.X_OK):
            return folder / name
    return None


def write_trace(environment: Mapping[str, str], name: str, text: str, now: datetime) -> Path | None:
    """Write a trace, remove all but the newest MAX_TRACES; None where no folder is writable.

    A full disk may be the very failure that is reported: it gives None as well.
    """
    folder = state_folder(environment, "traces")
    if folder is None:
        return None
    start = f"{now:%Y%m%d-%H%M%S}-{re.sub(r'[^A-Za-z0-9._-]', '_', name)[:60]}"
    try:
        file = _new_file(folder, start)
        file.write_text(text[:MAX_TRACE_CHARS], encoding="utf-8", errors="replace")
        _remove_old(folder)
    except OSError:
        return None
    return file


def _new_file(folder: Path, start: str) -> Path:
    for number in range(_NUMBERS):
        file = folder / (f"{start}-{number}.txt" if number else f"{start}.txt")
        try:
            file.touch(mode=0o600, exist_ok=False)
        except FileExistsError:
            continue
        return file
    raise FileExistsError(f"{folder}/{start}")


def _remove_old(folder: Path) -> None:
    # The name begins with the time.
    for old in sorted(folder.glob("*.txt"))[:-MAX_TRACES]:
        old.unlink(missing_ok=True)
