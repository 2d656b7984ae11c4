"""What a fetch finds in one partition, and which replica a consumer should rather read from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ottla.broker.held_partition import NO_EPOCH, HeldPartition, Role
from ottla.broker.waiting import wake
from ottla.log.file_range import EMPTY, FileRange, RangeRead
from ottla.log.lookup import Search, max_timestamp_searches, timestamp_searches
from ottla.log.page_cache import ReadBuffers
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replication.leader import Follower, Leader

NO_OFFSET: Final = -1
NO_REPLICA: Final = -1


class Read(NamedTuple):
    """What a fetch finds in one partition; the data lies in the file until it is read."""

    partition: HeldPartition | None
    range: FileRange
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    error_code: ErrorCode = ErrorCode.none
    diverging_epoch: tuple[int, int] | None = None
    preferred_replica: int = NO_REPLICA
    """The broker that the consumer should rather fetch from (KIP-392)."""
    rests: bool = False
    """The reader has all that it may have, until the partition wakes its waiters."""

    @property
    def size_bytes(self) -> int:
        return self.range.size_bytes

    def begin(self, buffers: ReadBuffers) -> memoryview | RangeRead:
        """Its data, as far as it is in the page cache; see `FileRange.begin`."""
        if self.partition is not None:
            self.partition.counts.bytes_out += self.range.size_bytes
        return self.range.begin(buffers)


def refused_read(code: ErrorCode) -> Read:
    """The answer for a partition that cannot be read."""
    return Read(None, EMPTY, NO_OFFSET, NO_OFFSET, NO_OFFSET, code)


def rack_aware_replica(
    leader: Leader, rack: str, racks: Mapping[int, str | None], offset: int
) -> int:
    """The in-sync replica in the consumer's rack that holds `offset` and is furthest;
    NO_REPLICA where that is the leader or there is none (Kafka's RackAwareReplicaSelector).
    """
    if not rack or racks.get(leader.broker_id) == rack:
        return NO_REPLICA
    near = [
        (follower.end_offset, follower.caught_up_ms, broker_id)
        for broker_id, follower in leader.followers.items()
        if broker_id in leader.state.isr
        and racks.get(broker_id) == rack
        and 0 <= follower.start_offset <= offset <= follower.end_offset
    ]
    return max(near)[2] if near else NO_REPLICA


class ReadPartition(HeldPartition):
    """The fetch road's end: what consumers and followers read."""

    __slots__ = ()

    def read(
        self,
        offset: int,
        *,
        max_bytes: int,
        min_one_batch: bool,
        leader_epoch: int = NO_EPOCH,
        last_fetched_epoch: int = NO_EPOCH,
        committed_only: bool = False,
        follower: Follower | None = None,
        noted: bool = False,
        leader_only: bool = True,
        wait: bool = True,
    ) -> Read:
        """Where the batches from `offset` on lie, at most `max_bytes` of them.

        A `follower` reads to the log's end and thereby holds all before `offset`, unless this was
        `noted` before; a consumer reads what is committed, from a follower too if not `leader_only`
        (KIP-392). Raises ApiError: OFFSET_OUT_OF_RANGE, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH,
        NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR; where it is not to `wait` for the disk,
        NotCachedError.
        """
        if leader_epoch != NO_EPOCH:
            self.check_leader_epoch(leader_epoch)
        if self._leader is None and (leader_only or self.role is Role.NONE):
            raise ApiError(ErrorCode.not_leader_or_follower)
        if follower is not None:
            self._check_replica(follower.broker_id, leader_epoch)
        log = self.log
        if last_fetched_epoch != NO_EPOCH:
            diverging = self._divergence(offset, last_fetched_epoch)
            if diverging is not None:
                stable = self.last_stable_offset
                if follower is not None and not noted and 0 <= diverging[1] < offset:
                    now_ms = self._clock.now_ms()
                    self.timeline.diverged(follower.broker_id, diverging[1], offset, now_ms)
                return Read(
                    self,
                    EMPTY,
                    self.high_watermark,
                    stable,
                    log.start_offset,
                    diverging_epoch=diverging,
                )
        high_watermark, stable = self.high_watermark, log.last_stable_offset
        stable = stable if stable < high_watermark else high_watermark
        if follower is not None:
            up_to_offset = log.end_offset
        else:
            up_to_offset = stable if committed_only else high_watermark
        found = log.read(
            offset,
            max_bytes=max_bytes,
            up_to_offset=up_to_offset,
            min_one_batch=min_one_batch,
            wait=wait,
        )
        if follower is not None and not noted:
            self._fetched(follower, offset)
            high_watermark, stable = self.high_watermark, self.last_stable_offset
        rests = offset >= up_to_offset and (follower is None or self._rests(follower, offset))
        return Read(self, found, high_watermark, stable, log.start_offset, rests=rests)

    def _rests(self, follower: Follower, offset: int) -> bool:
        """Nothing is to be decided by another fetch of this follower: neither has the high
        watermark to move, nor has it to join the in-sync set.
        """
        leader = self.leader
        return leader.high_watermark == offset and follower.broker_id in leader.state.isr

    def _check_replica(self, broker_id: int, leader_epoch: int) -> None:
        if broker_id in self.leader.followers:
            return
        # The epoch is right but the replica is unknown here: it got the delta first (as Kafka).
        raise ApiError(
            ErrorCode.not_leader_or_follower
            if leader_epoch == NO_EPOCH
            else ErrorCode.unknown_leader_epoch
        )

    def _divergence(self, offset: int, last_fetched_epoch: int) -> tuple[int, int] | None:
        """Where a reader parted that has read what this log does not hold (KIP-595).

        Raises ApiError OFFSET_OUT_OF_RANGE where its epoch is not known here.
        """
        epoch, end_offset = self.end_of_epoch(last_fetched_epoch)
        if epoch == NO_EPOCH or end_offset < 0:
            raise ApiError(ErrorCode.offset_out_of_range)
        if epoch < last_fetched_epoch or end_offset < offset:
            return epoch, end_offset
        return None

    def _fetched(self, follower: Follower, offset: int) -> None:
        leader = self.leader
        progress = leader.followers[follower.broker_id]
        before, start_before = progress.end_offset, progress.start_offset
        if not leader.fetched(
            follower,
            offset,
            follower.start_offset,
            end_offset=self.log.end_offset,
            now_ms=self._clock.monotonic_ms(),
        ):
            # An earlier life of that broker; the delta about the later one is on its way (KIP-903).
            raise ApiError(ErrorCode.not_leader_or_follower)
        if offset != before:
            self.timeline.replicated(follower.broker_id, offset, self._clock.now_ms())
        if leader.high_watermark < self.log.end_offset:
            # Even where this one stands still: another may have died meanwhile and be waited for
            # no more.
            self._advance()
        if follower.start_offset != start_before:
            wake(self)
        if leader.may_join(follower.broker_id):
            self._eligible(self)

    def end_for(self, committed_only: bool) -> int:
        """The offset behind the last that a consumer may see."""
        return self.last_stable_offset if committed_only else self.high_watermark

    def check_latest_known(self, end: int) -> None:
        """Raises ApiError OFFSET_NOT_AVAILABLE while a new leader cannot tell what its forerunner
        had committed: an answer now could go back (KIP-207).
        """
        if not self._alone and self.leader.epoch_start > end:
            raise ApiError(ErrorCode.offset_not_available)

    def epoch_of(self, offset: int) -> int:
        """The leader epoch in which the record at `offset` was written; -1 where unknown."""
        return self.log.epochs.epoch_of(offset)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to `epoch`, and where it ended; (-1, -1) where unknown."""
        if epoch == self.leader_epoch:
            return epoch, self.log.end_offset
        return self.log.epochs.end_of(epoch, self.log.end_offset)

    def searches(self, timestamp_ms: int | None) -> Iterator[Search]:
        """The searches for the first record whose timestamp is at least `timestamp_ms`; None: for
        the one with the largest timestamp (KIP-734). See `log.lookup`.
        """
        if timestamp_ms is None:
            return max_timestamp_searches(self.log)
        return timestamp_searches(self.log, timestamp_ms)
