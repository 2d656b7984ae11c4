"""The background tasks of one part of the broker, from their start to the part's close.

A task that fails is our own bug. It is logged in full, and lasting work restarts after a pause. So
a bug interrupts retention, elections or metadata deltas briefly, not until the next start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeAlias

RESTART_AFTER_MS: Final = 1_000

Work: TypeAlias = Coroutine[Any, Any, None]


class Background:
    """The tasks of one part. For the event loop's thread only."""

    def __init__(self, logger: logging.Logger, part: str) -> None:
        """`part` names the part in the broker log when a task fails: "log maintenance"."""
        self._logger = logger
        self._part = part
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._closed = False

    def __len__(self) -> int:
        """The number of running tasks."""
        return len(self._tasks)

    def keep(self, work: Callable[[], Work]) -> None:
        """Runs `work()` until the close, and restarts it after a failure."""
        self._start(work(), work)

    def spawn(self, work: Work) -> None:
        """Runs work that ends by itself."""
        self._start(work, None)

    def cancel(self) -> None:
        """Cancels all tasks, including the caller's own, without waiting for them."""
        self._closed = True
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        """Cancels all tasks and waits until they have ended."""
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
        restart = f"; restarting in {RESTART_AFTER_MS} ms" if is_kept else ""
        self._logger.error("%s failed%s", self._part, restart, exc_info=task.exception())
        if work is not None and is_kept:
            self._start(_after_pause(work), work)


async def _after_pause(work: Callable[[], Work]) -> None:
    await asyncio.sleep(RESTART_AFTER_MS / 1000)
    await work()
