"""One partition as this broker holds it: the log, its role, the high watermark, and who waits.

The produce road ends here (`append`), the fetch road begins to read here (`read`); a follower's
fetch is its acknowledgement. `replication.leader` decides. Where this broker is the only replica,
the high watermark is the log's end as soon as an append returns, and nothing is decided.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from ottla.broker.held_partition import Counts, Role
from ottla.broker.partition_follow import FollowingPartition
from ottla.broker.partition_read import Read, ReadPartition, refused_read
from ottla.broker.waiting import Change, wake
from ottla.log.flush import FlushTask
from ottla.log.producer_state import Producer
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.check import check_batch
from ottla.records.header import BatchHeader, Buffer
from ottla.replication.leader import Leader

__all__ = ("Appended", "Counts", "Partition", "Read", "Role", "refused_read")

MAX_DECOMPRESSED_BYTES = 64 << 20
"""What a batch may hold: it is decompressed on the event loop to be checked, and a small batch may
grow to a thousand times its size."""
HIGH_WATERMARK = -1
"""DeleteRecords' word for all that is committed."""


class Appended(NamedTuple):
    """What was appended, to be acknowledged by `Partition.acknowledged`.

    `log_append_time_ms` is -1 where the producer's own times stay; `leadership` and `to_all` are
    those of the append.
    """

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    leadership: int
    to_all: bool


class Partition(FollowingPartition, ReadPartition):
    """See the module's text. For the event loop's thread alone."""

    __slots__ = ()

    def append(
        self,
        records: Buffer | None,
        client_id: str,
        *,
        to_all: bool,
        zstd_allowed: bool = True,
    ) -> Appended:
        """Appends what one Produce request brings for this partition, after checking it.

        `to_all`: the producer wants all in-sync replicas to have it (acks=all). Raises ApiError,
        the error of this partition in the response.
        """
        if self._leader is None:
            raise ApiError(ErrorCode.not_leader_or_follower)
        if to_all:
            self._check_in_sync(self._leader)
        config = self.log.config
        if not records:
            raise ApiError(ErrorCode.invalid_record, "a produce request without records")
        now_ms = self._clock.now_ms()
        header, batch = check_batch(
            records,
            max_message_bytes=config.max_message_bytes,
            now_ms=now_ms,
            timestamp_type=config.stamped_type,
            timestamp_before_max_ms=config.timestamp_before_max_ms,
            timestamp_after_max_ms=config.timestamp_after_max_ms,
            keys_required=config.cleanup_compact,
            zstd_allowed=zstd_allowed,
            compression=config.stored_compression,
            compression_level=config.compression_level,
            limit_bytes=MAX_DECOMPRESSED_BYTES,
        )
        if header.is_transactional:
            # As Kafka: written without a transaction it would hold back read_committed for ever.
            raise ApiError(
                ErrorCode.transactional_id_authorization_failed, "transactions are not served yet"
            )
        return self._append(batch, [header], now_ms, client_id, to_all=to_all)

    def _check_in_sync(self, leader: Leader) -> None:
        """Raises ApiError where an append for all replicas would reach too few of them."""
        in_sync, least = len(leader.state.isr), self._least_in_sync(leader)
        if in_sync < least:
            raise ApiError(
                ErrorCode.not_enough_replicas,
                f"in sync: {in_sync}; min.insync.replicas is {self.min_insync_replicas}",
            )

    def append_own(
        self, batch: bytes, headers: Sequence[BatchHeader], now_ms: int, leadership: int
    ) -> Appended:
        """Appends a batch that the broker itself built (a coordinator's), for all replicas.

        Raises ApiError: NOT_LEADER_OR_FOLLOWER where `leadership` is not the present one;
        NOT_ENOUGH_REPLICAS; KAFKA_STORAGE_ERROR.
        """
        self._check_leadership(leadership)
        self._check_in_sync(self.leader)
        return self._append(batch, headers, now_ms, "", to_all=True)

    def _append(
        self,
        records: Buffer,
        headers: Sequence[BatchHeader],
        now_ms: int,
        client_id: str,
        *,
        to_all: bool,
    ) -> Appended:
        log, timeline = self.log, self.timeline
        try:
            appended = log.append(records, headers, leader_epoch=self.leader_epoch, now_ms=now_ms)
        except ApiError as error:
            self._write_failed(self, error)
            raise
        if not appended.is_duplicate:
            self._count(headers)
            timeline.appended(
                appended.first_offset,
                appended.last_offset,
                now_ms,
                client_id,
                headers[0].producer_id,
            )
            if self._alone:
                timeline.high_watermark(log.end_offset, now_ms)
                wake(self)
            else:
                self._advance()
                wake(self, Change.APPENDED)
        return Appended(
            appended.first_offset,
            appended.last_offset,
            appended.append_time_ms,
            log.start_offset,
            self.leadership,
            to_all,
        )

    @property
    def settled_offset(self) -> int:
        """The offset behind the last record that may be acknowledged now, without a wait."""
        log = self.log
        if log.unflushed_records < log.config.flush_messages:
            return self.high_watermark
        return min(self.high_watermark, log.recovery_point)

    async def acknowledged(self, appended: Appended, timeout_ms: int) -> None:
        """Returns when the append may be acknowledged: on disk where flush.messages asks for it,
        and on all in-sync replicas where its producer does.

        Raises ApiError: KAFKA_STORAGE_ERROR; REQUEST_TIMED_OUT; NOT_LEADER_OR_FOLLOWER where this
        broker ceased to lead meanwhile; NOT_ENOUGH_REPLICAS_AFTER_APPEND.
        """
        if appended.to_all:
            await self.acknowledged_to(appended.last_offset, appended.leadership, timeout_ms)
        elif self._wants_flush:
            self._check_leadership(appended.leadership)
            await self.acknowledgement.flushed(appended.last_offset, timeout_ms)

    async def acknowledged_to(self, last_offset: int, leadership: int, timeout_ms: int) -> None:
        """Returns when all up to `last_offset` is acknowledged by all in-sync replicas, and on disk
        where flush.messages asks for it; `leadership` is that in which it was appended or read.

        Raises ApiError, as `acknowledged`.
        """
        self._check_leadership(leadership)
        if self._wants_flush:
            began_ms = self._clock.monotonic_ms()
            await self.acknowledgement.flushed(last_offset, timeout_ms)
            self._check_leadership(leadership)
            timeout_ms -= self._clock.monotonic_ms() - began_ms
        if self._alone:
            return
        if self.leader.high_watermark <= last_offset:
            await self.acknowledgement.committed(last_offset, timeout_ms)
            self._check_leadership(leadership)
        leader = self.leader
        if len(leader.maximal_isr) < self._least_in_sync(leader):
            raise ApiError(ErrorCode.not_enough_replicas_after_append)

    @property
    def _wants_flush(self) -> bool:
        log = self.log
        return log.unflushed_records >= log.config.flush_messages

    def _check_leadership(self, leadership: int) -> None:
        """Raises ApiError where another broker leads, or led since that leadership: other records
        may have its offsets."""
        if self._leader is None or leadership != self.leadership:
            raise ApiError(ErrorCode.not_leader_or_follower)

    async def flush(self) -> None:
        """Syncs the log, in a thread. Raises ApiError KAFKA_STORAGE_ERROR."""
        try:
            task = FlushTask(self.log)
            await asyncio.to_thread(task.run)
        except ApiError as error:
            self._write_failed(self, error)
            raise
        task.apply()
        self.flushed_ms = self._clock.monotonic_ms()

    @property
    def low_watermark(self) -> int:
        """The lowest log start of all living replicas; -1 where one has not told (KIP-107)."""
        return self.leader.low_watermark(self.log.start_offset)

    def delete_before(self, offset: int) -> int:
        """Moves the log's start to `offset`, or to the high watermark for -1; returns the start.

        Raises ApiError: OFFSET_OUT_OF_RANGE; POLICY_VIOLATION where the topic is compacted only.
        """
        self.check_leads()
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
