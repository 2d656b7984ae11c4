"""fsync before the acknowledgement, with one fsync for many appends (flush.messages=1).

The event loop never waits for a disk: appends go on while a worker thread syncs, and the next sync
covers everything appended meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replica.offset_waits import OffsetWaits


class Flushing(Protocol):
    """A flush, created on the event loop; `run` is for a worker thread."""

    up_to_offset: int
    """The log's end when it was created."""

    def run(self) -> None: ...


F = TypeVar("F", bound=Flushing)


class GroupFlush(Generic[F]):
    """One log's flushes: at most one is under way; other waits are for it or the next one.

    `begin` (on the loop) creates the flush of the whole log as it is now; `end` (on the loop)
    applies its result and returns the offset below which everything is on disk. Both raise
    ApiError, as does the flush's `run`; `failed` is called once with each such error.
    """

    def __init__(
        self,
        begin: Callable[[], F],
        end: Callable[[F], int],
        failed: Callable[[ApiError], None] = lambda error: None,
    ) -> None:
        self._begin = begin
        self._end = end
        self._failed = failed
        self._waits = OffsetWaits()
        self._running: asyncio.Task[None] | None = None

    async def reached(self, offset: int, timeout_ms: int) -> None:
        """Return when everything below `offset` is on disk.

        Raises ApiError: the flush's error; REQUEST_TIMED_OUT; NOT_LEADER_OR_FOLLOWER if `offset` is
        past the log's end because the log was truncated or closed; the error passed to `fail`.
        """
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._flush_all())
        await self._waits.wait(offset - 1, timeout_ms)

    def fail(self, error: ApiError) -> None:
        """End all waits with this error. A flush under way ends by itself."""
        self._waits.fail(error)

    async def _flush_all(self) -> None:
        try:
            while len(self._waits):
                flush = self._begin()
                # No later flush reaches these: without this the loop would never end.
                gone = ApiError(ErrorCode.not_leader_or_follower, "the log was truncated")
                self._waits.fail(gone, from_offset=flush.up_to_offset)
                await asyncio.to_thread(flush.run)
                self._waits.reached(self._end(flush))
        except ApiError as error:
            self._waits.fail(error)
            self._failed(error)
        finally:
            self._running = None
            # Waits are left only after a bug of our own.
            self._waits.fail(ApiError(ErrorCode.unknown_server_error))
