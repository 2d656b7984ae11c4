"""What Spark writes while pipelines run goes to a file; the screen belongs to the program.

Spark's JVM writes to the descriptors 1 and 2 that it inherits, from its first line on. So they
are redirected to the file before it starts, and Python's own output goes to their former targets.
Python's warnings go to the file: PySpark warns of versions of libraries that no pipeline uses.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TextIO

from ottla.pipelines.run.spark_log import TO_STDERR
from ottla.pipelines.state_folder import LOGS, remove_oldest, state_folder

MAX_LOGS: Final = 10
"""The number of logs that are kept for each pipeline file; each process has one."""

SPARK_SETTINGS: Final = {
    "spark.ui.enabled": False,
    "spark.ui.showConsoleProgress": False,
    TO_STDERR: "true",
}
"""What a session gets whose output goes to a file."""


class SparkOutput:
    """`with SparkOutput("flights", screen) as output:`, and `output.file` has what Spark writes.

    `screen` makes the program's standard output of a stream.
    """

    def __init__(
        self, name: str, screen: Callable[[TextIO], TextIO], file: Path | None = None
    ) -> None:
        self._name = name
        self._screen = screen
        folder = None if file is not None else state_folder(os.environ, LOGS)
        self.file = file or (folder or Path()) / f"{name}-{os.getpid()}.log"
        self._folder = folder
        self._streams: list[TextIO] = []
        self._before: list[TextIO] = []

    def __enter__(self) -> Self:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        if self._folder is not None:
            remove_oldest(self._folder, f"{self._name}-*.log", MAX_LOGS - 1)
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
        stdout, stderr = self._streams
        sys.stdout, sys.stderr = self._screen(stdout), stderr
        self._show_warning = warnings.showwarning
        warnings.showwarning = write_warning
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        warnings.showwarning = self._show_warning
        for stream, descriptor in zip(self._streams, (1, 2), strict=True):
            os.dup2(stream.fileno(), descriptor)
            try:
                stream.close()
            except OSError:
                # The reader has gone, or the disk is full, and the program says so: what is
                # buffered has nowhere to go, here and at the end.
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, descriptor)
                os.close(null)
        sys.stdout, sys.stderr = self._before


def write_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Write a warning to the descriptor 2. See `warnings.showwarning`."""
    text = warnings.formatwarning(message, category, filename, lineno, line)
    os.write(2, text.encode("utf-8", "backslashreplace"))
