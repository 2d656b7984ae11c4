"""One thread for work that takes the CPU for long.

A message with a million elements or a batch with a million records takes seconds. On the event
loop, every other client would wait so long. In a thread it takes turns with the loop: the loop
waits for the thread for at most Python's switch interval (5 ms). There is one thread, so that
several such requests take turns with the loop as one does. A connection has one request under way:
that bounds the queue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class CpuThread:
    """For the event loop's thread only."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """The result of `work`, which runs in the thread; raises its exceptions."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix="long-work")
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    def close(self) -> None:
        """Does not wait: nobody needs the result."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None


def take_turns() -> None:
    """Compiled code calls it: only Python's interpreter passes its global lock on, when a function
    begins.
    """
