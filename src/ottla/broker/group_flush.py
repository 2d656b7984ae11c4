"""fsync before the acknowledgement, many appends to one fsync (flush.messages=1).

The loop never waits for a disk: appends go on while a worker thread syncs, and the next sync covers
all that was appended meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from ottla.broker.offset_waits import OffsetWaits
from ottla.protocol.errors import ApiError, ErrorCode


class Flushing(Protocol):
    """A flush that was made on the loop; `run` belongs into a worker thread."""

    up_to_offset: int
    """The log's end when it was made."""

    def run(self) -> None: ...


F = TypeVar("F", bound=Flushing)


class GroupFlush(Generic[F]):
    """One log's flushes: at most one under way; all other waits are for it or for the next.

    `begin` (on the loop) makes the flush of all that is there now; `end` (on the loop) takes its
    result in and returns the offset below which all is on disk. Both raise ApiError, as does the
    flush's `run`; `failed` is called once with each such error.
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
        """Returns when everything below `offset` is on disk.

        Raises ApiError: what the flush raised; REQUEST_TIMED_OUT; NOT_LEADER_OR_FOLLOWER where
        `offset` is past the log's end, because the log was cut or closed; what `fail` was given.
        """
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._flush_all())
        await self._waits.wait(offset - 1, timeout_ms)

    def fail(self, error: ApiError) -> None:
        """Ends all waits with this error. A flush under way ends by itself."""
        self._waits.fail(error)

    async def _flush_all(self) -> None:
        try:
            while len(self._waits):
                flush = self._begin()
                # No later flush reaches these: without this the loop would never end.
                gone = ApiError(ErrorCode.not_leader_or_follower, "the log was cut")
                self._waits.fail(gone, from_offset=flush.up_to_offset)
                await asyncio.to_thread(flush.run)
                self._waits.reached(self._end(flush))
        except ApiError as error:
            self._waits.fail(error)
            self._failed(error)
        finally:
            self._running = None
            # Waits are left only after a bug of ours.
            self._waits.fail(ApiError(ErrorCode.unknown_server_error))
