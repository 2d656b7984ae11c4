"""A follower against a leader of straw: what it asks, what it cuts, what it never appends."""

from dataclasses import dataclass, field

import pytest

from ottla.log.leader_epochs import EpochStart, LeaderEpochs
from ottla.protocol.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.replication.follower import (
    Answer,
    Append,
    AskOffsets,
    AwaitDelta,
    BackOff,
    Follower,
    GoOn,
    Ignore,
    Question,
    Truncate,
    TruncateFully,
    truncation,
)


class MemoryEpochs(LeaderEpochs):
    """Epochs as the broker has them, without their file."""

    def __init__(self, entries: list[tuple[int, int]]) -> None:
        # A write that is not replaced below fails: no such folder.
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


def decided(log: MemoryLog, answer: Answer, epoch: int = 5) -> object:
    follower = Follower(1, epoch)
    asked = follower.asks(log)
    assert asked is not None
    return follower.answered(asked, answer, log)


def follow_to_agreement(mine: MemoryLog, leader: MemoryLog) -> list[str]:
    """Asks and cuts until the leader no longer disagrees; the transcript."""
    told = []
    follower = Follower(1, 9)
    for _ in range(10):
        asked = follower.asks(mine)
        assert asked is not None
        told.append(f"fetch {asked.fetch_offset} after epoch {asked.last_fetched_epoch}")
        if asked.last_fetched_epoch < 0:
            return told
        epoch, end = leader.epochs.end_of(asked.last_fetched_epoch, leader.end_offset)
        if epoch == asked.last_fetched_epoch and end >= asked.fetch_offset:
            return told
        decision = follower.answered(asked, Answer(diverging_epoch=(epoch, end)), mine)
        assert isinstance(decision, Truncate)
        mine.cut(decision.offset)
        told.append(f"leader: epoch {epoch} ended at {end}; cut to {mine.end_offset}")
    raise AssertionError(told)


def test_it_asks_from_its_end_with_the_epoch_of_its_last_record() -> None:
    assert Follower(1, 7).asks(log_of(10, (3, 0), (5, 8))) == Question(10, 7, 5, 0)
    assert Follower(1, 7).asks(log_of(0)) == Question(0, 7, -1, 0)


def test_an_epoch_in_which_it_wrote_nothing_is_not_asked_with() -> None:
    assert Follower(1, 7).asks(log_of(10, (3, 0), (6, 10))) == Question(10, 7, 3, 0)


def test_a_tail_that_only_it_has_is_cut() -> None:
    # It led in epoch 3 and wrote up to 12; the next leader had only 10 of these.
    assert follow_to_agreement(log_of(12, (3, 0)), log_of(20, (3, 0), (4, 10))) == [
        "fetch 12 after epoch 3",
        "leader: epoch 3 ended at 10; cut to 10",
        "fetch 10 after epoch 3",
    ]


def test_an_epoch_that_the_leader_never_saw_is_cut() -> None:
    assert follow_to_agreement(log_of(12, (3, 0), (4, 10)), log_of(20, (3, 0), (5, 11))) == [
        "fetch 12 after epoch 4",
        "leader: epoch 3 ended at 11; cut to 10",
        "fetch 10 after epoch 3",
    ]


def test_epochs_that_took_turns_need_more_rounds() -> None:
    # KIP-279: after two unclean elections neither knows the other's epochs.
    mine = log_of(40, (1, 0), (4, 10), (6, 20))
    leader = log_of(50, (1, 0), (3, 5), (5, 30), (7, 45))
    assert follow_to_agreement(mine, leader) == [
        "fetch 40 after epoch 6",
        "leader: epoch 5 ended at 45; cut to 20",
        "fetch 20 after epoch 4",
        "leader: epoch 3 ended at 30; cut to 10",
        "fetch 10 after epoch 1",
        "leader: epoch 1 ended at 5; cut to 5",
        "fetch 5 after epoch 1",
    ]


def test_a_cut_goes_back_to_the_end_of_what_both_know() -> None:
    log = log_of(40, (1, 0), (4, 10))
    assert truncation(3, 30, log) == Truncate(10)
    assert truncation(1, 5, log) == Truncate(5)
    assert truncation(1, 50, log) == Truncate(10)


def test_without_epochs_of_its_own_the_leaders_word_counts() -> None:
    assert truncation(3, 30, log_of(40)) == Truncate(30)
    assert truncation(3, 50, log_of(40)) == Truncate(40)


def test_batches_are_appended_and_the_leaders_offsets_followed() -> None:
    records = batch(10, 3) + batch(13)
    decision = decided(log_of(10, (5, 0)), Answer(ErrorCode.none, 12, 4, None, records))
    assert isinstance(decision, Append)
    assert [each.base_offset for each in decision.headers] == [10, 13]
    assert bytes(decision.records) == records
    assert decision[2:] == (12, 4, None)


def test_an_answer_without_records_still_moves_the_high_watermark() -> None:
    decision = decided(log_of(10, (5, 0)), Answer(ErrorCode.none, 9, 0))
    assert isinstance(decision, Append)
    assert decision.headers == ()
    assert decision.leader_high_watermark == 9


def test_a_batch_cut_off_at_the_end_is_left_for_the_next_fetch() -> None:
    first = batch(10)
    answer = Answer(ErrorCode.none, 12, 0, None, first + batch(11)[:-1])
    decision = decided(log_of(10, (5, 0)), answer)
    assert isinstance(decision, Append)
    assert bytes(decision.records) == first


def test_a_batch_of_a_newer_epoch_is_not_taken() -> None:
    first = batch(10, epoch=5)
    answer = Answer(ErrorCode.none, 12, 0, None, first + batch(11, epoch=6))
    decision = decided(log_of(10, (5, 0)), answer)
    assert isinstance(decision, Append)
    assert bytes(decision.records) == first


def test_a_gap_that_compaction_left_is_kept() -> None:
    decision = decided(log_of(10, (5, 0)), Answer(ErrorCode.none, 30, 0, None, batch(20)))
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
def test_what_is_damaged_or_out_of_turn_is_never_appended(records: bytes, reason: str) -> None:
    decision = decided(log_of(10, (5, 0)), Answer(ErrorCode.none, 12, 0, None, records))
    assert isinstance(decision, BackOff)
    assert decision.is_fault
    assert reason in decision.reason


def test_an_empty_log_may_begin_within_a_batch() -> None:
    log = log_of(12)
    log.start_offset = 12
    decision = decided(log, Answer(ErrorCode.none, 15, 12, None, batch(10, 5)))
    assert isinstance(decision, Append)
    assert decision.restart_at == 10


def test_an_old_answer_is_ignored() -> None:
    log = log_of(10, (5, 0))
    follower = Follower(1, 5)
    asked = follower.asks(log)
    assert asked is not None
    answer = Answer(ErrorCode.none, 11, 0, None, batch(10))
    log.end_offset = 11
    assert follower.answered(asked, answer, log) == Ignore()
    log.end_offset = 10
    assert Follower(1, 6).answered(asked, answer, log) == Ignore()


def test_an_offset_that_the_leader_does_not_have() -> None:
    log = log_of(10, (5, 3))
    log.start_offset = 3
    assert decided(log, Answer(ErrorCode.offset_out_of_range)) == AskOffsets()
    follower = Follower(1, 5)
    assert follower.offsets_answered(0, 8, log) == Truncate(8)
    assert follower.offsets_answered(12, 20, log) == TruncateFully(12)
    assert follower.offsets_answered(10, 20, log) == GoOn()


def test_a_fenced_follower_waits_for_deltas() -> None:
    log = log_of(10, (5, 0))
    follower = Follower(1, 5)
    asked = follower.asks(log)
    assert asked is not None
    decision = follower.answered(asked, Answer(ErrorCode.fenced_leader_epoch), log)
    assert isinstance(decision, AwaitDelta)
    assert follower.asks(log) is None
    assert follower.answered(asked, Answer(ErrorCode.none, 10, 0), log) == Ignore()


@pytest.mark.parametrize(
    ("code", "is_fault"),
    [
        (ErrorCode.unknown_leader_epoch, False),
        (ErrorCode.not_leader_or_follower, False),
        (ErrorCode.unknown_topic_id, False),
        (ErrorCode.kafka_storage_error, True),
    ],
)
def test_other_refusals_are_waited_out(code: ErrorCode, is_fault: bool) -> None:
    decision = decided(log_of(10, (5, 0)), Answer(code))
    assert decision == BackOff(f"the leader answers {code.name}", is_fault)
