"""The folder of this user for what pipelines leave behind: traces of failures, Spark's logs.

It is `$OTTLA_STATE_DIR`, else `$XDG_STATE_HOME/ottla`, else `~/.local/state/ottla`, else one in
the system's temporary folder. Only the user may read it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

LOGS: Final = "logs"
TRACES: Final = "traces"


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


def remove_oldest(folder: Path, pattern: str, kept: int) -> None:
    """Remove all but the newest files that match, and the parts that were rolled off them."""
    files = sorted(folder.glob(pattern), key=lambda file: file.stat().st_mtime)
    for old in files[: max(0, len(files) - kept)]:
        for file in folder.glob(f"{old.name}*"):
            file.unlink(missing_ok=True)
