"""The decisions of a partition's leader: the high watermark, the ISR, and the ISR to propose.

Pure: the time and the log's end are passed in. Sources: Kafka's Partition and Replica; KIP-497
(ISR changes are proposed to the controller), KIP-903 (with broker epochs), KIP-207.

The rule that protects acknowledged records: while a proposal is in flight it is unknown whether the
old or the new ISR is valid, so the high watermark waits for both (the *maximal* ISR).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from ottla.controller.image import PartitionState
from ottla.protocol.errors import ErrorCode

UNKNOWN_OFFSET: Final = -1
NEVER_MS: Final = -(2**62)
REFUSED_PAUSE_MS: Final = 500
"""The wait after a refused proposal before the next one that adds a follower."""
NO_BROKER_EPOCH: Final = -1
"""The epoch of a follower that does not send it (Fetch before v15)."""

LiveEpoch: TypeAlias = Callable[[int], int | None]
"""Maps a broker's number to its epoch; None if it is not live."""

_AWAIT_DELTA: Final = frozenset({
    ErrorCode.new_leader_elected,
    ErrorCode.fenced_leader_epoch,
    ErrorCode.invalid_update_version,
    ErrorCode.invalid_request,
    ErrorCode.unknown_topic_id,
    ErrorCode.unknown_topic_or_partition,
})  # fmt: skip
"""The controller has newer state. The maximal ISR stays until the delta arrives."""
_TAKEN_BACK: Final = frozenset({ErrorCode.ineligible_replica, ErrorCode.operation_not_attempted})
"""The controller has certainly changed nothing."""


def leaves_open(code: ErrorCode) -> bool:
    """Whether to send a proposal with this answer again, because it may have been or may yet be
    applied (Partition.handleAlterPartitionError). This includes NOT_CONTROLLER: the current
    controller may know more.
    """
    return code is not ErrorCode.none and code not in _AWAIT_DELTA and code not in _TAKEN_BACK


@dataclass(frozen=True, slots=True)
class InSyncChange:
    """A proposed ISR, for AlterPartition."""

    topic_id: UUID
    index: int
    leader_epoch: int
    partition_epoch: int
    """The version that the change builds on; the controller refuses it if it has a later one."""
    isr: tuple[tuple[int, int], ...]
    """Broker and broker epoch; -1 if the epoch is unknown."""


class FetchingReplica(NamedTuple):
    """The broker that sent a follower's fetch (KIP-903)."""

    broker_id: int
    broker_epoch: int = NO_BROKER_EPOCH


@dataclass(slots=True)
class Progress:
    """What the leader knows about one follower (Kafka's ReplicaState)."""

    end_offset: int = UNKNOWN_OFFSET
    """Its last fetch offset: it has all records before it."""
    start_offset: int = UNKNOWN_OFFSET
    caught_up_ms: int = NEVER_MS
    """When it last had all of the leader's records."""
    fetched_ms: int = NEVER_MS
    leader_end_then: int = UNKNOWN_OFFSET
    """The leader's log end at the last fetch."""
    broker_epoch: int = NO_BROKER_EPOCH

    def fetched(
        self, offset: int, start_offset: int, leader_end: int, broker_epoch: int, now_ms: int
    ) -> None:
        """A fetch from `offset`. A follower that reads as fast as the leader writes never reaches
        its current end. It counts as caught up as of the last fetch once it reaches the end of
        that time.
        """
        if offset >= leader_end:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif offset >= self.leader_end_then >= 0:
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.end_offset, self.start_offset = offset, start_offset
        self.leader_end_then, self.fetched_ms = leader_end, now_ms
        self.broker_epoch = broker_epoch

    def is_caught_up(self, leader_end: int, now_ms: int, lag_max_ms: int) -> bool:
        return self.end_offset == leader_end or now_ms - self.caught_up_ms <= lag_max_ms


class Leader:
    """The decisions for one leader epoch after another, while this broker leads.

    `high_watermark` never goes back. `lag_max_ms` is replica.lag.time.max.ms.
    """

    __slots__ = (
        "_joins_from_ms",
        "_proposed_ms",
        "_resend",
        "broker_id",
        "epoch_start",
        "followers",
        "high_watermark",
        "in_flight",
        "index",
        "lag_max_ms",
        "live_epoch",
        "maximal_isr",
        "state",
        "topic_id",
    )

    def __init__(
        self,
        topic_id: UUID,
        index: int,
        state: PartitionState,
        *,
        end_offset: int,
        high_watermark: int,
        now_ms: int,
        lag_max_ms: int,
        live_epoch: LiveEpoch,
    ) -> None:
        self.topic_id = topic_id
        self.index = index
        self.state = state
        self.broker_id = state.leader
        self.high_watermark = high_watermark
        self.epoch_start = end_offset
        """Where this leader epoch starts: records before it may not be committed."""
        self.lag_max_ms = lag_max_ms
        self.live_epoch = live_epoch
        self.in_flight: InSyncChange | None = None
        self.maximal_isr = state.isr
        """The ISR and, while a proposal is under way, the brokers that it adds (KIP-497)."""
        self._resend = False
        self._proposed_ms = self._joins_from_ms = NEVER_MS
        # In-sync replicas get the whole lag time to fetch.
        self.followers = {
            each: Progress(caught_up_ms=now_ms if each in state.isr else NEVER_MS)
            for each in state.replicas
            if each != self.broker_id
        }

    @property
    def is_alone(self) -> bool:
        """True if there is no other replica: the high watermark is then the log's end."""
        return not self.followers

    def update(self, state: PartitionState, *, end_offset: int, now_ms: int) -> bool:
        """Apply the controller's newer state of a partition that this broker still leads.

        Returns True if it was newer. Older or equal states are ignored.
        """
        assert state.leader == self.broker_id
        known = self.state
        if (state.leader_epoch, state.partition_epoch) <= (
            known.leader_epoch,
            known.partition_epoch,
        ) and state.replicas == known.replicas:
            return False
        if state.leader_epoch < known.leader_epoch:
            return False
        for each in [each for each in self.followers if each not in state.replicas]:
            del self.followers[each]
        for each in state.replicas:
            if each != self.broker_id and each not in self.followers:
                self.followers[each] = Progress(
                    caught_up_ms=now_ms if each in state.isr else NEVER_MS
                )
        if state.leader_epoch > known.leader_epoch:
            self.epoch_start = end_offset
            for broker_id, follower in self.followers.items():
                # In sync by the controller's decision; else it must catch up again.
                in_sync = broker_id in state.isr
                follower.caught_up_ms = now_ms if in_sync else NEVER_MS
                follower.fetched_ms = now_ms if in_sync else NEVER_MS
                follower.leader_end_then = end_offset
        if state.partition_epoch > known.partition_epoch or state.leader_epoch > known.leader_epoch:
            self._commit(state)
        else:
            self.state = state
        return True

    def fetched(
        self,
        replica: FetchingReplica,
        offset: int,
        start_offset: int,
        *,
        end_offset: int,
        now_ms: int,
    ) -> bool:
        """A follower fetches from `offset`: it has all records before. False if it is not a replica
        or the fetch is from an earlier incarnation than the known one.
        """
        progress = self.followers.get(replica.broker_id)
        if progress is None:
            return False
        epoch = replica.broker_epoch
        if NO_BROKER_EPOCH != epoch < progress.broker_epoch:
            return False
        progress.fetched(offset, start_offset, end_offset, epoch, now_ms)
        return True

    def was_idle(self, broker_id: int, seen_ms: int) -> None:
        """A follower with all records has gone on fetching until `seen_ms`: fetches that change
        nothing are not reported one by one.
        """
        progress = self.followers.get(broker_id)
        if progress is not None and broker_id in self.state.isr:
            progress.caught_up_ms = max(progress.caught_up_ms, seen_ms)
            progress.fetched_ms = max(progress.fetched_ms, seen_ms)

    def advance(self, end_offset: int, now_ms: int, min_isr: int) -> bool:
        """Raise the high watermark as far as the maximal ISR allows; True if it moved.

        It does not move while the ISR has fewer than `min_isr` replicas (KIP-966). It also waits
        for a follower that is about to join, which could otherwise never catch up with it.
        """
        reached = end_offset
        if self.followers:
            if len(self.state.isr) < min(min_isr, len(self.state.replicas)):
                return False
            for broker_id, follower in self.followers.items():
                if follower.end_offset < reached and (
                    broker_id in self.maximal_isr
                    or (
                        follower.is_caught_up(end_offset, now_ms, self.lag_max_ms)
                        and self._is_eligible(broker_id, follower)
                    )
                ):
                    reached = follower.end_offset
        if reached <= self.high_watermark:
            return False
        self.high_watermark = reached
        return True

    def in_sync_change(self, end_offset: int, now_ms: int) -> InSyncChange | None:
        """The ISR to propose now: caught-up followers join, lagging ones leave. None if nothing
        changes or a proposal is in flight.
        """
        if not self.followers:
            return None
        if self.in_flight is not None:
            if self._resend:
                self._resend = False
                return self.in_flight
            return None
        isr = tuple(
            each
            for each in self.state.isr
            if each == self.broker_id or not self._lags(each, end_offset, now_ms)
        )
        joins: tuple[int, ...] = ()
        if now_ms >= self._joins_from_ms:
            # Kafka adds followers only at a fetch (maybeExpandIsr). A disconnected one would join
            # and leave in turn while the high watermark does not move (simulation seed 227).
            joins = tuple(
                each
                for each, follower in self.followers.items()
                if self.may_join(each) and now_ms - follower.fetched_ms <= self.lag_max_ms
            )
        proposed = isr + joins
        if proposed == self.state.isr:
            return None
        self.in_flight = InSyncChange(
            self.topic_id,
            self.index,
            self.state.leader_epoch,
            self.state.partition_epoch,
            tuple((each, self._broker_epoch(each)) for each in proposed),
        )
        self._proposed_ms = now_ms
        known = self.state.isr
        self.maximal_isr = (*known, *(each for each in proposed if each not in known))
        return self.in_flight

    def may_join(self, broker_id: int) -> bool:
        """Whether this follower may be proposed now: it is live and has all committed records and
        all from before this epoch.
        """
        follower = self.followers.get(broker_id)
        return (
            follower is not None
            and self.in_flight is None
            and broker_id not in self.state.isr
            and follower.end_offset >= self.high_watermark
            and follower.end_offset >= self.epoch_start
            and self._is_eligible(broker_id, follower)
        )

    def answered(
        self, code: ErrorCode, state: PartitionState | None, change: InSyncChange | None = None
    ) -> bool:
        """Apply the controller's answer to a proposal; True if the ISR has changed.

        Without an error `state` is what the controller wrote. After an error that leaves open
        whether the change was made (a timeout, a lost connection) the same proposal is sent again.
        `change` is the proposal: a late error must not revert a later one.

        After a refusal no follower may join for `REFUSED_PAUSE_MS`. Kafka has no pause, because its
        leaders know which brokers are shutting down; here such a follower would be proposed at each
        of its fetches.
        """
        if code is ErrorCode.none:
            if (
                state is None
                or state.leader_epoch != self.state.leader_epoch
                or state.partition_epoch <= self.state.partition_epoch
            ):
                return False  # a delta came first
            self._commit(state)
            return True
        if self.in_flight is None or (change is not None and change != self.in_flight):
            return False
        if code in _TAKEN_BACK:
            self.in_flight = None
            self._resend = False
            self._joins_from_ms = self._proposed_ms + REFUSED_PAUSE_MS
            self.maximal_isr = self.state.isr
            return True
        self._resend = leaves_open(code)
        return False

    def low_watermark(self, start_offset: int) -> int:
        """The lowest log start of all live replicas (KIP-107); -1 if one is not known yet."""
        starts = [
            follower.start_offset
            for broker_id, follower in self.followers.items()
            if self.live_epoch(broker_id) is not None
        ]
        return min([start_offset, *starts])

    def _commit(self, state: PartitionState) -> None:
        self.state = state
        self.in_flight = None
        self._resend = False
        self._joins_from_ms = NEVER_MS
        self.maximal_isr = state.isr

    def _lags(self, broker_id: int, end_offset: int, now_ms: int) -> bool:
        follower = self.followers.get(broker_id)
        return follower is None or not follower.is_caught_up(end_offset, now_ms, self.lag_max_ms)

    def _is_eligible(self, broker_id: int, follower: Progress) -> bool:
        """Live, and the incarnation that fetched is the registered one (KIP-903)."""
        epoch = self.live_epoch(broker_id)
        return epoch is not None and (
            follower.broker_epoch == NO_BROKER_EPOCH or follower.broker_epoch == epoch
        )

    def _broker_epoch(self, broker_id: int) -> int:
        if broker_id == self.broker_id:
            epoch = self.live_epoch(broker_id)
            return NO_BROKER_EPOCH if epoch is None else epoch
        return self.followers[broker_id].broker_epoch
