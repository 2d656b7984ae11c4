"""Who waits for the high watermark of one partition: producers with acks=all, coordinators.

A queue in offset order: the high watermark takes from its front all that it has passed, so that a
move costs what it answers and nothing for those who go on waiting. One timer a wait, no task.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from ottla.protocol.errors import ApiError, ErrorCode

MAX_WAITS: Final = 100_000
"""A connection waits for one request at a time, so this is beyond all connections there may be."""


class CommittedWaits:
    """The waits of one partition."""

    __slots__ = ("_waits",)

    def __init__(self) -> None:
        self._waits: deque[tuple[int, asyncio.Future[ErrorCode]]] = deque()

    def __len__(self) -> int:
        return len(self._waits)

    async def wait(self, last_offset: int, timeout_ms: int) -> None:
        """Returns when the high watermark is beyond `last_offset`.

        Raises ApiError: REQUEST_TIMED_OUT after `timeout_ms`, or what `fail` was given.
        """
        if timeout_ms <= 0 or len(self._waits) >= MAX_WAITS:
            raise ApiError(ErrorCode.request_timed_out)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[ErrorCode] = loop.create_future()
        self._enter(last_offset, future)
        handle = loop.call_later(timeout_ms / 1000, _end, future, ErrorCode.request_timed_out)
        try:
            code = await future
        finally:
            handle.cancel()
            while self._waits and self._waits[0][1].done():
                self._waits.popleft()
        if code is not ErrorCode.none:
            raise ApiError(code)

    def _enter(self, last_offset: int, future: asyncio.Future[ErrorCode]) -> None:
        waits = self._waits
        if not waits or waits[-1][0] <= last_offset:
            waits.append((last_offset, future))
            return
        # Answers to a duplicate wait for an older offset than those behind it.
        place = len(waits)
        while place > 0 and waits[place - 1][0] > last_offset:
            place -= 1
        waits.insert(place, (last_offset, future))

    def reached(self, high_watermark: int) -> None:
        """Answers all that wait for an offset below."""
        waits = self._waits
        while waits and waits[0][0] < high_watermark:
            _end(waits.popleft()[1], ErrorCode.none)

    def fail(self, code: ErrorCode) -> None:
        """Ends all waits with this error."""
        while self._waits:
            _end(self._waits.popleft()[1], code)


def _end(future: asyncio.Future[ErrorCode], code: ErrorCode) -> None:
    if not future.done():
        future.set_result(code)
