"""What the leader of one partition appends: producers' batches, the broker's own, markers.

It checks, writes the log and records the event. The partition then raises the high watermark and
wakes waiters, who may wait for the acknowledgement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from ottla.log.config import LogConfig
from ottla.log.errors import RebuildingError
from ottla.log.log import Log
from ottla.log.staged_append import StagedAppend
from ottla.log.verification import NOT_REQUIRED, Guard
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.check import ON_LOOP, CheckLimits, check_batch
from ottla.records.control import ControlType, write_end_marker
from ottla.records.errors import CorruptBatchError
from ottla.records.header import BatchHeader, Buffer, read_header
from ottla.replica.counts import Counts
from ottla.replica.partition_host import PartitionHost
from ottla.replica.partition_role import PartitionRole
from ottla.replica.refused_batches import RefusedBatches
from ottla.timelines.partition_timeline import Timeline

MAX_DECOMPRESSED_BYTES = 64 << 20
"""Limits a batch's decompressed size, as a small batch may grow to a thousand times its size (see
docs/decisions/batch-checks.md)."""


class AppendResult(NamedTuple):
    """The result of an append, for `Partition.acknowledged`.

    `log_append_time_ms` is -1 if the producer's timestamps stay; `leadership` and `to_all` are
    those of the append.
    """

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    leadership: int
    to_all: bool


class LedPartition(Protocol):
    """The partition; its timeline is opened at the first event."""

    counts: Counts

    def timeline_at(self, now_ms: int) -> Timeline: ...

    def grown(self, now_ms: int) -> None:
        """The leader's log has grown."""


class LeaderAppends:
    """The appends of one partition's leader. Use only from the event loop's thread."""

    __slots__ = ("_host", "_log", "_partition", "_refused", "_role")

    def __init__(
        self, log: Log, role: PartitionRole, host: PartitionHost, partition: LedPartition
    ) -> None:
        self._log = log
        self._role = role
        self._host = host
        self._partition = partition
        self._refused: RefusedBatches | None = None

    def append(
        self,
        records: Buffer | None,
        client_id: str,
        *,
        to_all: bool,
        zstd_allowed: bool = True,
        is_transactional: bool = False,
        guard: Guard | None = None,
        checked: tuple[BatchHeader, Buffer] | None = None,
    ) -> AppendResult:
        """Check and append the records of one Produce request for this partition.

        `to_all`: the producer requires all in-sync replicas (acks=all). `is_transactional`: it has
        a transactional id; `guard` is that of `begin_verification`. Raises ApiError, the error of
        this partition in the response, and LongBatchError if the check would hold the event loop:
        then call `check` in a thread, and this again with its result, `checked`.
        """
        role = self._role
        try:
            if role.leader is None:
                raise ApiError(ErrorCode.not_leader_or_follower)
            if to_all:
                role.check_in_sync()
        except ApiError as error:
            self._note_batch(records, error)
            raise
        config = self._log.config
        if not records:
            raise ApiError(ErrorCode.invalid_record, "the produce request has no records")
        now_ms = self._host.clock.now_ms()
        header, batch = (
            self.check(records, config, now_ms, zstd_allowed, ON_LOOP, None)
            if checked is None
            else checked
        )
        if header.is_transactional and not is_transactional:
            # Written without a transaction, it would block read_committed for ever.
            raise ApiError(
                ErrorCode.transactional_id_authorization_failed,
                "the request has transactional records but no transactional id",
            )
        if self._refused is not None and header.producer_id >= 0:
            self._check_first(header)
        try:
            return self._append(batch, [header], now_ms, client_id, to_all=to_all, guard=guard)
        except RebuildingError:
            raise  # the request tries again, or the producer
        except ApiError as error:
            if error.code is ErrorCode.not_leader_or_follower:
                self._note_batch(records, error)
            if error.code is ErrorCode.out_of_order_sequence_number and self._refused is not None:
                code = self._refused.cause(
                    header.producer_id,
                    header.producer_epoch,
                    header.base_sequence,
                    self._host.clock.monotonic_ms(),
                )
                if code is not None:
                    raise ApiError(code, "an earlier batch of this producer was refused") from error
            raise

    @staticmethod
    def check(
        records: Buffer,
        config: LogConfig,
        now_ms: int,
        zstd_allowed: bool,
        at_once: CheckLimits | None,
        pause: Callable[[], None] | None,
    ) -> tuple[BatchHeader, Buffer]:
        """The header and the bytes to store: see `check_batch`. Also for a thread."""
        return check_batch(
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
            at_once=at_once,
            pause=pause,
        )

    def stage(self, header: BatchHeader, batch: Buffer) -> StagedAppend | None:
        """Writes a long batch in steps before `append`; None if another broker leads."""
        if self._role.leader is None:
            return None
        return StagedAppend(self._log, header, batch, self._host.clock.now_ms())

    def _check_first(self, header: BatchHeader) -> None:
        """Raise ApiError, the error of an earlier batch that was refused, if this one would be the
        first that the log knows of its producer.
        """
        assert self._refused is not None
        producer_id = header.producer_id
        known = self._log.producers.producers.get(producer_id)
        if known is not None and known.batches:
            return
        code = self._refused.comes_first(
            producer_id,
            header.producer_epoch,
            header.base_sequence,
            self._host.clock.monotonic_ms(),
        )
        if code is not None:
            raise ApiError(code, "an earlier batch of this producer was refused")

    def came_early(self, refused: RefusedBatches) -> None:
        """These batches were refused before this broker had the partition."""
        self._refused = refused

    def _note_batch(self, records: Buffer | None, error: ApiError) -> None:
        try:
            refused = read_header(records or b"")
        except CorruptBatchError:
            return  # it would be refused in any case
        self._note_refusal(
            refused.producer_id, refused.producer_epoch, refused.base_sequence, error
        )

    def _note_refusal(
        self, producer_id: int, producer_epoch: int, sequence: int, error: ApiError
    ) -> None:
        if producer_id >= 0:
            if self._refused is None:
                self._refused = RefusedBatches()
            now_ms = self._host.clock.monotonic_ms()
            self._refused.add(producer_id, producer_epoch, sequence, error.code, now_ms)

    def begin_verification(
        self, producer_id: int, producer_epoch: int, sequence: int, *, version_2: bool
    ) -> Guard | None:
        """See `ProducerState.begin_verification`; also raises NOT_LEADER_OR_FOLLOWER."""
        try:
            self._role.leading()
            producers = self._log.producers
        except ApiError as error:
            self._note_refusal(producer_id, producer_epoch, sequence, error)
            raise
        return producers.begin_verification(
            producer_id,
            producer_epoch,
            sequence,
            version_2=version_2,
            now_ms=self._host.clock.now_ms(),
        )

    def check_own(self, leadership: int) -> None:
        """Raises ApiError where `append_own` would refuse any batch now: NOT_LEADER_OR_FOLLOWER,
        NOT_ENOUGH_REPLICAS.
        """
        self._role.check_leadership(leadership)
        self._role.check_in_sync()

    def append_own(
        self,
        batch: bytes,
        headers: Sequence[BatchHeader],
        now_ms: int,
        leadership: int,
        *,
        guard: Guard | None = NOT_REQUIRED,
        transaction_version: int = 0,
    ) -> AppendResult:
        """Append a batch that the broker itself built (a coordinator's), for all replicas.

        `guard` is for a transaction's batch, `transaction_version` for a marker. Raises ApiError:
        NOT_LEADER_OR_FOLLOWER if `leadership` is not the current one; NOT_ENOUGH_REPLICAS;
        KAFKA_STORAGE_ERROR; the refusals of `ProducerState`.
        """
        self.check_own(leadership)
        appended = self._append(
            batch,
            headers,
            now_ms,
            "",
            to_all=True,
            guard=guard,
            is_own=True,
            transaction_version=transaction_version,
        )
        if self._role.is_alone:
            # Only these append transaction markers; else only the high watermark moves later.
            self._log.high_watermark_moved(self._log.end_offset)
        return appended

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        is_commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
    ) -> AppendResult:
        """Append the marker that ends the producer's transaction, if it has one here.

        Raises ApiError as `append_own`; INVALID_PRODUCER_EPOCH and TRANSACTION_COORDINATOR_FENCED
        tell the coordinator to give up.
        """
        now_ms = self._host.clock.now_ms()
        kind = ControlType.commit if is_commit else ControlType.abort
        batch = write_end_marker(kind, producer_id, producer_epoch, coordinator_epoch, now_ms)
        return self.append_own(
            batch,
            [read_header(batch)],
            now_ms,
            self._role.leadership,
            transaction_version=transaction_version,
        )

    def _append(
        self,
        records: Buffer,
        headers: Sequence[BatchHeader],
        now_ms: int,
        client_id: str,
        *,
        to_all: bool,
        guard: Guard | None = None,
        is_own: bool = False,
        transaction_version: int = 0,
    ) -> AppendResult:
        log, role, partition = self._log, self._role, self._partition
        # A coordinator decided earlier than it appends; others' events are between.
        noted_ms = self._host.clock.now_ms() if is_own else now_ms
        # Opened before the append, so that it starts with the previous state.
        timeline = partition.timeline_at(noted_ms)
        try:
            appended = log.append(
                records,
                headers,
                leader_epoch=role.leader_epoch,
                now_ms=now_ms,
                guard=guard,
                is_own=is_own,
                transaction_version=transaction_version,
            )
        except ApiError as error:
            self._host.write_failed(partition, error)
            raise
        if not appended.is_duplicate:
            partition.counts.add(headers)
            timeline.appended(
                appended.first_offset,
                appended.last_offset,
                noted_ms,
                client_id,
                headers[0].producer_id,
                len(headers) == 1 and not headers[0].is_transactional,
            )
            partition.grown(noted_ms)
        return AppendResult(
            appended.first_offset,
            appended.last_offset,
            appended.append_time_ms,
            log.start_offset,
            role.leadership,
            to_all,
        )
