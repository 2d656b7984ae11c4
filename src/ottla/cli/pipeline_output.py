"""What Spark writes while a pipeline runs goes to a file; the screen is the command's own.

Spark's JVM writes to the descriptors 1 and 2 that it inherits, from its first line on. So these
are pointed at the file before it starts, and Python's own output goes to what they were before.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TextIO

MAX_LOGS: Final = 10
"""So many logs are kept for each pipeline file; each process has one."""


class SparkOutput:
    """`with SparkOutput("flights") as output:`, and `output.file` has what Spark writes."""

    def __init__(self, name: str, file: Path | None = None) -> None:
        self._name = name
        self.file = file if file is not None else log_folder() / f"{name}-{os.getpid()}.log"
        self._is_ours = file is None
        self._streams: list[TextIO] = []
        self._before: list[TextIO] = []

    def __enter__(self) -> Self:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        if self._is_ours:
            _remove_old(self.file.parent, self._name)
        log = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._before = [sys.stdout, sys.stderr]
        for stream, descriptor in ((sys.stdout, 1), (sys.stderr, 2)):
            stream.flush()
            own = os.fdopen(
                os.dup(descriptor),
                "w",
                encoding=stream.encoding,
                errors="backslashreplace",
                buffering=1,
            )
            self._streams.append(own)
            os.dup2(log, descriptor)
        os.close(log)
        sys.stdout, sys.stderr = self._streams
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        for stream, descriptor in zip(self._streams, (1, 2), strict=True):
            os.dup2(stream.fileno(), descriptor)
            try:
                stream.close()
            except BrokenPipeError:
                # The reader has gone: what is buffered has nowhere to go, here and at the end.
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, descriptor)
                os.close(null)
        sys.stdout, sys.stderr = self._before


def log_folder() -> Path:
    """Where logs lie: below XDG_STATE_HOME, by default ~/.local/state."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "ottla" / "pipelines"


def _remove_old(folder: Path, name: str) -> None:
    logs = sorted(folder.glob(f"{name}-*.log"), key=lambda log: log.stat().st_mtime)
    for old in logs[: -(MAX_LOGS - 1)]:
        old.unlink(missing_ok=True)
