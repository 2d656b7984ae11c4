"""One partition as this broker leads it: the log, the high watermark, and who waits for either.

The produce road ends here (`append`), the fetch road begins to read here (`read`). One broker alone
is the whole in-sync set, so the high watermark is the log's end as soon as an append returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from ottla.broker.clock import Clock
from ottla.broker.group_flush import GroupFlush
from ottla.broker.journey import Journey
from ottla.broker.waiting import Waiter, wake
from ottla.journey.timeline import Timeline
from ottla.log.file_range import EMPTY, FileRange
from ottla.log.flush import FlushTask
from ottla.log.log import Log
from ottla.log.lookup import FoundTimestamp, find_max_timestamp, find_timestamp
from ottla.log.producer_state import Producer
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.check import check_batches
from ottla.records.header import BatchHeader, Buffer
from ottla.records.recompress import recompress

MOST_UNPACKED_BYTES = 64 << 20
"""What a batch may hold where it must be unpacked to be stored (a compacted topic, another
compression): that happens on the event loop, and a small batch may unpack to a thousand times its
size."""
IN_SYNC = 1
"""One broker alone is the whole in-sync set."""
NO_EPOCH = -1
NO_OFFSET = -1
HIGH_WATERMARK = -1
"""DeleteRecords' word for all that is committed."""


class Appended(NamedTuple):
    """`log_append_time_ms` is -1 where the producer's own times stay."""

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int


class Read(NamedTuple):
    """What a fetch finds in one partition; the data lies in the file until `data` is called."""

    partition: Partition | None
    range: FileRange
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    error_code: ErrorCode = ErrorCode.none
    diverging_epoch: tuple[int, int] | None = None

    @property
    def size_bytes(self) -> int:
        return self.range.size_bytes

    def data(self) -> bytes:
        if self.partition is not None:
            self.partition.counts.bytes_out += self.range.size_bytes
        return self.range.read()


def refused_read(code: ErrorCode) -> Read:
    """The answer for a partition that cannot be read."""
    return Read(None, EMPTY, NO_OFFSET, NO_OFFSET, NO_OFFSET, code)


@dataclass(slots=True)
class Counts:
    """What went through since the start; for the metrics."""

    bytes_in: int = 0
    bytes_out: int = 0
    batches_in: int = 0
    records_in: int = 0


class Partition:
    """See the module's text. For the event loop's thread alone."""

    __slots__ = (
        "_after_crash",
        "_clock",
        "_flush",
        "_journey",
        "_timeline",
        "counts",
        "flushed_ms",
        "index",
        "leader_epoch",
        "log",
        "min_insync_replicas",
        "topic",
        "topic_id",
        "waiters",
    )

    def __init__(
        self,
        topic: str,
        index: int,
        topic_id: UUID,
        log: Log,
        *,
        leader_epoch: int,
        clock: Clock,
        journey: Journey,
        after_crash: bool = False,
    ) -> None:
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.log = log
        self.leader_epoch = leader_epoch
        self.min_insync_replicas = 1
        self.waiters: set[Waiter] | None = None
        self.counts = Counts()
        self.flushed_ms = clock.monotonic_ms()
        """When the log was last known to be on the disk, on the monotonic clock."""
        self._clock = clock
        self._flush: GroupFlush[FlushTask] | None = None
        self._journey = journey
        self._after_crash = after_crash
        self._timeline: Timeline | None = None

    @property
    def timeline(self) -> Timeline:
        """What happens here and when; opened with the first thing that happens."""
        if self._timeline is None:
            self._timeline = self._journey.open(
                self.log, high_watermark=self.high_watermark, after_crash=self._after_crash
            )
        return self._timeline

    def closed(self) -> None:
        """The partition is deleted."""
        if self._timeline is not None:
            self._journey.forget(self._timeline)

    @property
    def high_watermark(self) -> int:
        """The offset behind the last committed record."""
        return self.log.end_offset

    def append(
        self, records: Buffer | None, client_id: str, *, zstd_allowed: bool = True
    ) -> Appended:
        """Appends what one Produce request brings for this partition, after checking it.

        Raises ApiError, the error of this partition in the response.
        """
        config = self.log.config
        if not records:
            raise ApiError(ErrorCode.invalid_record, "a produce request without records")
        now_ms = self._clock.now_ms()
        headers = check_batches(
            records,
            max_message_bytes=config.max_message_bytes,
            now_ms=now_ms,
            timestamp_type=config.stamped_type,
            timestamp_before_max_ms=config.timestamp_before_max_ms,
            timestamp_after_max_ms=config.timestamp_after_max_ms,
            keys_required=config.cleanup_compact,
            zstd_allowed=zstd_allowed,
            limit_bytes=MOST_UNPACKED_BYTES,
        )
        if headers[0].is_transactional:
            # As Kafka: written without a transaction it would hold back read_committed for ever.
            raise ApiError(
                ErrorCode.transactional_id_authorization_failed, "transactions are not served yet"
            )
        wanted = config.stored_compression
        if wanted is not None and wanted != headers[0].compression:
            headers[0], records = recompress(
                headers[0],
                records,
                wanted,
                level=config.compression_level,
                limit_bytes=MOST_UNPACKED_BYTES,
            )
        return self._append(records, headers, now_ms, client_id)

    def check_in_sync(self) -> None:
        """Raises ApiError where an append for all replicas would reach too few of them."""
        if self.min_insync_replicas > IN_SYNC:
            raise ApiError(
                ErrorCode.not_enough_replicas,
                f"{IN_SYNC} replica is in sync, min.insync.replicas is {self.min_insync_replicas}",
            )

    def append_own(self, batch: bytes, headers: Sequence[BatchHeader], now_ms: int) -> Appended:
        """Appends a batch that the broker itself built (a coordinator's)."""
        return self._append(batch, headers, now_ms, "")

    def _append(
        self, records: Buffer, headers: Sequence[BatchHeader], now_ms: int, client_id: str
    ) -> Appended:
        log, timeline = self.log, self.timeline
        appended = log.append(records, headers, leader_epoch=self.leader_epoch, now_ms=now_ms)
        if not appended.is_duplicate:
            counts = self.counts
            for header in headers:
                counts.bytes_in += header.size_bytes
                counts.records_in += header.count
                counts.batches_in += 1
            timeline.appended(
                appended.first_offset,
                appended.last_offset,
                now_ms,
                client_id,
                headers[0].producer_id,
            )
            timeline.high_watermark(log.end_offset, now_ms)
            wake(self)
        return Appended(
            appended.first_offset,
            appended.last_offset,
            appended.append_time_ms,
            log.start_offset,
        )

    @property
    def settled_offset(self) -> int:
        """The offset behind the last record that may be acknowledged now, without a wait."""
        log = self.log
        if log.unflushed_records < log.config.flush_messages:
            return self.high_watermark
        return min(self.high_watermark, log.recovery_point)

    async def settled(self, last_offset: int, by_all: bool, timeout_ms: int) -> None:
        """Returns when an append may be acknowledged: on disk where flush.messages asks for it,
        and, `by_all`, on all in-sync replicas.

        Raises ApiError KAFKA_STORAGE_ERROR.
        """
        log = self.log
        if log.unflushed_records < log.config.flush_messages:
            return
        if self._flush is None:
            self._flush = GroupFlush(self._begin_flush, self._end_flush)
        await self._flush.reached(last_offset + 1)

    def _begin_flush(self) -> FlushTask:
        return FlushTask(self.log)

    def _end_flush(self, task: FlushTask) -> int:
        task.apply()
        return self.log.recovery_point

    def read(
        self,
        offset: int,
        *,
        max_bytes: int,
        min_one_batch: bool,
        leader_epoch: int = NO_EPOCH,
        last_fetched_epoch: int = NO_EPOCH,
        committed_only: bool = False,
    ) -> Read:
        """Where the batches from `offset` on lie, at most `max_bytes` of them.

        Raises ApiError: OFFSET_OUT_OF_RANGE, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH,
        KAFKA_STORAGE_ERROR.
        """
        self.check_leader_epoch(leader_epoch)
        log = self.log
        stable = log.last_stable_offset
        if last_fetched_epoch != NO_EPOCH:
            epoch, end_offset = log.epochs.end_of(last_fetched_epoch, log.end_offset)
            if epoch != NO_EPOCH and (epoch < last_fetched_epoch or end_offset < offset):
                # The client has read what this log does not hold (KIP-595).
                diverging = (epoch, end_offset)
                return Read(
                    self, EMPTY, log.end_offset, stable, log.start_offset, diverging_epoch=diverging
                )
        found = log.read(
            offset,
            max_bytes=max_bytes,
            up_to_offset=stable if committed_only else log.end_offset,
            min_one_batch=min_one_batch,
        )
        return Read(self, found, log.end_offset, stable, log.start_offset)

    def end_for(self, committed_only: bool) -> int:
        """The offset behind the last that a consumer may see."""
        return self.log.last_stable_offset if committed_only else self.high_watermark

    def check_leader_epoch(self, epoch: int) -> None:
        """Raises ApiError where the client knows another epoch than this one (KIP-320)."""
        if epoch == NO_EPOCH or epoch == self.leader_epoch:
            return
        if epoch < self.leader_epoch:
            raise ApiError(ErrorCode.fenced_leader_epoch)
        raise ApiError(ErrorCode.unknown_leader_epoch)

    def epoch_of(self, offset: int) -> int:
        """The leader epoch in which the record at `offset` was written; -1 where unknown."""
        return self.log.epochs.epoch_of(offset)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to `epoch`, and where it ended; (-1, -1) where unknown."""
        if epoch == self.leader_epoch:
            return epoch, self.log.end_offset
        return self.log.epochs.end_of(epoch, self.log.end_offset)

    def find_timestamp(self, timestamp_ms: int) -> FoundTimestamp | None:
        """The first record whose timestamp is at least `timestamp_ms`."""
        return find_timestamp(self.log, timestamp_ms)

    def find_max_timestamp(self) -> FoundTimestamp | None:
        """The record with the largest timestamp (KIP-734)."""
        return find_max_timestamp(self.log)

    def delete_before(self, offset: int) -> int:
        """Moves the log's start to `offset`, or to the high watermark for -1; returns the start.

        Raises ApiError: OFFSET_OUT_OF_RANGE; POLICY_VIOLATION where the topic is compacted only.
        """
        if not self.log.config.cleanup_delete:
            raise ApiError(
                ErrorCode.policy_violation, "records of a topic that is only compacted stay"
            )
        wanted = self.high_watermark if offset == HIGH_WATERMARK else offset
        if not 0 <= wanted <= self.high_watermark:
            raise ApiError(ErrorCode.offset_out_of_range)
        if wanted > self.log.start_offset:
            self.log.advance_start(wanted)
            self.timeline.started_at(wanted, self._clock.now_ms(), "DeleteRecords")
            wake(self)
        return self.log.start_offset

    def active_producers(self) -> list[Producer]:
        """The producers known, with an unexpired state."""
        return list(self.log.producers.producers.values())
