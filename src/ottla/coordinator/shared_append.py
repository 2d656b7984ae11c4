"""The records of several steps that are appended as one batch: an append costs as much as deciding
a heartbeat, and the members of a large group send theirs at the same time.

    step     its records are applied, and wait here; its answer waits
    step     ...
    end of the turn of the event loop, a limit, or a step that shares nothing:
             one append; then answers go the way of any step's

Kafka's coordinators do the same (CoordinatorRuntime.CoordinatorBatch; how long it waits is
`group.coordinator.append.linger.ms`). Where the append fails Kafka reverts the state to its
snapshot of the last written offset. There are no snapshots here: the partition is closed and loads
its log again, which takes longer, and is always right. So that this is rare, what is known before
is asked before (`CoordinatorLog.check`, the size), and a partition that was just loaded appends
alone until that has succeeded once: a log that refuses everything costs one load, not one for each
batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from ottla.coordinator.coordinator_log import KeyAndValue
from ottla.protocol.errors import ErrorCode

MAX_SHARED_RECORDS: Final = 1_000
MAX_SHARED_BYTES: Final = 256 << 10
"""Both of one batch, which is made in a few milliseconds. A step with more appends alone."""
BATCH_BYTES: Final = 61
RECORD_BYTES: Final = 24
"""At most, beside key and value: attributes, time, and five numbers of up to five bytes."""


def size_bytes(contents: Sequence[KeyAndValue]) -> int:
    """At most so many bytes of a batch are for these records."""
    return sum(
        len(key) + RECORD_BYTES + (0 if value is None else len(value)) for key, value in contents
    )


class SharedAppend:
    """One batch that is being collected. `now_ms`: its time, of its first step."""

    __slots__ = ("_waiting", "contents", "limit_bytes", "now_ms", "size_bytes", "steps")

    def __init__(self, now_ms: int, max_bytes: int) -> None:
        """`max_bytes`: what the log takes as one batch."""
        self.now_ms = now_ms
        self.limit_bytes = min(MAX_SHARED_BYTES, max_bytes)
        self.contents: list[KeyAndValue] = []
        self.size_bytes = BATCH_BYTES
        self.steps: list[Any] = []
        """What waits for the batch to be committed, in order."""
        self._waiting: list[asyncio.Future[ErrorCode | None]] = []

    def takes(self, count: int, size: int) -> bool:
        """Whether so many records, of so many bytes, still fit in."""
        return (
            len(self.contents) + count <= MAX_SHARED_RECORDS
            and self.size_bytes + size <= self.limit_bytes
        )

    def add(self, contents: Sequence[KeyAndValue], size: int) -> None:
        self.contents += contents
        self.size_bytes += size

    async def appended(self) -> ErrorCode | None:
        """Returns when the batch is appended; the error for the client if it was refused."""
        waiting: asyncio.Future[ErrorCode | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        return await waiting

    def finish(self, error: ErrorCode | None) -> None:
        """Lets those go on that wait, in order."""
        for waiting in self._waiting:
            if not waiting.done():  # its client may have gone
                waiting.set_result(error)
