"""One partition as this broker holds it: its log, its role, the high watermark, the in-sync set.

`replication.leader` decides; here its decisions meet the log, the journey and who waits. Where this
broker is the only replica the high watermark is the log's end, and nothing is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final
from uuid import UUID

from ottla.broker.acknowledgement import Acknowledgement
from ottla.broker.clock import Clock
from ottla.broker.journey import Journey
from ottla.broker.waiting import Change, Watcher, wake
from ottla.controller.image import NO_LEADER, PartitionState
from ottla.journey.timeline import Timeline
from ottla.log.log import Log
from ottla.log.removal import Removal
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.header import BatchHeader
from ottla.replication.leader import InSyncChange, Leader, LiveEpoch

NO_EPOCH: Final = -1
REPLICA_LAG_MAX_MS: Final = 30_000
"""Kafka's default of replica.lag.time.max.ms."""


class Role(Enum):
    """What this broker is to the partition."""

    LEADER = "leader"
    FOLLOWER = "follower"
    NONE = "none"
    """No leader is known, or no replica is here."""


@dataclass(slots=True)
class Counts:
    """What went through since the start; for the metrics."""

    bytes_in: int = 0
    bytes_out: int = 0
    batches_in: int = 0
    records_in: int = 0


class HeldPartition:
    """See the module's text. For the event loop's thread alone."""

    __slots__ = (
        "_acknowledgement",
        "_after_crash",
        "_alone",
        "_clock",
        "_eligible",
        "_high_watermark",
        "_journey",
        "_lag_max_ms",
        "_leader",
        "_live_epoch",
        "_remove",
        "_timeline",
        "_write_failed",
        "broker_id",
        "counts",
        "flushed_ms",
        "index",
        "leader_epoch",
        "leadership",
        "log",
        "min_insync_replicas",
        "role",
        "state",
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
        broker_id: int,
        clock: Clock,
        journey: Journey,
        write_failed: Callable[[HeldPartition, ApiError], None],
        high_watermark: int = 0,
        lag_max_ms: int = REPLICA_LAG_MAX_MS,
        live_epoch: LiveEpoch = lambda broker_id: -1,
        eligible: Callable[[HeldPartition], None] = lambda partition: None,
        remove: Callable[[Removal], None] = Removal.run,
        after_crash: bool = False,
    ) -> None:
        """Begins without a role: `update` gives it one.

        `write_failed` is called with each write that failed (see `storage_failure`); `live_epoch`
        gives the epoch of a broker that is registered now; `eligible` is called when a follower may
        join the in-sync set; `remove` takes files that a cut has renamed, to remove them after
        their delay, off the loop (a crash before that leaves them to the next start).
        """
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.log = log
        self.broker_id = broker_id
        self.role = Role.NONE
        self.state: PartitionState | None = None
        self.leader_epoch = NO_EPOCH
        self.leadership = 0
        """Counts how often this broker ceased to lead. What it appended in an earlier leadership
        may be cut off since, and other records may have those offsets."""
        self.min_insync_replicas = 1
        self.waiters: dict[Watcher, None] | None = None
        self.counts = Counts()
        self.flushed_ms = clock.monotonic_ms()
        """When the log was last known to be on the disk, on the monotonic clock."""
        self._clock = clock
        self._write_failed = write_failed
        self._acknowledgement: Acknowledgement | None = None
        self._journey = journey
        self._after_crash = after_crash
        self._timeline: Timeline | None = None
        self._leader: Leader | None = None
        self._alone = False
        """This broker leads and is the only replica."""
        self._high_watermark = max(log.start_offset, min(high_watermark, log.end_offset))
        self._lag_max_ms = lag_max_ms
        self._live_epoch = live_epoch
        self._eligible = eligible
        self._remove = remove

    @property
    def timeline(self) -> Timeline:
        """What happens here and when; opened with the first thing that happens."""
        if self._timeline is None:
            self._timeline = self._journey.open(
                self.log, high_watermark=self.high_watermark, after_crash=self._after_crash
            )
        return self._timeline

    def closed(self) -> None:
        """The partition is deleted, or this broker no longer holds it. Requests that found it
        before are refused from here on."""
        self._lead_not(Role.NONE, self.high_watermark)
        if self._timeline is not None:
            self._journey.forget(self._timeline)

    @property
    def high_watermark(self) -> int:
        """The offset behind the last committed record, as far as this broker knows."""
        return self.log.end_offset if self._alone else self._high_watermark

    @property
    def last_stable_offset(self) -> int:
        """Where read_committed ends: the oldest open transaction, within what is committed."""
        return min(self.log.last_stable_offset, self.high_watermark)

    def update(self, state: PartitionState, now_ms: int) -> Role:
        """The controller's word on this partition; what is older than the known is passed over."""
        known = self.state
        if known is not None and (
            state == known
            or (state.leader_epoch, state.partition_epoch)
            < (known.leader_epoch, known.partition_epoch)
        ):
            return self.role
        high_watermark = self.high_watermark
        held = self.broker_id in state.replicas
        self.state, self.leader_epoch = state, state.leader_epoch
        if held and state.leader == self.broker_id:
            self._lead(state, high_watermark)
        else:
            follows = held and state.leader != NO_LEADER
            self._lead_not(Role.FOLLOWER if follows else Role.NONE, high_watermark)
        if len(state.replicas) > 1:
            self._note_in_sync(state, now_ms)
        wake(self)
        return self.role

    def _lead_not(self, role: Role, high_watermark: int) -> None:
        self.role = role
        self.leadership += self._leader is not None
        self._leader, self._alone = None, False
        self._high_watermark = high_watermark
        self._fail_waits()

    def _lead(self, state: PartitionState, high_watermark: int) -> None:
        log = self.log
        if len(state.replicas) > 1:
            # Followers ask where epochs end before anything is written in this one (KIP-101).
            log.epochs.begin(state.leader_epoch, log.end_offset)
        if self._leader is None:
            self._leader = Leader(
                self.topic_id,
                self.index,
                state,
                end_offset=log.end_offset,
                high_watermark=high_watermark,
                now_ms=self._clock.monotonic_ms(),
                lag_max_ms=self._lag_max_ms,
                live_epoch=self._live_epoch,
            )
        else:
            self._leader.high_watermark = high_watermark
            self._leader.update(state, end_offset=log.end_offset, now_ms=self._clock.monotonic_ms())
        self.role = Role.LEADER
        self._high_watermark = high_watermark
        self._alone = self._leader.is_alone
        if not self._alone:
            self._advance()
        elif self._acknowledgement is not None:
            self._acknowledgement.moved(log.end_offset)

    def _note_in_sync(self, state: PartitionState, now_ms: int) -> None:
        self.timeline.in_sync(
            state.leader,
            state.leader_epoch,
            state.isr,
            self.log.end_offset,
            now_ms,
            state.partition_epoch,
        )

    @property
    def leader(self) -> Leader:
        """The leader's decisions. Raises ApiError NOT_LEADER_OR_FOLLOWER where another leads."""
        if self._leader is None:
            raise ApiError(ErrorCode.not_leader_or_follower)
        return self._leader

    @property
    def leads_others(self) -> bool:
        """This broker leads, and there are followers."""
        return self._leader is not None and not self._alone

    def check_leads(self) -> None:
        """Raises ApiError NOT_LEADER_OR_FOLLOWER where another broker leads."""
        if self._leader is None:
            raise ApiError(ErrorCode.not_leader_or_follower)

    def check_leader_epoch(self, epoch: int) -> None:
        """Raises ApiError where the client knows another epoch than this one (KIP-320)."""
        if epoch == NO_EPOCH or epoch == self.leader_epoch:
            return
        if epoch < self.leader_epoch:
            raise ApiError(ErrorCode.fenced_leader_epoch)
        raise ApiError(ErrorCode.unknown_leader_epoch)

    def _advance(self) -> None:
        """Raises the high watermark where the in-sync set allows it, and wakes who waits for it."""
        leader = self._leader
        if leader is None or not leader.advance(
            self.log.end_offset, self._clock.monotonic_ms(), self.min_insync_replicas
        ):
            return
        self._high_watermark = leader.high_watermark
        self.timeline.high_watermark(leader.high_watermark, self._clock.now_ms())
        if self._acknowledgement is not None:
            self._acknowledgement.moved(leader.high_watermark)
        wake(self, Change.COMMITTED)

    def was_idle(self, broker_id: int, seen_ms: int) -> None:
        """A follower that had all there was fetched at `seen_ms` (monotonic) again."""
        if self._leader is not None:
            self._leader.was_idle(broker_id, seen_ms)

    def in_sync_change(self, now_ms: int) -> InSyncChange | None:
        """What to propose to the controller now; `now_ms` on the monotonic clock."""
        if self._leader is None or self._alone:
            return None
        return self._leader.in_sync_change(self.log.end_offset, now_ms)

    def in_sync_answered(
        self, code: ErrorCode, state: PartitionState | None, change: InSyncChange | None = None
    ) -> None:
        """The controller's answer to a proposal; `state` is what it wrote, with no error."""
        if self._leader is not None and self._leader.answered(code, state, change):
            self.state = self._leader.state
            if code is ErrorCode.none:
                self._note_in_sync(self._leader.state, self._clock.now_ms())
            self._advance()

    def _least_in_sync(self, leader: Leader) -> int:
        """min.insync.replicas, and no more than there are replicas (KIP-966)."""
        return min(self.min_insync_replicas, len(leader.followers) + 1)

    @property
    def acknowledgement(self) -> Acknowledgement:
        """Who waits to acknowledge what; made with the first wait."""
        if self._acknowledgement is None:
            self._acknowledgement = Acknowledgement(
                self.log, lambda error: self._write_failed(self, error)
            )
        return self._acknowledgement

    def _fail_waits(self) -> None:
        if self._acknowledgement is not None:
            self._acknowledgement.fail(ApiError(ErrorCode.not_leader_or_follower))

    def _count(self, headers: Sequence[BatchHeader]) -> None:
        counts = self.counts
        for header in headers:
            counts.bytes_in += header.size_bytes
            counts.records_in += header.count
            counts.batches_in += 1
