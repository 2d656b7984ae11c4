"""A progress bar on standard error for long work, shown only on a terminal.

Nothing is shown in the first second, or if standard error and the printed records share one
terminal.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

SILENT_S: Final = 1.0
PAUSE_S: Final = 0.2


class Watch:
    """`with Watch("Producing", total) as watch:` and `watch.at(done)` now and then.

    `total` and `done` use one unit, bytes if `in_bytes`. A total of None is unknown.
    """

    def __init__(self, title: str, total: int | None, *, wanted: bool, in_bytes: bool = False):
        self.title = title
        self.total = total
        self.in_bytes = in_bytes
        self.wanted = wanted and sys.stderr.isatty()
        self.next_s = time.monotonic() + SILENT_S
        self.progress: Progress | None = None
        self.task: TaskID | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self.progress is not None:
            self.progress.stop()

    def at(self, done: int, total: int | None = None) -> None:
        """Show the progress. Cheap enough to call for each batch of records.

        `total` replaces the initial one, if that was not known yet.
        """
        if not self.wanted:
            return
        now_s = time.monotonic()
        if now_s < self.next_s:
            return
        self.next_s = now_s + PAUSE_S
        if self.progress is None:
            self.progress, self.task = self.begin()
        assert self.task is not None
        self.progress.update(self.task, completed=done, total=total or self.total)

    def begin(self) -> tuple[Progress, TaskID]:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn() if self.in_bytes else MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
            console=Console(stderr=True),
            transient=True,
        )
        task = progress.add_task(self.title, total=self.total)
        progress.start()
        return progress, task
