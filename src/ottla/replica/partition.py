"""One partition on this broker.

It connects its parts: it records a change in one of them in the timeline and reports it to
waiters.

    role              leader, ISR, high watermark                        partition_role.py
    reader            what consumers and replicas read                  partition_reader.py
    acknowledgement   waits for the disk or the high watermark          acknowledgement.py
    follower          appends and truncations of a follower             partition_follower.py

The produce path ends in `append`; the fetch path reads here. A replica's fetch is its
acknowledgement. If this broker is the only replica, the high watermark is the log's end as soon as
an append returns, without a decision.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from ottla.controller.image import PartitionState
from ottla.log.flush import FlushTask
from ottla.log.log import Log
from ottla.log.producer_state import Producer
from ottla.log.verification import NOT_REQUIRED, Guard
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.check import check_batch
from ottla.records.control import ControlType, write_end_marker
from ottla.records.header import BatchHeader, Buffer, read_header
from ottla.replica.acknowledgement import Acknowledgement, wants_flush
from ottla.replica.partition_follower import PartitionFollower
from ottla.replica.partition_host import PartitionHost
from ottla.replica.partition_reader import PartitionReader, Read
from ottla.replica.partition_role import NO_EPOCH, PartitionRole, Role
from ottla.replication.leader import FetchingReplica, InSyncChange, Leader
from ottla.runtime.waiting import Change, Watcher, wake
from ottla.timelines.partition_timeline import Timeline

MAX_DECOMPRESSED_BYTES = 64 << 20
"""Limits a batch's decompressed size: it is checked on the event loop (see
docs/decisions/batch-checks.md), and a small batch may grow to a thousand times its size."""
HIGH_WATERMARK = -1
"""The offset in DeleteRecords that means all committed records."""


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


@dataclass(slots=True)
class Counts:
    """Counts since the start; for the metrics."""

    bytes_in: int = 0
    bytes_out: int = 0
    batches_in: int = 0
    records_in: int = 0


class Partition:
    """See the module's text. Use only from the event loop's thread."""

    __slots__ = (
        "_acknowledgement",
        "_after_crash",
        "_follower",
        "_host",
        "_role",
        "_timeline",
        "counts",
        "flushed_ms",
        "index",
        "log",
        "reader",
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
        host: PartitionHost,
        *,
        high_watermark: int = 0,
        after_crash: bool = False,
    ) -> None:
        """Starts without a role: `update` assigns one. `high_watermark` is the checkpoint's."""
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.log = log
        self.waiters: dict[Watcher, None] | None = None
        self.counts = Counts()
        self.flushed_ms = host.clock.monotonic_ms()
        """When the log was last known to be on disk, on the monotonic clock."""
        self._host = host
        self._role = PartitionRole(topic_id, index, log, host, high_watermark)
        self.reader = PartitionReader(log, self._role)
        # Most partitions never need these.
        self._acknowledgement: Acknowledgement | None = None
        self._follower: PartitionFollower | None = None
        self._timeline: Timeline | None = None
        self._after_crash = after_crash

    @property
    def timeline(self) -> Timeline:
        """The history of this partition; opened at the first event."""
        if self._timeline is None:
            self._timeline = self._host.timelines.open(
                self.log, high_watermark=self.high_watermark, after_crash=self._after_crash
            )
        return self._timeline

    # The role.

    def update(self, state: PartitionState, now_ms: int) -> Role:
        """Take the role that the controller assigns; an older state is ignored."""
        role = self._role
        if not role.update(state):
            return role.kind
        if role.leader is None:
            self._fail_waits()
        elif not role.is_alone:
            self._advance()
        elif self._acknowledgement is not None:
            self._acknowledgement.high_watermark_moved(self.log.end_offset)
        if len(state.replicas) > 1:
            self._note_in_sync(state, now_ms)
        wake(self)
        return role.kind

    def closed(self) -> None:
        """The partition is deleted, or this broker no longer holds it. Requests that already hold
        a reference are refused from here on."""
        self._role.stop_leading(Role.NONE)
        self._fail_waits()
        if self._timeline is not None:
            self._host.timelines.forget(self._timeline)

    @property
    def role(self) -> Role:
        return self._role.kind

    @property
    def state(self) -> PartitionState | None:
        return self._role.state

    @property
    def leader_epoch(self) -> int:
        return self._role.leader_epoch

    @property
    def leadership(self) -> int:
        """See `PartitionRole.leadership`."""
        return self._role.leadership

    @property
    def leader(self) -> Leader:
        """The leader's decisions. Raises ApiError NOT_LEADER_OR_FOLLOWER if another one leads."""
        return self._role.leading()

    @property
    def leads_others(self) -> bool:
        """True if this broker leads and there are followers."""
        return self._role.leader is not None and not self._role.is_alone

    @property
    def min_insync_replicas(self) -> int:
        return self._role.min_insync_replicas

    @min_insync_replicas.setter
    def min_insync_replicas(self, number: int) -> None:
        self._role.min_insync_replicas = number

    @property
    def high_watermark(self) -> int:
        """The offset after the last committed record, as far as this broker knows."""
        return self._role.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """Where read_committed ends; see `Log.last_stable_offset`."""
        return self.log.last_stable_offset(self._role.high_watermark)

    def check_leads(self) -> None:
        """Raise ApiError NOT_LEADER_OR_FOLLOWER if another broker leads."""
        self._role.leading()

    def check_leader_epoch(self, epoch: int) -> None:
        """Raise ApiError if the client knows another epoch than this one (KIP-320)."""
        self._role.check_leader_epoch(epoch)

    def in_sync_change(self, now_ms: int) -> InSyncChange | None:
        """The ISR to propose to the controller now; `now_ms` on the monotonic clock."""
        return self._role.in_sync_change(now_ms)

    def in_sync_answered(
        self, code: ErrorCode, state: PartitionState | None, change: InSyncChange | None = None
    ) -> None:
        """The controller's answer to a proposal; without an error, `state` is what it wrote."""
        if self._role.in_sync_answered(code, state, change):
            if code is ErrorCode.none:
                self._note_in_sync(self.leader.state, self._host.clock.now_ms())
            self._advance()

    def _note_in_sync(self, state: PartitionState, now_ms: int) -> None:
        self.timeline.in_sync(
            state.leader,
            state.leader_epoch,
            state.isr,
            self.log.end_offset,
            now_ms,
            state.partition_epoch,
        )

    def _advance(self) -> None:
        """Raise the high watermark as far as the ISR allows, and wake waiters."""
        if not self._role.advance():
            return
        high_watermark = self._role.high_watermark
        self.log.high_watermark_moved(high_watermark)
        self.timeline.high_watermark(high_watermark, self._host.clock.now_ms())
        if self._acknowledgement is not None:
            self._acknowledgement.high_watermark_moved(high_watermark)
        wake(self, Change.COMMITTED)

    # The leader's appends and their acknowledgement.

    def append(
        self,
        records: Buffer | None,
        client_id: str,
        *,
        to_all: bool,
        zstd_allowed: bool = True,
        is_transactional: bool = False,
        guard: Guard | None = None,
    ) -> AppendResult:
        """Check and append the records of one Produce request for this partition.

        `to_all`: the producer requires all in-sync replicas (acks=all). `is_transactional`: it has
        a transactional id; `guard` is that of `begin_verification`. Raises ApiError, the error of
        this partition in the response.
        """
        role = self._role
        if role.leader is None:
            raise ApiError(ErrorCode.not_leader_or_follower)
        if to_all:
            role.check_in_sync()
        config = self.log.config
        if not records:
            raise ApiError(ErrorCode.invalid_record, "the produce request has no records")
        now_ms = self._host.clock.now_ms()
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
        if header.is_transactional and not is_transactional:
            # Written without a transaction, it would block read_committed for ever.
            raise ApiError(
                ErrorCode.transactional_id_authorization_failed,
                "the request has transactional records but no transactional id",
            )
        return self._append(batch, [header], now_ms, client_id, to_all=to_all, guard=guard)

    def begin_verification(
        self, producer_id: int, producer_epoch: int, sequence: int, *, version_2: bool
    ) -> Guard | None:
        """See `ProducerState.begin_verification`; also raises NOT_LEADER_OR_FOLLOWER."""
        self._role.leading()
        return self.log.producers.begin_verification(
            producer_id,
            producer_epoch,
            sequence,
            version_2=version_2,
            now_ms=self._host.clock.now_ms(),
        )

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
        self._role.check_leadership(leadership)
        self._role.check_in_sync()
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
            self.log.high_watermark_moved(self.log.end_offset)
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
        log, role = self.log, self._role
        # Opened before the append, so that it starts with the previous state.
        timeline = self.timeline
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
            self._host.write_failed(self, error)
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
            if role.is_alone:
                timeline.high_watermark(log.end_offset, now_ms)
                wake(self)
            else:
                self._advance()
                wake(self, Change.APPENDED)
        return AppendResult(
            appended.first_offset,
            appended.last_offset,
            appended.append_time_ms,
            log.start_offset,
            role.leadership,
            to_all,
        )

    def _count(self, headers: Sequence[BatchHeader]) -> None:
        counts = self.counts
        for header in headers:
            counts.bytes_in += header.size_bytes
            counts.records_in += header.count
            counts.batches_in += 1

    @property
    def acknowledged_offset(self) -> int:
        """The offset after the last record that can be acknowledged now, without a wait."""
        high_watermark = self._role.high_watermark
        if not wants_flush(self.log):
            return high_watermark
        return min(high_watermark, self.log.recovery_point)

    async def acknowledged(self, appended: AppendResult, timeout_ms: int) -> None:
        """Return when the append may be acknowledged: on disk if flush.messages requires it, and on
        all in-sync replicas if its producer does.

        Raises ApiError: KAFKA_STORAGE_ERROR; REQUEST_TIMED_OUT; NOT_LEADER_OR_FOLLOWER if this
        broker has stopped leading; NOT_ENOUGH_REPLICAS_AFTER_APPEND.
        """
        if appended.to_all:
            await self.acknowledged_to(appended.last_offset, appended.leadership, timeout_ms)
        elif wants_flush(self.log):
            await self._waits().by_leader(appended.last_offset, appended.leadership, timeout_ms)

    async def acknowledged_to(self, last_offset: int, leadership: int, timeout_ms: int) -> None:
        """Return when everything up to `last_offset` is on all in-sync replicas, and on disk if
        flush.messages requires it; `leadership` is that in which it was appended or read.

        Raises ApiError, as `acknowledged`.
        """
        await self._waits().by_all(last_offset, leadership, timeout_ms)

    def _waits(self) -> Acknowledgement:
        if self._acknowledgement is None:
            self._acknowledgement = Acknowledgement(
                self.log,
                self._role,
                self._host.clock,
                lambda error: self._host.write_failed(self, error),
            )
        return self._acknowledgement

    def _fail_waits(self) -> None:
        if self._acknowledgement is not None:
            self._acknowledgement.fail(ApiError(ErrorCode.not_leader_or_follower))

    # Replicas fetch from this leader.

    def read_for_replica(
        self,
        replica: FetchingReplica,
        offset: int,
        *,
        start_offset: int,
        max_bytes: int,
        min_one_batch: bool,
        leader_epoch: int = NO_EPOCH,
        last_fetched_epoch: int = NO_EPOCH,
        is_repeated: bool = False,
        wait: bool = True,
    ) -> Read:
        """Read for a follower that has all records from `start_offset` to `offset`.

        This position is its acknowledgement, unless the same request has given it before
        (`is_repeated`). Raises as `PartitionReader.read`, and NOT_LEADER_OR_FOLLOWER if the fetch
        is from an earlier incarnation of that broker.
        """
        role = self._role
        role.check_leader_epoch(leader_epoch)
        role.check_replica(replica.broker_id, leader_epoch)
        read = self.reader.read(
            offset,
            max_bytes=max_bytes,
            min_one_batch=min_one_batch,
            last_fetched_epoch=last_fetched_epoch,
            to_log_end=True,
            wait=wait,
        )
        if read.diverging_epoch is not None:
            diverged_at = read.diverging_epoch[1]
            if not is_repeated and 0 <= diverged_at < offset:
                now_ms = self._host.clock.now_ms()
                self.timeline.diverged(replica.broker_id, diverged_at, offset, now_ms)
            return read
        if not is_repeated:
            self._replicated(replica, offset, start_offset)
        leader = role.leading()
        # Another fetch from here could change the ISR or the high watermark.
        decides = leader.high_watermark != offset or replica.broker_id not in leader.state.isr
        high_watermark = role.high_watermark
        return Read(
            read.range,
            high_watermark,
            self.log.last_stable_offset(high_watermark),
            read.log_start_offset,
            read.at_end and not decides,
        )

    def _replicated(self, replica: FetchingReplica, offset: int, start_offset: int) -> None:
        """A follower's log holds `start_offset` to `offset`."""
        leader, clock = self._role.leading(), self._host.clock
        progress = leader.followers[replica.broker_id]
        offset_before, start_before = progress.end_offset, progress.start_offset
        if not leader.fetched(
            replica,
            offset,
            start_offset,
            end_offset=self.log.end_offset,
            now_ms=clock.monotonic_ms(),
        ):
            # An earlier incarnation of that broker: the delta about the later one has not arrived
            # yet (KIP-903).
            raise ApiError(ErrorCode.not_leader_or_follower)
        if offset != offset_before:
            self.timeline.replicated(replica.broker_id, offset, clock.now_ms())
        if leader.high_watermark < self.log.end_offset:
            # Even if this follower has not moved: a slower one may have died.
            self._advance()
        if start_offset != start_before:
            wake(self)
        if leader.may_join(replica.broker_id):
            self._host.eligible(self)

    def was_idle(self, broker_id: int, seen_ms: int) -> None:
        """A follower that had all records fetched again at `seen_ms` (monotonic)."""
        if self._role.leader is not None:
            self._role.leader.was_idle(broker_id, seen_ms)

    # This follower copies from its leader.

    def append_fetched(
        self,
        records: Buffer,
        headers: Sequence[BatchHeader],
        *,
        leader_high_watermark: int,
        leader_log_start: int,
        now_ms: int,
    ) -> None:
        """See `PartitionFollower.append`."""
        with self._writing():
            moved = self._as_follower().append(
                records,
                headers,
                leader_high_watermark=leader_high_watermark,
                leader_log_start=leader_log_start,
                now_ms=now_ms,
            )
        self._count(headers)
        if moved:
            # Consumers of a follower only read committed records.
            wake(self)

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Truncate to what the leader has. Raises ApiError KAFKA_STORAGE_ERROR."""
        with self._writing():
            self._as_follower().truncate_to(offset, now_ms)
        self._on_truncated()

    def truncate_fully(self, offset: int, now_ms: int) -> None:
        """Empty the log and start it at `offset`. Raises ApiError KAFKA_STORAGE_ERROR."""
        with self._writing():
            self._as_follower().truncate_fully(offset, now_ms)
        self._on_truncated()

    def _on_truncated(self) -> None:
        self._fail_waits()  # other records will have their offsets
        wake(self)

    def _as_follower(self) -> PartitionFollower:
        if self._follower is None:
            self._follower = PartitionFollower(self.log, self._role, self, self._host.remove)
        return self._follower

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except ApiError as error:
            self._host.write_failed(self, error)
            raise

    # Maintenance and administration.

    async def flush(self) -> None:
        """Sync the log, in a thread. Raises ApiError KAFKA_STORAGE_ERROR."""
        with self._writing():
            task = FlushTask(self.log)
            await asyncio.to_thread(task.run)
        task.apply()
        self.flushed_ms = self._host.clock.monotonic_ms()

    @property
    def low_watermark(self) -> int:
        """The lowest log start of all live replicas; -1 if one is not known yet (KIP-107)."""
        return self.leader.low_watermark(self.log.start_offset)

    def delete_before(self, offset: int) -> int:
        """Move the log start to `offset`, or to the high watermark for -1; returns the new start.

        Raises ApiError: OFFSET_OUT_OF_RANGE; POLICY_VIOLATION if the topic is only compacted.
        """
        self.check_leads()
        if not self.log.config.cleanup_delete:
            raise ApiError(
                ErrorCode.policy_violation, "DeleteRecords requires cleanup.policy=delete"
            )
        high_watermark = self.high_watermark
        new_start = high_watermark if offset == HIGH_WATERMARK else offset
        if not 0 <= new_start <= high_watermark:
            raise ApiError(ErrorCode.offset_out_of_range)
        if new_start > self.log.start_offset:
            self.log.advance_start(new_start)
            self.timeline.started_at(new_start, self._host.clock.now_ms(), "DeleteRecords")
            wake(self)
        return self.log.start_offset

    def active_producers(self) -> list[Producer]:
        """The known producers whose state has not expired."""
        return list(self.log.producers.producers.values())
