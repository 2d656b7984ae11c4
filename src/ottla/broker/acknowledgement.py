"""When the appends to one partition may be acknowledged.

On disk, where flush.messages asks for it; and below the high watermark, where the producer wants
all in-sync replicas to have them. Who leads and how many replicas are in sync is the partition's to
check, before and after these waits.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.broker.group_flush import GroupFlush
from ottla.broker.offset_waits import OffsetWaits
from ottla.log.flush import FlushTask
from ottla.log.log import Log
from ottla.protocol.errors import ApiError


class Acknowledgement:
    """The waits for one log. For the event loop's thread alone."""

    __slots__ = ("_committed", "_flush", "_log", "_write_failed")

    def __init__(self, log: Log, write_failed: Callable[[ApiError], None]) -> None:
        """`write_failed` is called with each flush that fails."""
        self._log = log
        self._write_failed = write_failed
        # Most partitions never have one.
        self._committed: OffsetWaits | None = None
        self._flush: GroupFlush[FlushTask] | None = None

    @property
    def wants_flush(self) -> bool:
        """What was appended is to be on disk before it is acknowledged."""
        log = self._log
        return log.unflushed_records >= log.config.flush_messages

    async def flushed(self, last_offset: int, timeout_ms: int) -> None:
        """Returns once `last_offset` is on disk.

        Raises ApiError: KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT, NOT_LEADER_OR_FOLLOWER where the
        log was cut or closed, and what `fail` was given.
        """
        if last_offset < self._log.recovery_point:
            return
        if self._flush is None:
            self._flush = GroupFlush(self._begin_flush, self._end_flush, self._write_failed)
        await self._flush.reached(last_offset + 1, timeout_ms)

    async def committed(self, last_offset: int, timeout_ms: int) -> None:
        """Returns once `moved` has passed `last_offset`.

        Raises ApiError: REQUEST_TIMED_OUT, and what `fail` was given.
        """
        if self._committed is None:
            self._committed = OffsetWaits()
        await self._committed.wait(last_offset, timeout_ms)

    def moved(self, high_watermark: int) -> None:
        """The high watermark has reached this offset."""
        if self._committed is not None:
            self._committed.reached(high_watermark)

    def fail(self, error: ApiError) -> None:
        """Ends all waits: this broker no longer leads, or the log was cut."""
        for waits in (self._committed, self._flush):
            if waits is not None:
                waits.fail(error)

    def _begin_flush(self) -> FlushTask:
        return FlushTask(self._log)

    def _end_flush(self, task: FlushTask) -> int:
        task.apply()
        return self._log.recovery_point
