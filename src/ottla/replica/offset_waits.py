"""Requests that wait until a partition passes an offset: its high watermark, or its flushes.

A queue in offset order: each move ends the waits at its front, so it costs nothing for the other
waits. One timer for each wait, no task.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from ottla.protocol.errors import ApiError, ErrorCode

MAX_WAITS: Final = 100_000
"""A connection waits for one request at a time, so this exceeds all possible connections."""


class OffsetWaits:
    """The waits of one partition. Use only from the event loop's thread."""

    __slots__ = ("_waits",)

    def __init__(self) -> None:
        self._waits: deque[tuple[int, asyncio.Future[ApiError | None]]] = deque()

    def __len__(self) -> int:
        return len(self._waits)

    async def wait(self, last_offset: int, timeout_ms: int) -> None:
        """Return once `last_offset` is passed.

        Raises ApiError: REQUEST_TIMED_OUT after `timeout_ms`, or the error passed to `fail`.
        """
        if timeout_ms <= 0 or len(self._waits) >= MAX_WAITS:
            raise ApiError(ErrorCode.request_timed_out)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[ApiError | None] = loop.create_future()
        self._enter(last_offset, future)
        timed_out = ApiError(ErrorCode.request_timed_out)
        handle = loop.call_later(timeout_ms / 1000, _end, future, timed_out)
        try:
            error = await future
        finally:
            handle.cancel()
            while self._waits and self._waits[0][1].done():
                self._waits.popleft()
        if error is not None:
            # One error may end many waits: each raises its own copy.
            raise ApiError(error.code, error.message)

    def _enter(self, last_offset: int, future: asyncio.Future[ApiError | None]) -> None:
        waits = self._waits
        if not waits or waits[-1][0] <= last_offset:
            waits.append((last_offset, future))
            return
        # A duplicate waits for an older offset than the waits after it.
        index = len(waits)
        while index > 0 and waits[index - 1][0] > last_offset:
            index -= 1
        waits.insert(index, (last_offset, future))

    def reached(self, next_offset: int) -> None:
        """End the waits for the offsets before `next_offset`."""
        waits = self._waits
        while waits and waits[0][0] < next_offset:
            _end(waits.popleft()[1], None)

    def fail(self, error: ApiError, from_offset: int = 0) -> None:
        """End the waits for `from_offset` and later offsets with this error."""
        while self._waits and self._waits[-1][0] >= from_offset:
            _end(self._waits.pop()[1], error)


def _end(future: asyncio.Future[ApiError | None], error: ApiError | None) -> None:
    if not future.done():
        future.set_result(error)
