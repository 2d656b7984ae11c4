"""A log whose large indexes are rebuilt later, as in a broker that serves."""

from __future__ import annotations

from typing import Any

from ottla.log.log import Log
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.log.task import Rebuild


def open_rebuilding(bench: Any, end_offset: int, rebuilds: list[Rebuild]) -> Log:
    """The bench's log after a clean stop at `end_offset`; `rebuilds` gets what is begun."""
    files = OpenFiles(8)
    files.rebuild_later = rebuilds.append
    return open_log(
        str(bench.folder), bench.config, files, now_ms=1, recovery_point=end_offset, clean=True
    )
