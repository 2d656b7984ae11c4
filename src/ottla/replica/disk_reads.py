"""Reads that wait for a disk, in threads of their own.

They must not wait for compaction, and an fsync must not wait for them, so they do not use the event
loop's threads. A request has one read under way, and a connection one request: that bounds the
queue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from ottla.log.page_cache import ReadBuffers
from ottla.replica.read_turns import ReadTurns

MAX_THREADS: Final = 4

T = TypeVar("T")


class DiskReads:
    """Use only from the event loop's thread."""

    def __init__(self) -> None:
        self.buffers = ReadBuffers()
        self.turns = ReadTurns()
        self._executor: ThreadPoolExecutor | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """The result of `work`, which runs in a thread; raises its exceptions."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="disk-reads")
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    def close(self) -> None:
        """Wait for the reads under way."""
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)
            self._executor = None
