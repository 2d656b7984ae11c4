"""How long the event loop is held: the CPU time of its thread between two turns of another task.

CPU time, not the clock's: a busy machine is no failure. Without collections of garbage: in a
process that runs many tests they take longer than what is measured.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ottla.runtime.garbage_collection import no_collection


class Holds:
    """What another task of the loop saw."""

    def __init__(self) -> None:
        self.longest_ms = 0.0
        self.turns = 0

    async def watch(self) -> None:
        before_s = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now_s = time.thread_time()
            self.longest_ms = max(self.longest_ms, (now_s - before_s) * 1000)
            self.turns += 1
            before_s = now_s


@asynccontextmanager
async def watched() -> AsyncIterator[Holds]:
    """The holds of the loop within the block, which must end with a pause or a result."""
    holds = Holds()
    task = asyncio.create_task(holds.watch())
    await asyncio.sleep(0)
    with no_collection():
        try:
            yield holds
            await asyncio.sleep(0)
        finally:
            task.cancel()
