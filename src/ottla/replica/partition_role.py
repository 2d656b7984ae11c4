"""This broker's role in one partition: the leader, the ISR and the high watermark.

`replication.leader` decides while this broker leads. If it is the only replica, the high watermark
is the log's end, and there is nothing to decide.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, Protocol
from uuid import UUID

from ottla.controller.image import NO_LEADER, PartitionState
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replica.partition_host import PartitionHost
from ottla.replication.leader import InSyncChange, Leader

NO_EPOCH: Final = -1


class Role(Enum):
    """This broker's role in the partition."""

    LEADER = "leader"
    FOLLOWER = "follower"
    NONE = "none"
    """There is no known leader, or this broker holds no replica."""


class LeaderEpochs(Protocol):
    """As `ottla.log.leader_epochs.LeaderEpochs`."""

    def begin(self, epoch: int, start_offset: int) -> None:
        """An epoch starts at this offset."""


class ReplicaLog(Protocol):
    """The parts of the log that a role needs; `ottla.log.log.Log` is one."""

    start_offset: int
    end_offset: int

    @property
    def epochs(self) -> LeaderEpochs: ...


class PartitionRole:
    """Starts without a role; `update` assigns one. The caller notifies others of changes.

    The attributes are read-only for others, except `min_insync_replicas`.
    """

    __slots__ = (
        "_high_watermark",
        "_host",
        "_index",
        "_log",
        "_topic_id",
        "is_alone",
        "kind",
        "leader",
        "leader_epoch",
        "leadership",
        "min_insync_replicas",
        "state",
    )

    def __init__(
        self, topic_id: UUID, index: int, log: ReplicaLog, host: PartitionHost, high_watermark: int
    ) -> None:
        """`high_watermark` is the checkpoint's."""
        self.kind = Role.NONE
        self.state: PartitionState | None = None
        self.leader: Leader | None = None
        """The leader's decisions, while this broker leads."""
        self.leader_epoch = NO_EPOCH
        self.leadership = 0
        """How often this broker has stopped leading. Its appends in an earlier leadership may have
        been truncated since, and their offsets may belong to other records."""
        self.is_alone = False
        """This broker leads and is the only replica."""
        self.min_insync_replicas = 1
        self._topic_id = topic_id
        self._index = index
        self._log = log
        self._host = host
        self._high_watermark = max(log.start_offset, min(high_watermark, log.end_offset))

    @property
    def high_watermark(self) -> int:
        """The offset after the last committed record, as far as this broker knows."""
        return self._log.end_offset if self.is_alone else self._high_watermark

    def update(self, state: PartitionState) -> bool:
        """Take the role that the controller assigns; False if `state` is not newer."""
        known = self.state
        if known is not None and (
            state == known
            or (state.leader_epoch, state.partition_epoch)
            < (known.leader_epoch, known.partition_epoch)
        ):
            return False
        own = self._host.broker_id
        is_replica = own in state.replicas
        self.state, self.leader_epoch = state, state.leader_epoch
        if is_replica and state.leader == own:
            self._lead(state)
        else:
            follows = is_replica and state.leader != NO_LEADER
            self.stop_leading(Role.FOLLOWER if follows else Role.NONE)
        return True

    def _lead(self, state: PartitionState) -> None:
        high_watermark, end_offset = self.high_watermark, self._log.end_offset
        now_ms = self._host.clock.monotonic_ms()
        if len(state.replicas) > 1:
            # Followers ask for the ends of epochs before this one has any record (KIP-101).
            self._log.epochs.begin(state.leader_epoch, end_offset)
        if self.leader is None:
            self.leader = Leader(
                self._topic_id,
                self._index,
                state,
                end_offset=end_offset,
                high_watermark=high_watermark,
                now_ms=now_ms,
                lag_max_ms=self._host.lag_max_ms,
                live_epoch=self._host.live_epoch,
            )
        else:
            self.leader.high_watermark = high_watermark
            self.leader.update(state, end_offset=end_offset, now_ms=now_ms)
        self.kind = Role.LEADER
        self._high_watermark = high_watermark
        self.is_alone = self.leader.is_alone

    def stop_leading(self, kind: Role) -> None:
        """Another broker leads, or none."""
        self._high_watermark = self.high_watermark
        self.kind = kind
        self.leadership += self.leader is not None
        self.leader, self.is_alone = None, False

    def leading(self) -> Leader:
        """The leader's decisions. Raises ApiError NOT_LEADER_OR_FOLLOWER if another one leads."""
        if self.leader is None:
            raise ApiError(ErrorCode.not_leader_or_follower)
        return self.leader

    def check_leadership(self, leadership: int) -> None:
        """Raise ApiError NOT_LEADER_OR_FOLLOWER if another broker leads, or has led since that
        leadership: its offsets may belong to other records."""
        if self.leader is None or leadership != self.leadership:
            raise ApiError(ErrorCode.not_leader_or_follower)

    def check_leader_epoch(self, epoch: int) -> None:
        """Raise ApiError if the client knows another epoch than this one (KIP-320)."""
        if epoch == NO_EPOCH or epoch == self.leader_epoch:
            return
        if epoch < self.leader_epoch:
            raise ApiError(ErrorCode.fenced_leader_epoch)
        raise ApiError(ErrorCode.unknown_leader_epoch)

    def check_replica(self, broker_id: int, leader_epoch: int) -> None:
        """Raise ApiError if this broker does not lead, or the other one is not a replica."""
        if broker_id in self.leading().followers:
            return
        # The epoch is right but the replica is unknown here: it got the delta first (as in Kafka).
        raise ApiError(
            ErrorCode.not_leader_or_follower
            if leader_epoch == NO_EPOCH
            else ErrorCode.unknown_leader_epoch
        )

    def check_in_sync(self) -> None:
        """Raise ApiError NOT_ENOUGH_REPLICAS if an append with acks=all would reach too few
        replicas; NOT_LEADER_OR_FOLLOWER."""
        leader = self.leading()
        in_sync = len(leader.state.isr)
        if in_sync < self._min_in_sync(leader):
            raise ApiError(
                ErrorCode.not_enough_replicas,
                f"in sync: {in_sync}; min.insync.replicas is {self.min_insync_replicas}",
            )

    def check_still_in_sync(self) -> None:
        """The same check after the append: NOT_ENOUGH_REPLICAS_AFTER_APPEND."""
        leader = self.leading()
        if len(leader.maximal_isr) < self._min_in_sync(leader):
            raise ApiError(ErrorCode.not_enough_replicas_after_append)

    def _min_in_sync(self, leader: Leader) -> int:
        """min.insync.replicas, but at most the number of replicas (KIP-966)."""
        return min(self.min_insync_replicas, len(leader.followers) + 1)

    def advance(self) -> bool:
        """Raise the high watermark as far as the ISR allows; True if it moved."""
        leader = self.leader
        if leader is None or not leader.advance(
            self._log.end_offset, self._host.clock.monotonic_ms(), self.min_insync_replicas
        ):
            return False
        self._high_watermark = leader.high_watermark
        return True

    def follow(self, leader_high_watermark: int) -> bool:
        """Follow the leader's high watermark, up to the log's end; True if it moved."""
        high_watermark = min(leader_high_watermark, self._log.end_offset)
        if high_watermark <= self._high_watermark:
            return False
        self._high_watermark = high_watermark
        return True

    def truncated(self) -> None:
        """The log was truncated; or it was emptied, and starts at another offset."""
        at_most = min(self._high_watermark, self._log.end_offset)
        self._high_watermark = max(at_most, self._log.start_offset)

    def in_sync_change(self, now_ms: int) -> InSyncChange | None:
        """The ISR to propose to the controller now; `now_ms` on the monotonic clock."""
        if self.leader is None or self.is_alone:
            return None
        return self.leader.in_sync_change(self._log.end_offset, now_ms)

    def in_sync_answered(
        self, code: ErrorCode, state: PartitionState | None, change: InSyncChange | None
    ) -> bool:
        """The controller's answer to a proposal; True if the ISR has changed."""
        if self.leader is None or not self.leader.answered(code, state, change):
            return False
        self.state = self.leader.state
        return True
