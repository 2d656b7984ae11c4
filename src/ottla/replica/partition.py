"""One partition on this broker.

It connects its parts: it records a change in one of them in the timeline and reports it to
waiters.

    role              leader, ISR, high watermark                        partition_role.py
    reader            what consumers and replicas read                  partition_reader.py
    appends           what a leader appends                             leader_appends.py
    acknowledgement   waits for the disk or the high watermark          acknowledgement.py
    follower          appends and truncations of a follower             partition_follower.py

The produce path ends in `appends`; the fetch path reads here. A replica's fetch is its
acknowledgement. If this broker is the only replica, the high watermark is the log's end as soon as
an append returns, without a decision.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

from ottla.controller.image import PartitionState
from ottla.log.flush import FlushTask
from ottla.log.log import Log
from ottla.log.producer_load import ProducerLoad
from ottla.log.producer_state import Producer
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.header import BatchHeader, Buffer
from ottla.replica.acknowledgement import Acknowledgement, wants_flush
from ottla.replica.counts import Counts
from ottla.replica.leader_appends import AppendResult, LeaderAppends
from ottla.replica.partition_follower import PartitionFollower
from ottla.replica.partition_host import PartitionHost
from ottla.replica.partition_reader import PartitionReader, Read
from ottla.replica.partition_role import NO_EPOCH, PartitionRole, Role
from ottla.replication.leader import FetchingReplica, InSyncChange, Leader
from ottla.runtime.waiting import Change, Watcher, wake
from ottla.timelines.partition_timeline import Timeline

HIGH_WATERMARK = -1
"""The offset in DeleteRecords that means all committed records."""


class Partition:
    """A partition's replica on this broker. Use only from the event loop's thread."""

    __slots__ = (
        "_acknowledgement",
        "_after_crash",
        "_appends",
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
        self._appends: LeaderAppends | None = None
        self._follower: PartitionFollower | None = None
        self._timeline: Timeline | None = None
        self._after_crash = after_crash

    @property
    def timeline(self) -> Timeline:
        """The history of this partition; opened at the first event, which happens now."""
        if self._timeline is not None:
            return self._timeline
        return self.timeline_at(self._host.clock.now_ms())

    def timeline_at(self, now_ms: int) -> Timeline:
        """The same for an event whose time was taken before. A history that began after its first
        event would say that the clock was set back.
        """
        if self._timeline is None:
            self._timeline = self._host.timelines.open(
                self.log,
                high_watermark=self.high_watermark,
                now_ms=now_ms,
                after_crash=self._after_crash,
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
        before = self._role.state
        if self._role.in_sync_answered(code, state, change):
            now = self.leader.state
            if code is ErrorCode.none:
                self._note_in_sync(now, self._host.clock.now_ms())
            self._advance()
            if before is not None and not set(before.isr) <= set(now.isr):
                # A fetch that came meanwhile may have read all there is, and would not be read
                # again before the next append (simulation seed 18 with transactions).
                wake(self, Change.LEFT)

    def _note_in_sync(self, state: PartitionState, now_ms: int) -> None:
        self.timeline_at(now_ms).in_sync(
            state.leader,
            state.leader_epoch,
            state.isr,
            self.log.end_offset,
            now_ms,
            state.partition_epoch,
            leads=self._role.leader is not None,
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

    @property
    def appends(self) -> LeaderAppends:
        """What a leader appends."""
        if self._appends is None:
            self._appends = LeaderAppends(self.log, self._role, self._host, self)
        return self._appends

    def grown(self, now_ms: int) -> None:
        """The leader's log has grown: raise the high watermark and wake waiters."""
        if self._role.is_alone:
            self.timeline_at(now_ms).high_watermark(self.log.end_offset, now_ms)
            wake(self)
        else:
            self._advance()
            wake(self, Change.APPENDED)

    @property
    def acknowledged_offset(self) -> int:
        """The offset after the last record that can be acknowledged now, without a wait."""
        high_watermark = self._role.high_watermark
        if not wants_flush(self.log):
            return high_watermark
        return min(high_watermark, self.log.recovery_point)

    def is_acknowledged(self, appended: AppendResult) -> bool:
        """Whether `acknowledged` would return at once: nearly always, if there is one replica."""
        role = self._role
        return (
            (role.is_alone or not appended.to_all)
            and role.leadership == appended.leadership
            and not wants_flush(self.log)
        )

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
            self.reader.stable_if_known(),
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
        self.counts.add(headers)
        if moved:
            # Consumers of a follower only read committed records.
            wake(self)

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Truncate to what the leader has. Raises ApiError KAFKA_STORAGE_ERROR."""
        try:
            with self._writing():
                self._as_follower().truncate_to(offset, now_ms)
        finally:
            self._on_truncated()

    def truncate_fully(self, offset: int, now_ms: int) -> None:
        """Empty the log and start it at `offset`. Raises ApiError KAFKA_STORAGE_ERROR."""
        try:
            with self._writing():
                self._as_follower().truncate_fully(offset, now_ms)
        finally:
            self._on_truncated()

    def _on_truncated(self) -> None:
        self._fail_waits()  # other records will have their offsets
        load = ProducerLoad.begin(self.log)
        if load is not None:
            self._host.load(self, load)
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
        """The known producers whose state has not expired. Raises ApiError as `Log.producers`."""
        return list(self.log.producers.producers.values())
