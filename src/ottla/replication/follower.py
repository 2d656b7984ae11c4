"""One follower's decisions: what to ask its leader, and what to do with the answer.

Pure. `Follower` keeps only whom it follows; where it stands is read from its log, so that nothing
can disagree with it. The driver asks (`asks`), hands the answer in (`answered`) and carries out
what comes back, in that order; then it asks again.

A follower that has what its leader has not is told so in the answer to a fetch, for it names the
epoch of its last record (KIP-595). It cuts its log at the end of the largest epoch that both know,
in several rounds where the leader's epoch is unknown to it (KIP-101, KIP-279). The rules are those
of Kafka's AbstractFetcherThread: getOffsetTruncationState, fetchOffsetAndTruncate.
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
"""The leader knows a newer epoch than we do: asking again with the same is of no use."""
_OUT_OF_RANGE: Final = ErrorCode.offset_out_of_range


class Epochs(Protocol):
    """As `ottla.log.leader_epochs.LeaderEpochs`."""

    def epoch_of(self, offset: int) -> int:
        """The epoch in which the record at `offset` was written; -1 where none is known."""

    def end_of(self, epoch: int, end_offset: int) -> tuple[int, int]:
        """(largest known epoch at most `epoch`, where it ended); (-1, -1) where unknown."""


class ReplicaLog(Protocol):
    """What a decision must know of the follower's own log; `ottla.log.log.Log` is one."""

    @property
    def start_offset(self) -> int: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def epochs(self) -> Epochs: ...


class Question(NamedTuple):
    """One partition's part of a fetch (Fetch 12 and later)."""

    fetch_offset: int
    leader_epoch: int
    last_fetched_epoch: int
    log_start_offset: int


class Answer(NamedTuple):
    """One partition's part of the response."""

    error_code: ErrorCode = ErrorCode.none
    high_watermark: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    diverging_epoch: tuple[int, int] | None = None
    """(largest epoch of the leader's up to ours, where it ended)."""
    records: Buffer = b""


class Append(NamedTuple):
    """Append `records`, which hold exactly the batches of `headers`; either may be empty. Then
    follow the leader's high watermark and log start.
    """

    records: Buffer
    headers: tuple[BatchHeader, ...]
    leader_high_watermark: int
    leader_log_start: int
    restart_at: int | None = None
    """First empty the log and begin it here."""


class Truncate(NamedTuple):
    """Cut the log's end to `offset`, or to the start of the batch that holds it."""

    offset: int


class TruncateFully(NamedTuple):
    """Empty the log and begin it at `offset`."""

    offset: int


class AskOffsets(NamedTuple):
    """Ask the leader where its log starts and ends (ListOffsets), then `offsets_answered`."""


class BackOff(NamedTuple):
    """Ask again after replica.fetch.backoff.ms."""

    reason: str
    is_fault: bool = False
    """Worth a line in the broker log: no passing state of a cluster explains it."""


class AwaitDelta(NamedTuple):
    """Ask no more until the controller tells a newer epoch."""

    reason: str


class Ignore(NamedTuple):
    """The answer is to a question that no longer stands."""


class GoOn(NamedTuple):
    """Nothing to carry out: ask again."""


Decision: TypeAlias = (
    Append | Truncate | TruncateFully | AskOffsets | BackOff | AwaitDelta | Ignore | GoOn
)


class Follower:
    """One partition's follower, from one leader epoch to the next."""

    __slots__ = ("fenced", "leader", "leader_epoch")

    def __init__(self, leader: int, leader_epoch: int) -> None:
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.fenced = False
        """Wait for a metadata delta with a newer epoch."""

    def asks(self, log: ReplicaLog) -> Question | None:
        """What to ask now; None while it waits for a metadata delta."""
        if self.fenced:
            return None
        # The epoch of the last record, not the latest one: a deposed leader may have begun an
        # epoch in which it never wrote.
        end_offset = log.end_offset
        last_epoch = log.epochs.epoch_of(end_offset - 1) if end_offset else NO_EPOCH
        return Question(end_offset, self.leader_epoch, last_epoch, log.start_offset)

    def answered(self, asked: Question, answer: Answer, log: ReplicaLog) -> Decision:
        """What the leader's answer means. `high_watermark` of the driver's partition follows by
        `Append`.
        """
        now = self.asks(log)
        if now is None or asked[:3] != now[:3]:
            return Ignore()
        if answer.error_code is not ErrorCode.none:
            return self._failed(answer.error_code)
        if answer.diverging_epoch is not None:
            return truncation(*answer.diverging_epoch, log)
        return _appended(asked, answer, log)

    def _failed(self, code: ErrorCode) -> Decision:
        if code is _OUT_OF_RANGE:
            return AskOffsets()
        if code in _AWAIT_DELTA:
            self.fenced = True
            return AwaitDelta(f"the leader knows a newer epoch than {self.leader_epoch}")
        # NOT_LEADER_OR_FOLLOWER, UNKNOWN_LEADER_EPOCH, UNKNOWN_TOPIC_ID and their like: one of the
        # two does not have the delta yet.
        return BackOff(f"the leader answers {code.name}", is_fault=code not in _PASSING)

    def offsets_answered(self, leader_start: int, leader_end: int, log: ReplicaLog) -> Decision:
        """What to do with an offset that the leader does not have (fetchOffsetAndTruncate).

        `leader_start` and `leader_end` are where the leader's log starts and ends.
        """
        if leader_end < log.end_offset:
            return Truncate(leader_end)
        if leader_start > log.end_offset:
            return TruncateFully(leader_start)
        return GoOn()


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
    """Where to cut, when the leader's largest epoch up to our last one is `leader_epoch` and ended
    at `leader_end` (getOffsetTruncationState).
    """
    epoch, end = log.epochs.end_of(leader_epoch, log.end_offset)
    if epoch == NO_EPOCH:
        # Its epoch lies below all that we know of: what it says is all there is to go by.
        return Truncate(min(max(leader_end, 0), log.end_offset))
    if epoch != leader_epoch:
        # An epoch that we never saw: back to the end of the one before, and ask again (KIP-279).
        return Truncate(min(end, log.end_offset))
    return Truncate(min(end, leader_end, log.end_offset))


def _appended(asked: Question, answer: Answer, log: ReplicaLog) -> Decision:
    watermark, start = answer.high_watermark, answer.log_start_offset
    try:
        headers = tuple(_whole_batches(answer.records, asked.leader_epoch))
        _check_order(headers, asked.fetch_offset)
    except CorruptBatchError as error:
        return BackOff(f"the leader sent {error}", is_fault=True)
    restart_at = None
    if headers and headers[0].base_offset < asked.fetch_offset:
        # The leader's log starts within a batch (DeleteRecords), and it sends whole ones. An empty
        # log can begin at that batch instead (Partition.appendRecordsToFollowerOrFutureReplica).
        if log.start_offset != log.end_offset:
            return BackOff(
                f"the leader sent a batch at offset {headers[0].base_offset}"
                f" for {asked.fetch_offset}",
                is_fault=True,
            )
        restart_at = headers[0].base_offset
    size_bytes = sum(each.size_bytes for each in headers)
    records = memoryview(answer.records)[:size_bytes]
    return Append(records, headers, watermark, start, restart_at)


def _whole_batches(records: Buffer, leader_epoch: int) -> Iterable[BatchHeader]:
    """The whole batches up to the first of an epoch newer than the one we asked in: that is not
    this leader's to give (KAFKA-18723). Raises CorruptBatchError.
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
    """A batch must end at or behind the offset asked for, and none may go back."""
    expected = fetch_offset
    for number, header in enumerate(headers):
        if header.last_offset < expected or (number and header.base_offset < expected):
            raise CorruptBatchError(
                f"a batch of offsets {header.base_offset} to {header.last_offset}"
                f" where {expected} is next"
            )
        expected = header.next_offset
