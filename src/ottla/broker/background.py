"""What a part of the broker does beside the requests: its tasks, from their start to its close.

A task that fails is our own bug. It is said in full, and lasting work begins anew after a pause: a
bug costs a moment then, not retention, elections or metadata deltas until the next start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeAlias

ANEW_AFTER_MS: Final = 1_000

Work: TypeAlias = Coroutine[Any, Any, None]


class Background:
    """The tasks of one part. For the event loop's thread alone."""

    def __init__(self, logger: logging.Logger, part: str) -> None:
        """`part` stands in the broker log where a task fails: "the log care"."""
        self._logger = logger
        self._part = part
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._closed = False

    def __len__(self) -> int:
        """Tasks that are under way."""
        return len(self._tasks)

    def keep(self, work: Callable[[], Work]) -> None:
        """Lasting work: what `work` makes runs until the close, and again where it failed."""
        self._start(work(), work)

    def spawn(self, work: Work) -> None:
        """Work that ends by itself."""
        self._start(work, None)

    def cancel(self) -> None:
        """Ends all of it, the caller's own task too; what runs is not waited for."""
        self._closed = True
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        """Ends all of it, and returns when it has ended."""
        self.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, running: Work, work: Callable[[], Work] | None) -> None:
        task = asyncio.get_running_loop().create_task(running)
        self._tasks[task] = None
        task.add_done_callback(partial(self._ended, work))

    def _ended(self, work: Callable[[], Work] | None, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if task.cancelled() or task.exception() is None:
            return
        is_kept = work is not None and not self._closed
        anew = f"; begun anew in {ANEW_AFTER_MS} ms" if is_kept else ""
        self._logger.error("%s failed%s", self._part, anew, exc_info=task.exception())
        if work is not None and is_kept:
            self._start(_after_pause(work), work)


async def _after_pause(work: Callable[[], Work]) -> None:
    await asyncio.sleep(ANEW_AFTER_MS / 1000)
    await work()
