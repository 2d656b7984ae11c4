"""When the appends to one partition may be acknowledged.

An append must be on disk if flush.messages requires it, and below the high watermark if the
producer requires all in-sync replicas. This broker must lead all the time in between.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.log.flush import FlushTask
from ottla.log.log import Log
from ottla.protocol.errors import ApiError
from ottla.replica.group_flush import GroupFlush
from ottla.replica.offset_waits import OffsetWaits
from ottla.replica.partition_role import PartitionRole
from ottla.runtime.clock import Clock


def wants_flush(log: Log) -> bool:
    """Whether appended records must be on disk before they are acknowledged."""
    return log.unflushed_records >= log.config.flush_messages


class Acknowledgement:
    """The requests that wait for one partition. Use only from the event loop's thread."""

    __slots__ = ("_clock", "_committed", "_flush", "_log", "_role", "_write_failed")

    def __init__(
        self,
        log: Log,
        role: PartitionRole,
        clock: Clock,
        write_failed: Callable[[ApiError], None],
    ) -> None:
        """`write_failed` is called once for each failed flush."""
        self._log = log
        self._role = role
        self._clock = clock
        self._write_failed = write_failed
        self._committed: OffsetWaits | None = None
        self._flush: GroupFlush[FlushTask] | None = None

    async def by_leader(self, last_offset: int, leadership: int, timeout_ms: int) -> None:
        """Return once everything up to `last_offset` is on this broker's disk, if flush.messages
        requires it. `leadership` is that of the append.

        Raises ApiError: KAFKA_STORAGE_ERROR; REQUEST_TIMED_OUT; NOT_LEADER_OR_FOLLOWER if this
        broker has stopped leading, or the log was truncated or closed.
        """
        self._role.check_leadership(leadership)
        if wants_flush(self._log):
            await self._flushed(last_offset, timeout_ms)

    async def by_all(self, last_offset: int, leadership: int, timeout_ms: int) -> None:
        """As `by_leader`, once all in-sync replicas have it too.

        Also raises NOT_ENOUGH_REPLICAS_AFTER_APPEND.
        """
        role = self._role
        role.check_leadership(leadership)
        if wants_flush(self._log):
            began_ms = self._clock.monotonic_ms()
            await self._flushed(last_offset, timeout_ms)
            role.check_leadership(leadership)
            timeout_ms -= self._clock.monotonic_ms() - began_ms
        if role.is_alone:
            return
        if role.high_watermark <= last_offset:
            if self._committed is None:
                self._committed = OffsetWaits()
            await self._committed.wait(last_offset, timeout_ms)
            role.check_leadership(leadership)
        role.check_still_in_sync()

    def high_watermark_moved(self, high_watermark: int) -> None:
        """The high watermark has reached this offset."""
        if self._committed is not None:
            self._committed.reached(high_watermark)

    def fail(self, error: ApiError) -> None:
        """End all waits: this broker has stopped leading, or the log was truncated."""
        for waits in (self._committed, self._flush):
            if waits is not None:
                waits.fail(error)

    async def _flushed(self, last_offset: int, timeout_ms: int) -> None:
        if last_offset < self._log.recovery_point:
            return
        if self._flush is None:
            self._flush = GroupFlush(self._begin_flush, self._end_flush, self._write_failed)
        await self._flush.reached(last_offset + 1, timeout_ms)

    def _begin_flush(self) -> FlushTask:
        return FlushTask(self._log)

    def _end_flush(self, task: FlushTask) -> int:
        task.apply()
        return self._log.recovery_point
