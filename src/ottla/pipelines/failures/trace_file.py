"""Spark's traces: one text file for each failure, in `traces/` of the state folder.

Traces may quote rows, so only the user may read them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

from ottla.pipelines.state_folder import TRACES, state_folder

MAX_TRACES: Final = 20
MAX_TRACE_CHARS: Final = 4_000_000
_NUMBERS: Final = 1_000


def write_trace(environment: Mapping[str, str], name: str, text: str, now: datetime) -> Path | None:
    """Write a trace, remove all but the newest MAX_TRACES; None where no folder is writable.

    A full disk may be the very failure that is reported: it gives None as well.
    """
    folder = state_folder(environment, TRACES)
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
