"""What a fetch reads from one partition, and which replica a consumer should prefer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ottla.log.aborted_transactions import aborted_transactions, find_work
from ottla.log.file_range import EMPTY, FileRange
from ottla.log.log import Log
from ottla.log.lookup import Search, max_timestamp_searches, timestamp_searches
from ottla.log.transaction_index import AbortedTransaction
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replica.partition_role import NO_EPOCH, PartitionRole, Role
from ottla.replication.leader import Leader

NO_OFFSET: Final = -1
NO_REPLICA: Final = -1


class Read(NamedTuple):
    """What a fetch reads from one partition; the data stays in the file until `range` is read."""

    range: FileRange
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    at_end: bool = False
    """The reader has everything it may read, until the partition wakes its waiters."""
    error_code: ErrorCode = ErrorCode.none
    diverging_epoch: tuple[int, int] | None = None
    preferred_replica: int = NO_REPLICA
    """The broker that the consumer should fetch from instead (KIP-392)."""
    aborted: Sequence[AbortedTransaction] | None = None
    """For read_committed: the aborted transactions that overlap the range."""

    @property
    def size_bytes(self) -> int:
        return self.range.size_bytes


def refused_read(code: ErrorCode) -> Read:
    """The answer for a partition that cannot be read."""
    return Read(EMPTY, NO_OFFSET, NO_OFFSET, NO_OFFSET, error_code=code)


def rack_aware_replica(
    leader: Leader, rack: str, racks: Mapping[int, str | None], offset: int
) -> int:
    """The in-sync replica in the consumer's rack that holds `offset` and has the most records;
    NO_REPLICA if that is the leader, or if none qualifies (Kafka's RackAwareReplicaSelector).
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


class PartitionReader:
    """Reads without side effects. `Partition` handles what a replica's fetch means."""

    __slots__ = ("_log", "_role")

    def __init__(self, log: Log, role: PartitionRole) -> None:
        self._log = log
        self._role = role

    def read(
        self,
        offset: int,
        *,
        max_bytes: int,
        min_one_batch: bool,
        leader_epoch: int = NO_EPOCH,
        last_fetched_epoch: int = NO_EPOCH,
        committed_only: bool = False,
        to_log_end: bool = False,
        leader_only: bool = True,
        wait: bool = True,
    ) -> Read:
        """Where the batches from `offset` on lie, at most `max_bytes` of them.

        Reads up to the high watermark; with `committed_only` up to the last stable offset
        (read_committed), with `to_log_end` up to the log's end (replicas). Unless `leader_only`, a
        follower answers too (KIP-392). Raises ApiError: OFFSET_OUT_OF_RANGE, FENCED_LEADER_EPOCH,
        UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR; NotCachedError if a
        look-up must `wait` for the disk but may not: see `find_works`.
        """
        role, log = self._role, self._log
        if leader_epoch != NO_EPOCH and leader_epoch != role.leader_epoch:
            role.check_leader_epoch(leader_epoch)
        if role.leader is None and (leader_only or role.kind is Role.NONE):
            raise ApiError(ErrorCode.not_leader_or_follower)
        high_watermark = role.high_watermark
        if committed_only:
            stable = log.last_stable_offset(high_watermark)
        else:
            stable = self.stable_if_known()
        if last_fetched_epoch != NO_EPOCH:
            diverging = self._divergence(offset, last_fetched_epoch)
            if diverging is not None:
                return Read(
                    EMPTY,
                    high_watermark,
                    stable,
                    log.start_offset,
                    diverging_epoch=diverging,
                )
        if to_log_end:
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
        at_end = offset >= up_to_offset
        if not committed_only:
            return Read(found, high_watermark, stable, log.start_offset, at_end)
        aborted = aborted_transactions(log, found, offset, up_to_offset, wait=wait)
        return Read(found, high_watermark, stable, log.start_offset, at_end, aborted=aborted)

    def stable_if_known(self) -> int:
        """The last stable offset for those who may read past it. NO_OFFSET while the producers are
        read after a truncation.
        """
        if self._log.loading is not None:
            return NO_OFFSET
        return self._log.last_stable_offset(self._role.high_watermark)

    def find_works(self, offset: int, *, committed_only: bool) -> list[Callable[[], None]]:
        """What reads the indexes for `read`, in a worker thread. Raises ApiError
        KAFKA_STORAGE_ERROR.
        """
        works = [self._log.find_work(offset)]
        if committed_only:
            works.append(find_work(self._log, offset))
        return works

    def _divergence(self, offset: int, last_fetched_epoch: int) -> tuple[int, int] | None:
        """Where the log of a reader with uncommon records diverges from this one (KIP-595).

        Raises ApiError OFFSET_OUT_OF_RANGE if its epoch is unknown here.
        """
        epoch, end_offset = self.end_of_epoch(last_fetched_epoch)
        if epoch == NO_EPOCH or end_offset < 0:
            raise ApiError(ErrorCode.offset_out_of_range)
        if epoch < last_fetched_epoch or end_offset < offset:
            return epoch, end_offset
        return None

    def end_for(self, committed_only: bool) -> int:
        """The offset after the last one that a consumer may read. Raises ApiError as
        `Log.producers`.
        """
        high_watermark = self._role.high_watermark
        return self._log.last_stable_offset(high_watermark) if committed_only else high_watermark

    def check_latest_known(self) -> None:
        """Raise ApiError OFFSET_NOT_AVAILABLE while a new leader does not know what its predecessor
        had committed: its offsets could go back (KIP-207). Also raises NOT_LEADER_OR_FOLLOWER.

        Only the high watermark decides. The last stable offset may stay below the epoch's start
        for as long as a transaction is open (Kafka's Partition.fetchOffsetForTimestamp).
        """
        role = self._role
        if not role.is_alone and role.leading().epoch_start > role.high_watermark:
            raise ApiError(ErrorCode.offset_not_available)

    def epoch_of(self, offset: int) -> int:
        """The leader epoch in which the record at `offset` was written; -1 if unknown."""
        return self._log.epochs.epoch_of(offset)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to `epoch`, and its end offset; (-1, -1) if unknown."""
        if epoch == self._role.leader_epoch:
            return epoch, self._log.end_offset
        return self._log.epochs.end_of(epoch, self._log.end_offset)

    def searches(self, timestamp_ms: int | None) -> Iterator[Search]:
        """The searches for the first record with a timestamp of at least `timestamp_ms`; None: for
        the record with the largest timestamp (KIP-734). See `log.lookup`.
        """
        if timestamp_ms is None:
            return max_timestamp_searches(self._log)
        return timestamp_searches(self._log, timestamp_ms)
