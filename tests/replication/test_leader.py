from uuid import UUID

import pytest

from ottla.controller.image import PartitionState
from ottla.protocol.errors import ErrorCode
from ottla.replication.leader import (
    REFUSED_PAUSE_MS,
    FetchingReplica,
    InSyncChange,
    Leader,
    leaves_open,
)

ID = UUID(int=7)
LAG_MS = 100
EPOCHS = {1: 11, 2: 12, 3: 13}


def state(isr: tuple[int, ...] = (1, 2, 3), epoch: int = 0, at: int = 0) -> PartitionState:
    return PartitionState(1, epoch, (1, 2, 3), isr, at)


class Bench:
    """A leader and the end of its log; each event is one line."""

    def __init__(self, isr: tuple[int, ...] = (1, 2, 3), end: int = 0, high: int = 0) -> None:
        self.end = end
        self.live = dict(EPOCHS)
        self.leader = Leader(
            ID,
            0,
            state(isr),
            end_offset=end,
            high_watermark=high,
            now_ms=0,
            lag_max_ms=LAG_MS,
            live_epoch=self.live.get,
        )

    def append(self, end: int, now_ms: int = 0) -> int:
        self.end = end
        self.leader.advance(end, now_ms, 1)
        return self.leader.high_watermark

    def fetch(self, broker: int, offset: int, now_ms: int = 0, epoch: int | None = None) -> int:
        follower = FetchingReplica(broker, EPOCHS[broker] if epoch is None else epoch)
        self.leader.fetched(follower, offset, 0, end_offset=self.end, now_ms=now_ms)
        return self.append(self.end, now_ms)

    def change(self, now_ms: int) -> InSyncChange | None:
        return self.leader.in_sync_change(self.end, now_ms)


def test_the_high_watermark_is_the_lowest_end_in_the_isr() -> None:
    bench = Bench()
    transcript = [
        bench.append(10),
        bench.fetch(2, 10),
        bench.fetch(3, 4),
        bench.fetch(3, 10),
        bench.fetch(2, 5),  # it was truncated: the high watermark does not go back
    ]
    assert transcript == [0, 0, 4, 10, 10]


def test_a_sole_replica_commits_at_once_without_proposals() -> None:
    alone = PartitionState(1, 0, (1,), (1,), 0)
    leader = Leader(
        ID, 0, alone, end_offset=0, high_watermark=0, now_ms=0, lag_max_ms=LAG_MS,
        live_epoch=EPOCHS.get,
    )  # fmt: skip
    assert leader.is_alone
    assert leader.advance(5, 0, 2)
    assert (leader.high_watermark, leader.in_sync_change(5, 10**6)) == (5, None)


def test_a_lagging_follower_is_removed_once_the_controller_answers() -> None:
    bench = Bench()
    bench.append(10)
    bench.fetch(2, 10, 50)
    assert bench.change(100) is None
    proposal = bench.change(101)
    assert proposal == InSyncChange(ID, 0, 0, 0, ((1, 11), (2, 12)))
    assert bench.change(200) is None
    assert bench.append(10, 200) == 0
    assert bench.leader.answered(ErrorCode.none, state((1, 2), at=1))
    assert bench.append(10, 200) == 10


def test_a_follower_as_fast_as_the_leader_is_in_sync() -> None:
    bench = Bench()
    for step in range(1, 20):
        bench.append(step * 10, step * 50)
        for broker in (2, 3):
            bench.fetch(broker, step * 10 - 10, step * 50)
    assert bench.change(19 * 50) is None


def test_a_caught_up_follower_counts_from_the_proposal_on() -> None:
    bench = Bench((1, 2), end=10)
    bench.fetch(2, 10)
    assert bench.leader.high_watermark == 10
    bench.fetch(3, 9)
    assert bench.change(0) is None
    bench.fetch(3, 10)
    proposal = bench.change(0)
    assert proposal is not None
    assert proposal.isr == ((1, 11), (2, 12), (3, 13))
    bench.append(20, 500)
    assert bench.fetch(2, 20, 500) == 10
    assert bench.fetch(3, 20, 500) == 20


def test_a_follower_that_stopped_fetching_does_not_join() -> None:
    bench = Bench((1, 2), end=10)
    bench.fetch(2, 10)
    bench.fetch(3, 10)
    assert bench.change(LAG_MS + 1) is None
    bench.fetch(3, 10, LAG_MS + 1)
    proposal = bench.change(LAG_MS + 1)
    assert proposal is not None
    assert proposal.isr == ((1, 11), (2, 12), (3, 13))


def test_no_follower_joins_before_the_start_of_the_epoch() -> None:
    bench = Bench((1,), end=10, high=4)
    bench.leader.followers[3].end_offset = 6
    assert not bench.leader.may_join(3)
    bench.leader.followers[3].end_offset = 10
    assert bench.leader.may_join(3)


@pytest.mark.parametrize("incarnation", ["dead", "another incarnation"])
def test_a_dead_or_restarted_follower_does_not_join(incarnation: str) -> None:
    bench = Bench((1, 2), end=10)
    bench.fetch(2, 10)
    bench.fetch(3, 10)
    if incarnation == "dead":
        del bench.live[3]
    else:
        bench.live[3] = 99
    assert bench.change(0) is None
    assert bench.append(11, 0) == 10
    assert bench.fetch(2, 11) == 11


def test_a_fetch_of_an_earlier_incarnation_or_unknown_broker_is_refused() -> None:
    bench = Bench()
    refused = [
        bench.leader.fetched(each, 0, 0, end_offset=0, now_ms=0)
        for each in (
            FetchingReplica(2, 12),
            FetchingReplica(2, 11),
            FetchingReplica(9, 1),
            FetchingReplica(2, 14),
        )
    ]
    assert refused == [True, False, False, True]


@pytest.mark.parametrize("code", [ErrorCode.ineligible_replica, ErrorCode.operation_not_attempted])
def test_a_definite_refusal_withdraws_the_proposal(code: ErrorCode) -> None:
    bench = Bench((1, 2), end=10)
    bench.fetch(3, 10)
    assert bench.change(0) is not None
    assert bench.leader.answered(code, None)
    assert set(bench.leader.maximal_isr) == {1, 2}


def test_a_refused_follower_is_proposed_again_after_a_pause_or_delta() -> None:
    bench = Bench((1, 2), end=10)
    bench.fetch(3, 10)
    assert bench.change(0) is not None
    bench.leader.answered(ErrorCode.ineligible_replica, None)
    bench.fetch(2, 10, REFUSED_PAUSE_MS - 1)
    bench.fetch(3, 10, REFUSED_PAUSE_MS - 1)
    assert bench.change(REFUSED_PAUSE_MS - 1) is None
    assert bench.change(REFUSED_PAUSE_MS) is not None
    bench.leader.answered(ErrorCode.ineligible_replica, None)
    bench.leader.update(state((1, 2), at=1), end_offset=10, now_ms=REFUSED_PAUSE_MS)
    again = bench.change(REFUSED_PAUSE_MS)
    assert again is not None
    assert again.isr == ((1, 11), (2, 12), (3, 13))


def test_a_refusal_does_not_delay_a_removal() -> None:
    bench = Bench((1, 2), end=10)
    bench.fetch(3, 10)
    assert bench.change(0) is not None
    bench.leader.answered(ErrorCode.ineligible_replica, None)
    without_2 = bench.change(LAG_MS + 1)
    assert without_2 is not None
    assert without_2.isr == ((1, 11),)


def test_after_an_unknown_outcome_the_proposal_is_repeated() -> None:
    bench = Bench((1, 2), end=10)
    bench.fetch(3, 10)
    proposal = bench.change(0)
    assert not bench.leader.answered(ErrorCode.request_timed_out, None)
    assert bench.change(0) is proposal
    assert bench.change(0) is None


@pytest.mark.parametrize(
    "code", [ErrorCode.none, ErrorCode.ineligible_replica, ErrorCode.fenced_leader_epoch]
)
def test_definite_refusals(code: ErrorCode) -> None:
    assert not leaves_open(code)


def test_indefinite_answers() -> None:
    assert leaves_open(ErrorCode.not_controller)
    assert leaves_open(ErrorCode.unknown_server_error)


def test_a_fenced_leader_waits_for_the_delta_with_the_maximal_isr() -> None:
    bench = Bench((1, 2), end=10)
    bench.fetch(3, 10)
    bench.change(0)
    for code in (ErrorCode.new_leader_elected, ErrorCode.invalid_update_version):
        assert not bench.leader.answered(code, None)
        assert bench.change(10**6) is None
    assert set(bench.leader.maximal_isr) == {1, 2, 3}
    assert bench.leader.update(state((1, 2), at=4), end_offset=10, now_ms=0)
    assert (bench.leader.in_flight, set(bench.leader.maximal_isr)) == (None, {1, 2})


def test_an_answer_older_than_the_state_is_ignored() -> None:
    bench = Bench((1, 2))
    assert bench.leader.update(state((1,), at=5), end_offset=0, now_ms=0)
    assert not bench.leader.answered(ErrorCode.none, state((1, 2, 3), at=5))
    assert not bench.leader.update(state((1, 2), at=4), end_offset=0, now_ms=0)
    assert bench.leader.state.isr == (1,)


def test_a_new_epoch_starts_at_the_logs_end() -> None:
    bench = Bench(end=3)
    bench.append(10)
    bench.leader.update(state(epoch=1, at=1), end_offset=10, now_ms=0)
    assert bench.leader.epoch_start == 10


def test_below_min_isr_the_high_watermark_does_not_move() -> None:
    bench = Bench((1,), end=0)
    assert not bench.leader.advance(10, 10**6, 2)
    assert bench.leader.advance(10, 10**6, 1)


def test_the_low_watermark_is_that_of_live_replicas() -> None:
    bench = Bench()
    bench.leader.fetched(FetchingReplica(2, 12), 9, 5, end_offset=9, now_ms=0)
    assert bench.leader.low_watermark(8) == -1
    bench.leader.fetched(FetchingReplica(3, 13), 9, 2, end_offset=9, now_ms=0)
    assert bench.leader.low_watermark(8) == 2
    del bench.live[3]
    assert bench.leader.low_watermark(8) == 5


def test_a_late_error_does_not_revert_a_later_proposal() -> None:
    bench = Bench((1, 2), end=10)
    bench.fetch(3, 10)
    first = bench.change(0)
    bench.leader.update(state((1, 2), at=1), end_offset=10, now_ms=0)
    second = bench.change(0)
    assert second is not None
    assert not bench.leader.answered(ErrorCode.ineligible_replica, None, first)
    assert bench.leader.in_flight is second
    assert set(bench.leader.maximal_isr) == {1, 2, 3}
