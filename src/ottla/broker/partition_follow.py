"""A partition as a follower writes it: what its leader has, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ottla.broker.held_partition import HeldPartition
from ottla.broker.waiting import wake
from ottla.log.truncation import truncate_fully, truncate_to
from ottla.protocol.errors import ApiError
from ottla.records.header import BatchHeader, Buffer


class FollowingPartition(HeldPartition):
    """See the module's text."""

    __slots__ = ()

    def append_fetched(
        self,
        records: Buffer,
        headers: Sequence[BatchHeader],
        *,
        leader_high_watermark: int,
        leader_log_start: int,
        now_ms: int,
    ) -> None:
        """What a follower was given by its leader, which may be nothing but newer numbers.

        Raises ApiError: KAFKA_STORAGE_ERROR; OFFSET_OUT_OF_RANGE where a batch begins before the
        log's end.
        """
        log = self.log
        if headers:
            with self._writing():
                appended = log.append_as_follower(records, headers, now_ms=now_ms)
            self._count(headers)
            self.timeline.appended(appended.first_offset, appended.last_offset, now_ms, "", -1)
        high_watermark = min(leader_high_watermark, log.end_offset)
        moved = high_watermark > self._high_watermark
        if moved:
            self._high_watermark = high_watermark
            self.timeline.high_watermark(high_watermark, now_ms)
        if log.start_offset < leader_log_start <= self._high_watermark:
            with self._writing():
                log.advance_start(leader_log_start)
            self.timeline.started_at(leader_log_start, now_ms, "DeleteRecords")
            moved = True
        if moved:
            # Only what is committed is of use to the consumers of a follower.
            wake(self)

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Cuts what the leader does not have. Raises ApiError KAFKA_STORAGE_ERROR."""
        before = self.log.end_offset
        with self._writing():
            removal = truncate_to(self.log, offset, now_ms=now_ms)
        if removal is not None:
            self._remove(removal)
        self._cut(before, now_ms)

    def truncate_fully(self, offset: int, now_ms: int) -> None:
        """Empties the log, to begin at `offset`. Raises ApiError KAFKA_STORAGE_ERROR."""
        before = self.log.end_offset
        with self._writing():
            removal = truncate_fully(self.log, offset, now_ms=now_ms)
        self._remove(removal)
        self._high_watermark = max(self._high_watermark, offset)
        self._cut(before, now_ms)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except ApiError as error:
            self._write_failed(self, error)
            raise

    def _cut(self, before: int, now_ms: int) -> None:
        end_offset = self.log.end_offset
        self._high_watermark = min(self._high_watermark, end_offset)
        self._fail_waits()  # their offsets will be other records
        if end_offset < before:
            self.timeline.truncated(end_offset, now_ms)
        wake(self)
