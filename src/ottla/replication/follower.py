"""A follower's decisions: what to fetch from its leader, and what to do with the result.

Pure. `FollowerState` holds only the leader and its epoch; the position is read from the log, so
the two cannot disagree. The driver sends `next_request`, passes the result to `on_result` and
carries out the decision, in that order; then it fetches again.

A fetch names the epoch of the follower's last record. If the follower has records that its leader
does not have, it learns so from the result (KIP-595). It then truncates its log to the end of the
largest epoch that both know; this takes several rounds if it does not know the leader's epoch
(KIP-101, KIP-279). The rules are those of Kafka's AbstractFetcherThread:
getOffsetTruncationState, fetchOffsetAndTruncate.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol, TypeAlias

from ottla.protocol.errors import ErrorCode
from ottla.records.errors import CorruptBatchError
from ottla.records.header import BatchHeader, Buffer, ensure_crc, iterate_headers

NO_EPOCH: Final = -1
NO_OFFSET: Final = -1

_AWAIT_DELTA: Final = frozenset({ErrorCode.fenced_leader_epoch})
"""The leader knows a newer epoch: another fetch in the same epoch would fail again."""
_OUT_OF_RANGE: Final = ErrorCode.offset_out_of_range


class Epochs(Protocol):
    """As `ottla.log.leader_epochs.LeaderEpochs`."""

    def epoch_of(self, offset: int) -> int:
        """The epoch in which the record at `offset` was written; -1 if unknown."""

    def end_of(self, epoch: int, end_offset: int) -> tuple[int, int]:
        """(largest known epoch up to `epoch`, its end offset); (-1, -1) if unknown."""


class ReplicaLog(Protocol):
    """The parts of the follower's own log that a decision needs; `ottla.log.log.Log` is one."""

    @property
    def start_offset(self) -> int: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def epochs(self) -> Epochs: ...


class FetchRequest(NamedTuple):
    """One partition in a fetch request (Fetch 12 and later)."""

    fetch_offset: int
    leader_epoch: int
    last_fetched_epoch: int
    log_start_offset: int


class FetchResult(NamedTuple):
    """One partition in the response."""

    error_code: ErrorCode = ErrorCode.none
    high_watermark: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    diverging_epoch: tuple[int, int] | None = None
    """(the leader's largest epoch up to ours, its end offset)."""
    records: Buffer = b""


class Append(NamedTuple):
    """Append `records`, which hold exactly the batches of `headers`; either may be empty. Then
    update the high watermark and the log start to the leader's.
    """

    records: Buffer
    headers: tuple[BatchHeader, ...]
    leader_high_watermark: int
    leader_log_start: int
    restart_at: int | None = None
    """First empty the log and start it at this offset."""


class Truncate(NamedTuple):
    """Truncate the log to `offset`, or to the start of the batch that holds it."""

    offset: int


class TruncateFully(NamedTuple):
    """Empty the log and start it at `offset`."""

    offset: int


class FetchLeaderOffsets(NamedTuple):
    """Fetch where the leader's log starts and ends (ListOffsets), then call `on_leader_offsets`."""


class BackOff(NamedTuple):
    """Fetch again after replica.fetch.backoff.ms."""

    reason: str
    is_fault: bool = False
    """Logged as an error: no transient state of a cluster explains it."""


class AwaitDelta(NamedTuple):
    """Do not fetch until the controller assigns a newer epoch."""

    reason: str


class Ignore(NamedTuple):
    """The result belongs to a request that is no longer the current one."""


class Continue(NamedTuple):
    """Nothing to do: fetch again."""


Decision: TypeAlias = (
    Append
    | Truncate
    | TruncateFully
    | FetchLeaderOffsets
    | BackOff
    | AwaitDelta
    | Ignore
    | Continue
)


class FollowerState:
    """One partition's follower, from one leader epoch to the next."""

    __slots__ = ("fenced", "leader", "leader_epoch")

    def __init__(self, leader: int, leader_epoch: int) -> None:
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.fenced = False
        """Wait for a metadata delta with a newer epoch."""

    def next_request(self, log: ReplicaLog) -> FetchRequest | None:
        """What to fetch now; None while waiting for a metadata delta."""
        if self.fenced:
            return None
        # The epoch of the last record, not the latest one: a deposed leader may have started an
        # epoch without writing in it.
        end_offset = log.end_offset
        last_epoch = log.epochs.epoch_of(end_offset - 1) if end_offset else NO_EPOCH
        return FetchRequest(end_offset, self.leader_epoch, last_epoch, log.start_offset)

    def on_result(self, request: FetchRequest, result: FetchResult, log: ReplicaLog) -> Decision:
        """What the leader's result means. `Append` also carries the high watermark."""
        now = self.next_request(log)
        if now is None or request[:3] != now[:3]:
            return Ignore()
        if result.error_code is not ErrorCode.none:
            return self._failed(result.error_code)
        if result.diverging_epoch is not None:
            return truncation(*result.diverging_epoch, log)
        return _appended(request, result, log)

    def _failed(self, code: ErrorCode) -> Decision:
        if code is _OUT_OF_RANGE:
            return FetchLeaderOffsets()
        if code in _AWAIT_DELTA:
            self.fenced = True
            return AwaitDelta(f"the leader knows a newer epoch than {self.leader_epoch}")
        # NOT_LEADER_OR_FOLLOWER, UNKNOWN_LEADER_EPOCH, UNKNOWN_TOPIC_ID and similar: one of the two
        # brokers does not have the delta yet.
        return BackOff(f"the leader answers {code.name}", is_fault=code not in _PASSING)

    def on_leader_offsets(self, leader_start: int, leader_end: int, log: ReplicaLog) -> Decision:
        """What to do if the leader does not have the fetch offset (fetchOffsetAndTruncate).

        `leader_start` and `leader_end` are where the leader's log starts and ends.
        """
        if leader_end < log.end_offset:
            return Truncate(leader_end)
        if leader_start > log.end_offset:
            return TruncateFully(leader_start)
        return Continue()


_PASSING: Final = frozenset(
    {
        ErrorCode.not_leader_or_follower,
        ErrorCode.unknown_leader_epoch,
        ErrorCode.unknown_topic_id,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.inconsistent_topic_id,
        ErrorCode.leader_not_available,
    }
)


def truncation(leader_epoch: int, leader_end: int, log: ReplicaLog) -> Truncate:
    """Where to truncate, if the leader's largest epoch up to our last one is `leader_epoch` and
    ended at `leader_end` (getOffsetTruncationState).
    """
    epoch, end = log.epochs.end_of(leader_epoch, log.end_offset)
    if epoch == NO_EPOCH:
        # Its epoch is older than all those known here: only its end offset helps.
        return Truncate(min(max(leader_end, 0), log.end_offset))
    if epoch != leader_epoch:
        # An unknown epoch: truncate to the end of the one before, and fetch again (KIP-279).
        return Truncate(min(end, log.end_offset))
    return Truncate(min(end, leader_end, log.end_offset))


def _appended(request: FetchRequest, result: FetchResult, log: ReplicaLog) -> Decision:
    watermark, start = result.high_watermark, result.log_start_offset
    try:
        headers = tuple(_whole_batches(result.records, request.leader_epoch))
        _check_order(headers, request.fetch_offset)
    except CorruptBatchError as error:
        return BackOff(f"the leader sent {error}", is_fault=True)
    restart_at = None
    if headers and headers[0].base_offset < request.fetch_offset:
        # The leader's log starts within a batch (DeleteRecords), but it sends whole batches. An
        # empty log can start at that batch (Partition.appendRecordsToFollowerOrFutureReplica).
        if log.start_offset != log.end_offset:
            return BackOff(
                f"the leader sent a batch at offset {headers[0].base_offset}"
                f" for {request.fetch_offset}",
                is_fault=True,
            )
        restart_at = headers[0].base_offset
    size_bytes = sum(each.size_bytes for each in headers)
    records = memoryview(result.records)[:size_bytes]
    return Append(records, headers, watermark, start, restart_at)


def _whole_batches(records: Buffer, leader_epoch: int) -> Iterable[BatchHeader]:
    """The whole batches before the first one with a newer epoch than the request's: this leader
    must not send that one (KAFKA-18723). Raises CorruptBatchError.
    """
    position = 0
    for header in iterate_headers(records):
        if header.leader_epoch > leader_epoch:
            return
        end = position + header.size_bytes
        ensure_crc(header, memoryview(records)[position:end])
        yield header
        position = end


def _check_order(headers: tuple[BatchHeader, ...], fetch_offset: int) -> None:
    """Raise CorruptBatchError unless offsets increase and each batch ends past the fetch offset."""
    expected = fetch_offset
    for number, header in enumerate(headers):
        if header.last_offset < expected or (number and header.base_offset < expected):
            raise CorruptBatchError(
                f"a batch of offsets {header.base_offset} to {header.last_offset}"
                f" where {expected} is next"
            )
        expected = header.next_offset
