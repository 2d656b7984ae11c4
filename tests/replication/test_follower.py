"""A follower against a fake leader: what it fetches, truncates, and never appends."""

from dataclasses import dataclass, field

import pytest

from ottla.log.leader_epochs import EpochStart, LeaderEpochs
from ottla.protocol.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.replication.follower import (
    Append,
    AwaitDelta,
    BackOff,
    Continue,
    FetchLeaderOffsets,
    FetchRequest,
    FetchResult,
    FollowerState,
    Ignore,
    Truncate,
    TruncateFully,
    truncation,
)


class MemoryEpochs(LeaderEpochs):
    """The broker's epochs, without their file."""

    def __init__(self, entries: list[tuple[int, int]]) -> None:
        # A write that is not replaced below fails: the folder does not exist.
        super().__init__("/nonexistent")
        self._entries = [EpochStart(*entry) for entry in entries]

    def store(self) -> None:
        self.is_pending = False


@dataclass
class MemoryLog:
    end_offset: int
    epochs: MemoryEpochs = field(default_factory=lambda: MemoryEpochs([]))
    start_offset: int = 0

    def cut(self, offset: int) -> None:
        self.end_offset = min(offset, self.end_offset)
        self.epochs.truncate_from_end(self.end_offset)


def log_of(end_offset: int, *epochs: tuple[int, int]) -> MemoryLog:
    return MemoryLog(end_offset, MemoryEpochs(list(epochs)))


def batch(base_offset: int, count: int = 1, epoch: int = 5) -> bytes:
    records = [Record(base_offset + each, 0, None, b"v") for each in range(count)]
    return build_batch(records, base_offset=base_offset, leader_epoch=epoch)


def decided(log: MemoryLog, answer: FetchResult, epoch: int = 5) -> object:
    follower = FollowerState(1, epoch)
    request = follower.next_request(log)
    assert request is not None
    return follower.on_result(request, answer, log)


def follow_to_agreement(mine: MemoryLog, leader: MemoryLog) -> list[str]:
    """Fetch and truncate until both logs agree; the transcript."""
    transcript = []
    follower = FollowerState(1, 9)
    for _ in range(10):
        request = follower.next_request(mine)
        assert request is not None
        transcript.append(f"fetch {request.fetch_offset} after epoch {request.last_fetched_epoch}")
        if request.last_fetched_epoch < 0:
            return transcript
        epoch, end = leader.epochs.end_of(request.last_fetched_epoch, leader.end_offset)
        if epoch == request.last_fetched_epoch and end >= request.fetch_offset:
            return transcript
        decision = follower.on_result(request, FetchResult(diverging_epoch=(epoch, end)), mine)
        assert isinstance(decision, Truncate)
        mine.cut(decision.offset)
        transcript.append(f"leader: epoch {epoch} ended at {end}; truncate to {mine.end_offset}")
    raise AssertionError(transcript)


def test_it_fetches_from_its_end_with_the_epoch_of_its_last_record() -> None:
    assert FollowerState(1, 7).next_request(log_of(10, (3, 0), (5, 8))) == FetchRequest(10, 7, 5, 0)
    assert FollowerState(1, 7).next_request(log_of(0)) == FetchRequest(0, 7, -1, 0)


def test_an_epoch_without_records_is_not_sent() -> None:
    assert FollowerState(1, 7).next_request(log_of(10, (3, 0), (6, 10))) == FetchRequest(
        10, 7, 3, 0
    )


def test_records_that_only_it_has_are_truncated() -> None:
    # It led in epoch 3 and wrote 12 records; the next leader had only 10 of them.
    assert follow_to_agreement(log_of(12, (3, 0)), log_of(20, (3, 0), (4, 10))) == [
        "fetch 12 after epoch 3",
        "leader: epoch 3 ended at 10; truncate to 10",
        "fetch 10 after epoch 3",
    ]


def test_an_epoch_unknown_to_the_leader_is_truncated() -> None:
    assert follow_to_agreement(log_of(12, (3, 0), (4, 10)), log_of(20, (3, 0), (5, 11))) == [
        "fetch 12 after epoch 4",
        "leader: epoch 3 ended at 11; truncate to 10",
        "fetch 10 after epoch 3",
    ]


def test_alternating_epochs_need_more_rounds() -> None:
    # KIP-279: after two unclean elections neither knows the other's epochs.
    mine = log_of(40, (1, 0), (4, 10), (6, 20))
    leader = log_of(50, (1, 0), (3, 5), (5, 30), (7, 45))
    assert follow_to_agreement(mine, leader) == [
        "fetch 40 after epoch 6",
        "leader: epoch 5 ended at 45; truncate to 20",
        "fetch 20 after epoch 4",
        "leader: epoch 3 ended at 30; truncate to 10",
        "fetch 10 after epoch 1",
        "leader: epoch 1 ended at 5; truncate to 5",
        "fetch 5 after epoch 1",
    ]


def test_truncation_goes_back_to_the_end_of_the_common_records() -> None:
    log = log_of(40, (1, 0), (4, 10))
    assert truncation(3, 30, log) == Truncate(10)
    assert truncation(1, 5, log) == Truncate(5)
    assert truncation(1, 50, log) == Truncate(10)


def test_without_epochs_of_its_own_it_uses_the_leaders_end() -> None:
    assert truncation(3, 30, log_of(40)) == Truncate(30)
    assert truncation(3, 50, log_of(40)) == Truncate(40)


def test_batches_are_appended_with_the_leaders_offsets() -> None:
    records = batch(10, 3) + batch(13)
    decision = decided(log_of(10, (5, 0)), FetchResult(ErrorCode.none, 12, 4, None, records))
    assert isinstance(decision, Append)
    assert [each.base_offset for each in decision.headers] == [10, 13]
    assert bytes(decision.records) == records
    assert decision[2:] == (12, 4, None)


def test_a_result_without_records_moves_the_high_watermark() -> None:
    decision = decided(log_of(10, (5, 0)), FetchResult(ErrorCode.none, 9, 0))
    assert isinstance(decision, Append)
    assert decision.headers == ()
    assert decision.leader_high_watermark == 9


def test_a_partial_last_batch_is_left_for_the_next_fetch() -> None:
    first = batch(10)
    answer = FetchResult(ErrorCode.none, 12, 0, None, first + batch(11)[:-1])
    decision = decided(log_of(10, (5, 0)), answer)
    assert isinstance(decision, Append)
    assert bytes(decision.records) == first


def test_a_batch_of_a_newer_epoch_is_ignored() -> None:
    first = batch(10, epoch=5)
    answer = FetchResult(ErrorCode.none, 12, 0, None, first + batch(11, epoch=6))
    decision = decided(log_of(10, (5, 0)), answer)
    assert isinstance(decision, Append)
    assert bytes(decision.records) == first


def test_a_gap_that_compaction_left_is_kept() -> None:
    decision = decided(log_of(10, (5, 0)), FetchResult(ErrorCode.none, 30, 0, None, batch(20)))
    assert isinstance(decision, Append)
    assert decision.headers[0].base_offset == 20


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        (batch(10)[:-1] + b"?", "is corrupt"),
        (bytes(100), "cannot be 0 bytes long"),
        (batch(8), "8 to 8 where 10 is next"),
        (batch(10, 3) + batch(11), "11 to 11 where 13 is next"),
        (batch(9, 3), "at offset 9 for 10"),
    ],
    ids=["crc", "zeros", "before", "overlap", "astride"],
)
def test_damaged_or_misplaced_batches_are_never_appended(records: bytes, reason: str) -> None:
    decision = decided(log_of(10, (5, 0)), FetchResult(ErrorCode.none, 12, 0, None, records))
    assert isinstance(decision, BackOff)
    assert decision.is_fault
    assert reason in decision.reason


def test_an_empty_log_may_start_before_the_fetch_offset() -> None:
    log = log_of(12)
    log.start_offset = 12
    decision = decided(log, FetchResult(ErrorCode.none, 15, 12, None, batch(10, 5)))
    assert isinstance(decision, Append)
    assert decision.restart_at == 10


def test_an_old_result_is_ignored() -> None:
    log = log_of(10, (5, 0))
    follower = FollowerState(1, 5)
    request = follower.next_request(log)
    assert request is not None
    answer = FetchResult(ErrorCode.none, 11, 0, None, batch(10))
    log.end_offset = 11
    assert follower.on_result(request, answer, log) == Ignore()
    log.end_offset = 10
    assert FollowerState(1, 6).on_result(request, answer, log) == Ignore()


def test_a_fetch_offset_that_is_out_of_range() -> None:
    log = log_of(10, (5, 3))
    log.start_offset = 3
    assert decided(log, FetchResult(ErrorCode.offset_out_of_range)) == FetchLeaderOffsets()
    follower = FollowerState(1, 5)
    assert follower.on_leader_offsets(0, 8, log) == Truncate(8)
    assert follower.on_leader_offsets(12, 20, log) == TruncateFully(12)
    assert follower.on_leader_offsets(10, 20, log) == Continue()


def test_a_fenced_follower_waits_for_deltas() -> None:
    log = log_of(10, (5, 0))
    follower = FollowerState(1, 5)
    request = follower.next_request(log)
    assert request is not None
    decision = follower.on_result(request, FetchResult(ErrorCode.fenced_leader_epoch), log)
    assert isinstance(decision, AwaitDelta)
    assert follower.next_request(log) is None
    assert follower.on_result(request, FetchResult(ErrorCode.none, 10, 0), log) == Ignore()


@pytest.mark.parametrize(
    ("code", "is_fault"),
    [
        (ErrorCode.unknown_leader_epoch, False),
        (ErrorCode.not_leader_or_follower, False),
        (ErrorCode.unknown_topic_id, False),
        (ErrorCode.kafka_storage_error, True),
    ],
)
def test_it_backs_off_after_other_errors(code: ErrorCode, is_fault: bool) -> None:
    decision = decided(log_of(10, (5, 0)), FetchResult(code))
    assert decision == BackOff(f"the leader answers {code.name}", is_fault)
