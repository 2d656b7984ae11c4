import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.turns import calls_of

from ottla.log import producer_state
from ottla.log.producer_snapshot import decode_snapshot, encode_snapshot
from ottla.log.producer_state import Producer, ProducerState
from ottla.log.verification import NOT_REQUIRED, Guard
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.control import ControlType, EndTransactionMarker
from ottla.records.header import CONTROL_BIT, TRANSACTIONAL_BIT, BatchHeader

LAST = 2**31 - 1


def batch(
    sequence: int,
    count: int = 1,
    *,
    offset: int = 0,
    epoch: int = 0,
    at_ms: int = 0,
    attributes: int = 0,
    producer_id: int = 7,
) -> BatchHeader:
    return BatchHeader(
        offset, 100, 0, 2, 0, attributes, count - 1, at_ms, at_ms, producer_id, epoch, sequence,
        count,
    )  # fmt: skip


def _code(state: ProducerState, header: BatchHeader) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        state.check(header, NOT_REQUIRED)
    return caught.value.code


def _refused(state: ProducerState, header: BatchHeader, guard: Guard | None = None) -> ErrorCode:
    """As `_code`, for a batch that must be verified."""
    with pytest.raises(ApiError) as caught:
        state.check(header, guard)
    return caught.value.code


def _append(state: ProducerState, header: BatchHeader) -> None:
    assert state.check(header, NOT_REQUIRED) is None
    header.base_offset = state.end_offset
    state.append(header)


def test_a_batch_sent_again_is_found_among_the_last_five() -> None:
    state = ProducerState()
    for number in range(7):
        _append(state, batch(number * 10, 10))
    for number in (2, 3, 4, 5, 6):
        found = state.check(batch(number * 10, 10))
        assert found is not None
        assert (found.first_offset, found.last_offset) == (number * 10, number * 10 + 9)
    for number in (0, 1):
        assert _code(state, batch(number * 10, 10)) is ErrorCode.out_of_order_sequence_number


@pytest.mark.parametrize("sequence", [0, 4, 6, LAST])
def test_a_gap_or_a_part_sent_again_is_out_of_order(sequence: int) -> None:
    state = ProducerState()
    _append(state, batch(0, 5))
    assert _code(state, batch(sequence, 2)) is ErrorCode.out_of_order_sequence_number


def test_sequences_wrap() -> None:
    state = ProducerState()
    _append(state, batch(LAST - 2, 2))  # an unknown producer may begin anywhere
    _append(state, batch(LAST, 3))
    assert state.producers[7].last_sequence == 1
    found = state.check(batch(LAST, 3))
    assert found is not None
    assert found.first_sequence == LAST
    _append(state, batch(2, 1))
    fresh = ProducerState()
    _append(fresh, batch(LAST, 1))
    _append(fresh, batch(0, 1))


def test_epochs_only_grow_and_begin_at_sequence_0() -> None:
    state = ProducerState()
    _append(state, batch(0, 3, epoch=4))
    assert _code(state, batch(3, 1, epoch=3)) is ErrorCode.invalid_producer_epoch
    assert _code(state, batch(3, 1, epoch=5)) is ErrorCode.out_of_order_sequence_number
    _append(state, batch(0, 1, epoch=5))
    assert state.producers[7].producer_epoch == 5
    assert len(state.producers[7].batches) == 1


def test_the_check_changes_nothing() -> None:
    state = ProducerState()
    state.check(batch(0))
    assert not state.producers
    _append(state, batch(0))
    before = (state.end_offset, list(state.producers[7].batches))
    state.check(batch(1))
    assert (state.end_offset, list(state.producers[7].batches)) == before


def test_producers_expire_but_not_in_a_transaction() -> None:
    state = ProducerState()
    _append(state, batch(0, at_ms=1_000))
    open_one = batch(0, at_ms=1_000, attributes=0x10)
    open_one.producer_id = 8
    _append(state, open_one)
    assert state.remove_expired(1_999, 1_000) == 0
    assert state.remove_expired(2_000, 1_000) == 1
    assert list(state.producers) == [8]
    _append(state, batch(55))  # known no more, so any sequence begins


def test_beyond_the_limit_the_longest_silent_producers_expire_early() -> None:
    limit, candidates = producer_state.MAX_PRODUCERS, producer_state.CANDIDATES
    state = ProducerState()
    _append(state, batch(0, producer_id=1, attributes=TRANSACTIONAL_BIT))
    for number in range(2, limit + 1):
        _append(state, batch(0, producer_id=number))
    assert len(state.producers) == limit
    _append(state, batch(1, producer_id=2))
    _append(state, batch(0, producer_id=limit + 1))
    assert len(state.producers) == limit - candidates // 2 + 1
    expired = set(range(1, limit + 2)) - state.producers.keys()
    assert expired == set(range(3, 3 + candidates // 2)), "not the open one, not the one just heard"
    assert state.check(batch(1, producer_id=2)) is not None, "its batches are known"
    for number in range(limit + 2, 5 * limit):
        _append(state, batch(0, producer_id=number))
        assert len(state.producers) <= limit
    assert 1 in state.producers
    assert 2 not in state.producers
    assert state.producers[5 * limit - 1].last_offset == state.end_offset - 1


def test_producers_in_open_transactions_do_not_expire_early() -> None:
    limit = producer_state.MAX_PRODUCERS
    state = ProducerState()
    for number in range(limit + 3):
        _append(state, batch(0, producer_id=number, attributes=TRANSACTIONAL_BIT))
    assert len(state.producers) == limit + 3


def test_nothing_about_all_producers_holds_the_loop() -> None:
    """A new segment's snapshot and the expiry are made on the event loop."""
    state = ProducerState()
    for number in range(2 * producer_state.MAX_PRODUCERS):
        _append(state, batch(0, producer_id=number))
    content, snapshot_calls = calls_of(lambda: encode_snapshot(state.producers.values()))
    expired, expiry_calls = calls_of(lambda: state.remove_expired(LAST, 1))
    assert expired == len(decode_snapshot(content))
    assert max(snapshot_calls, expiry_calls) < 100_000, (snapshot_calls, expiry_calls)
    assert not state.producers


def test_a_transaction_holds_the_stable_offset_back_until_its_marker() -> None:
    state = ProducerState(end_offset=10)
    _append(state, batch(0, 2, attributes=0x10))
    _append(state, batch(2, 2, attributes=0x10))
    assert state.first_unstable_offset(10) == 10
    assert _code(state, batch(4, 1)) is ErrorCode.invalid_txn_state
    marker = batch(-1, 1, offset=14, attributes=0x30)
    done = state.append_marker(marker, EndTransactionMarker(ControlType.abort, 3, 77))
    assert done is not None
    assert (done.first_offset, done.last_offset, done.is_aborted) == (10, 14, True)
    assert state.first_unstable_offset(14) == 10, "the marker is not committed"
    assert state.first_unstable_offset(15) is None
    assert state.end_offset == 15
    assert state.producers[7].coordinator_epoch == 3


@given(st.lists(st.tuples(st.sampled_from("wmh"), st.integers(1, 4)), max_size=60))
def test_a_transaction_is_unstable_until_its_marker_is_committed(
    steps: list[tuple[str, int]],
) -> None:
    """Against a list of all transactions ever. `w`: producer n writes, `m`: its transaction ends,
    `h`: the high watermark advances by n. The state is asked, or only told, at random.
    """
    state = ProducerState()
    transactions: list[tuple[int, int, int | None]] = []  # producer, first offset, marker
    high_watermark = 0
    for step, number in steps:
        offset = state.end_offset
        mine = [t for t in transactions if t[0] == number and t[2] is None]
        if step == "w":
            if not mine:
                transactions.append((number, offset, None))
            state.append(batch(0, offset=offset, attributes=0x10, producer_id=number))
        elif step == "m":
            header = batch(-1, offset=offset, attributes=0x30, producer_id=number)
            marker = EndTransactionMarker(ControlType.commit, 0, 0)
            done = state.append_marker(header, marker)
            assert (done is not None) == bool(mine)
            for each in mine:
                transactions[transactions.index(each)] = (*each[:2], offset)
        else:
            high_watermark = min(high_watermark + number, offset)
            if number % 2:
                state.high_watermark_moved(high_watermark)
        unstable = [t[1] for t in transactions if t[2] is None or t[2] >= high_watermark]
        assert state.first_unstable_offset(high_watermark) == min(unstable, default=None)


def test_a_marker_of_a_transaction_without_records_ends_nothing() -> None:
    state = ProducerState()
    marker = EndTransactionMarker(ControlType.commit, 0, 5)
    assert state.append_marker(batch(-1, attributes=0x30), marker) is None
    _append(state, batch(0))


@given(st.lists(st.tuples(st.integers(1, 4), st.booleans()), max_size=40))
def test_a_producer_that_repeats_itself_is_stored_once(sends: list[tuple[int, bool]]) -> None:
    """At most five batches are under way, as producers promise: each may come twice, in order."""
    state = ProducerState()
    sequence, expected = 0, 0
    for count, again in sends:
        _append(state, batch(sequence, count))
        expected += count
        if again:
            found = state.check(batch(sequence, count))
            assert found is not None
            assert found.last_offset == expected - 1
        sequence += count
    assert state.end_offset == expected


def test_open_transactions_survive_loading() -> None:
    state = ProducerState(50, [Producer(7, 0, -1, 5, 30), Producer(9, 0, -1, 5, 20)])
    assert state.first_unstable_offset(50) == 20


def _marker(epoch: int = 0, *, offset: int = 0) -> BatchHeader:
    return batch(-1, offset=offset, epoch=epoch, attributes=0x30)


def _refusal(
    state: ProducerState, epoch: int, *, version: int = 0, coordinator_epoch: int = 3
) -> ErrorCode | None:
    """What `check_marker` says to an abort of producer 7."""
    try:
        state.check_marker(
            _marker(epoch), EndTransactionMarker(ControlType.abort, coordinator_epoch, 0), version
        )
    except ApiError as error:
        return error.code
    return None


def _state(epoch: int, *, is_open: bool) -> ProducerState:
    """Producer 7 has written a transaction in this epoch; its marker is of coordinator epoch 3."""
    state = ProducerState()
    state.append(batch(0, epoch=epoch, attributes=0x10))
    if not is_open:
        marker = EndTransactionMarker(ControlType.commit, 3, 0)
        state.append_marker(_marker(epoch, offset=1), marker)
    return state


FENCED = ErrorCode.invalid_producer_epoch


@pytest.mark.parametrize(
    ("version", "epoch", "is_open", "expected"),
    [
        (0, 4, True, FENCED),
        (0, 5, True, None),
        (0, 6, True, None),  # the coordinator has fenced the producer
        (0, 5, False, None),  # trap 4: sent again
        (1, 4, False, FENCED),
        (1, 5, False, None),
        (2, 4, True, FENCED),
        (2, 5, True, FENCED),  # a late marker of the transaction before
        (2, 6, True, None),
        (2, 4, False, FENCED),
        (2, 5, False, None),  # trap 4: sent again (KAFKA-19999)
        (2, 6, False, None),
    ],
)
def test_the_epochs_of_markers(
    version: int, epoch: int, is_open: bool, expected: ErrorCode | None
) -> None:
    assert _refusal(_state(5, is_open=is_open), epoch, version=version) is expected


def test_the_largest_epoch_is_no_dead_end() -> None:
    state = _state(2**15 - 1, is_open=True)
    assert _refusal(state, 2**15 - 1, version=2) is None
    assert _refusal(state, 2**15 - 2, version=2) is FENCED


def test_a_marker_of_an_unknown_producer_is_taken() -> None:
    assert _refusal(ProducerState(), 0, version=2) is None


def test_a_deposed_coordinator_is_fenced() -> None:
    state = _state(5, is_open=False)
    assert _refusal(state, 6, coordinator_epoch=2) is ErrorCode.transaction_coordinator_fenced
    assert _refusal(state, 6, coordinator_epoch=3) is None
    assert _refusal(state, 6, coordinator_epoch=4) is None


def test_a_transaction_needs_its_guard_until_its_first_append() -> None:
    state = ProducerState()
    first, second = (batch(n, attributes=0x10) for n in (0, 1))
    assert _refused(state, first) is ErrorCode.invalid_txn_state
    guard = state.begin_verification(7, 0, 0, version_2=False, now_ms=0)
    assert guard is not None
    assert state.check(first, guard) is None
    state.append(first)
    assert state.begin_verification(7, 0, 1, version_2=False, now_ms=0) is None
    assert state.check(second) is None
    state.append_marker(_marker(offset=1), EndTransactionMarker(ControlType.abort, 3, 0))
    assert _refused(state, second) is ErrorCode.invalid_txn_state
    assert _refused(state, second, guard) is ErrorCode.invalid_txn_state


def test_a_late_copy_of_an_ended_transaction_stops_no_later_batch() -> None:
    """It begins a verification that nothing ends; its sequence is not the lowest to come."""
    state = ProducerState()
    transactional = {"attributes": TRANSACTIONAL_BIT}
    _append(state, batch(0, 1, **transactional))
    _append(state, batch(1, 1, **transactional))
    marker = batch(-1, 1, offset=2, attributes=TRANSACTIONAL_BIT | CONTROL_BIT)
    state.append_marker(marker, EndTransactionMarker(ControlType.commit, 0, 0))
    assert state.begin_verification(7, 0, 1, version_2=False, now_ms=0) is not None
    guard = state.begin_verification(7, 0, 2, version_2=False, now_ms=0)
    assert state.check(batch(2, 1, **transactional), guard) is None


def test_a_duplicate_needs_no_guard() -> None:
    state = ProducerState()
    state.append(batch(0, attributes=0x10))
    state.append_marker(_marker(offset=1), EndTransactionMarker(ControlType.commit, 3, 0))
    assert state.check(batch(0, attributes=0x10)) is not None


def test_trap_10_an_old_epoch_is_told_before_the_missing_guard() -> None:
    """INVALID_PRODUCER_EPOCH lets the producer abort; INVALID_TXN_STATE would be fatal."""
    state = _state(5, is_open=False)
    assert _refused(state, batch(1, epoch=4, attributes=0x10)) is FENCED
    with pytest.raises(ApiError) as refused:
        state.begin_verification(7, 4, 1, version_2=True, now_ms=0)
    assert refused.value.code is FENCED


def test_a_transaction_of_a_new_epoch_is_verified_while_the_old_one_is_open() -> None:
    state = _state(5, is_open=True)
    guard = state.begin_verification(7, 6, 0, version_2=True, now_ms=0)
    assert guard is not None
    assert _refused(state, batch(0, epoch=6, attributes=0x10)) is ErrorCode.invalid_txn_state
    assert state.check(batch(0, epoch=6, attributes=0x10), guard) is None


def test_a_coordinators_batch_has_no_sequence() -> None:
    state = _state(5, is_open=True)
    state.check_own(batch(-1, epoch=5, attributes=0x10), None)
    with pytest.raises(ApiError) as refused:
        state.check_own(batch(-1, epoch=4, attributes=0x10), None)
    assert refused.value.code is FENCED
    with pytest.raises(ApiError) as refused:
        state.check_own(batch(-1, epoch=6, attributes=0x10), None)
    assert refused.value.code is ErrorCode.invalid_txn_state
    state.check_own(batch(-1, epoch=6, attributes=0x10), NOT_REQUIRED)


def test_trap_6_the_stable_offset_at_an_abort_is_the_oldest_open_transaction() -> None:
    state = ProducerState()
    for number, producer_id in enumerate((1, 2, 3)):
        state.append(batch(0, offset=number, attributes=0x10, producer_id=producer_id))
    stable = []
    for number, producer_id in enumerate((2, 1, 3), 3):
        header = batch(-1, offset=number, attributes=0x30, producer_id=producer_id)
        done = state.append_marker(header, EndTransactionMarker(ControlType.abort, 3, 0))
        assert done is not None
        stable.append(done.last_stable_offset)
    assert stable == [0, 2, 6]


def test_a_producer_with_one_batch_costs_little_memory() -> None:
    """Each client that was restarted leaves one, in each partition, for a day."""
    headers = [
        batch(number, offset=10**6 + number, at_ms=10**12 + number, producer_id=10**4 + number)
        for number in range(2_000)
    ]
    state = ProducerState()
    tracemalloc.start()
    try:
        for header in headers:
            state.append(header)
        size_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size_bytes / len(headers) < 500
