"""The follower's writes to one partition: its log becomes a copy of the leader's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ottla.log.log import Log
from ottla.log.removal import Removal
from ottla.log.truncation import truncate_fully, truncate_to
from ottla.records.header import BatchHeader, Buffer
from ottla.replica.partition_role import PartitionRole
from ottla.timelines.partition_timeline import Timeline
from ottla.timelines.step import COPIED


class HasTimeline(Protocol):
    """The partition; its timeline is opened at the first event."""

    def timeline_at(self, now_ms: int) -> Timeline: ...


class PartitionFollower:
    """Writes the log and records the events. The caller wakes waiters."""

    __slots__ = ("_history", "_log", "_remove", "_role")

    def __init__(
        self,
        log: Log,
        role: PartitionRole,
        history: HasTimeline,
        remove: Callable[[Removal], None],
    ) -> None:
        self._log = log
        self._role = role
        self._history = history
        self._remove = remove

    def append(
        self,
        records: Buffer,
        headers: Sequence[BatchHeader],
        *,
        leader_high_watermark: int,
        leader_log_start: int,
        now_ms: int,
    ) -> bool:
        """Append what the leader sent, and update the high watermark and log start to its own.
        `headers` may be empty. True if a consumer of this replica can see something new.

        Raises ApiError: KAFKA_STORAGE_ERROR; OFFSET_OUT_OF_RANGE if a batch starts before the log's
        end.
        """
        log, role = self._log, self._role
        if headers:
            appended = log.append_as_follower(records, headers, now_ms=now_ms)
            producer_id, client_id = COPIED
            self._history.timeline_at(now_ms).appended(
                appended.first_offset,
                appended.last_offset,
                now_ms,
                client_id,
                producer_id,
                not any(header.is_transactional for header in headers),
            )
        moved = role.follow(leader_high_watermark)
        if moved:
            log.high_watermark_moved(role.high_watermark)
            self._history.timeline_at(now_ms).high_watermark(role.high_watermark, now_ms)
        if log.start_offset < leader_log_start <= role.high_watermark:
            log.advance_start(leader_log_start)
            self._history.timeline_at(now_ms).started_at(leader_log_start, now_ms, "")
            moved = True
        return moved

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Truncate to what the leader has. Raises ApiError KAFKA_STORAGE_ERROR."""
        end_before = self._log.end_offset
        try:
            removal = truncate_to(self._log, offset, now_ms=now_ms)
            if removal is not None:
                self._remove(removal)
        finally:
            self._cut(end_before, now_ms)

    def truncate_fully(self, offset: int, now_ms: int) -> None:
        """Empty the log and start it at `offset`. Raises ApiError KAFKA_STORAGE_ERROR."""
        end_before = self._log.end_offset
        try:
            self._remove(truncate_fully(self._log, offset, now_ms=now_ms))
        finally:
            self._cut(end_before, now_ms)

    def _cut(self, end_before: int, now_ms: int) -> None:
        """Also if the disk has refused a part of it."""
        self._role.truncated()
        end_offset = self._log.end_offset
        if end_offset < end_before:
            self._history.timeline_at(now_ms).truncated(end_offset, now_ms)
