"""EndTxn, state by state: the table at the top of `end.py`, and the producer afterwards."""

from __future__ import annotations

import pytest
from tests.transactions.values import (
    BEGAN_MS,
    EPOCH,
    ID,
    NOW_MS,
    ONE,
    new_step,
    producer,
    value_in,
    written,
)

from ottla.protocol.errors import ErrorCode
from ottla.transactions.end import end
from ottla.transactions.requests import NO_PRODUCER, EndRequest
from ottla.transactions.state import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TransactionState,
)
from ottla.transactions.step import MarkersDue, ProducerIdNeeded
from ottla.transactions.stored import MAX_EPOCH

SPARE = 2000
BUMP = "bump"
REPEATED, EQUAL = EPOCH - 1, EPOCH


def request(
    is_commit: bool, version: int, epoch: int = EPOCH, producer_id: int = 1000
) -> EndRequest:
    return EndRequest(ID, producer(epoch, producer_id), is_commit, version)


@pytest.mark.parametrize(
    ("state", "is_commit", "epoch", "outcome"),
    [
        (EMPTY, False, REPEATED, "producer_fenced"),
        (EMPTY, False, EQUAL, BUMP),
        (EMPTY, True, REPEATED, "producer_fenced"),
        (EMPTY, True, EQUAL, "invalid_txn_state"),
        (COMPLETE_ABORT, False, REPEATED, "none"),
        (COMPLETE_ABORT, False, EQUAL, BUMP),
        (COMPLETE_ABORT, True, REPEATED, "invalid_txn_state"),
        (COMPLETE_ABORT, True, EQUAL, "invalid_txn_state"),
        (COMPLETE_COMMIT, False, REPEATED, "invalid_txn_state"),
        (COMPLETE_COMMIT, False, EQUAL, BUMP),
        (COMPLETE_COMMIT, True, REPEATED, "none"),
        (COMPLETE_COMMIT, True, EQUAL, "invalid_txn_state"),
        (ONGOING, False, EQUAL, BUMP),
        (ONGOING, True, EQUAL, BUMP),
        (ONGOING, True, REPEATED, "producer_fenced"),
        (COMPLETE_COMMIT, True, EPOCH + 1, "producer_fenced"),
        (PREPARE_COMMIT, True, REPEATED, "concurrent_transactions"),
        (PREPARE_ABORT, False, EPOCH + 9, "concurrent_transactions"),
    ],
)
def test_version_5(state: TransactionState, is_commit: bool, epoch: int, outcome: str) -> None:
    step = new_step()
    result = end(value_in(state), request(is_commit, 2, epoch), None, step)
    if outcome != BUMP:
        assert result.error is ErrorCode[outcome]
        assert result.producer == (producer() if outcome == "none" else NO_PRODUCER)
        assert (step.records, step.committed) == ([], [])
        return
    assert result == (ErrorCode.none, producer(EPOCH + 1))
    ended = written(step)
    assert ended.state is (PREPARE_COMMIT if is_commit else PREPARE_ABORT)
    assert (ended.producer, ended.last_epoch) == (producer(EPOCH + 1), EPOCH)
    assert ended.start_ms == (BEGAN_MS if state is ONGOING else NOW_MS)
    partitions = frozenset({ONE}) if state is ONGOING else frozenset()
    assert step.committed == [MarkersDue(ID, producer(EPOCH + 1), is_commit, partitions, 2)]


@pytest.mark.parametrize(
    ("state", "is_commit", "error"),
    [
        (EMPTY, False, "invalid_txn_state"),
        (EMPTY, True, "invalid_txn_state"),
        (COMPLETE_ABORT, False, "none"),
        (COMPLETE_ABORT, True, "invalid_txn_state"),
        (COMPLETE_COMMIT, False, "invalid_txn_state"),
        (COMPLETE_COMMIT, True, "none"),
        (PREPARE_ABORT, False, "concurrent_transactions"),
        (PREPARE_COMMIT, True, "concurrent_transactions"),
    ],
)
def test_version_4_without_an_open_transaction(
    state: TransactionState, is_commit: bool, error: str
) -> None:
    step = new_step()
    assert end(value_in(state), request(is_commit, 0), None, step) == (
        ErrorCode[error],
        NO_PRODUCER,
    )
    assert step.records == []


@pytest.mark.parametrize("is_commit", [False, True])
def test_version_4_keeps_the_epoch(is_commit: bool) -> None:
    step = new_step()
    result = end(value_in(ONGOING), request(is_commit, 0), None, step)
    assert result == (ErrorCode.none, NO_PRODUCER)
    ended = written(step)
    assert (ended.producer, ended.client_version) == (producer(), 0)
    assert step.committed == [MarkersDue(ID, producer(), is_commit, frozenset({ONE}), 0)]


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("state", [EMPTY, ONGOING, COMPLETE_COMMIT])
def test_other_producers_are_refused(state: TransactionState, version: int) -> None:
    step, value = new_step(), value_in(state)
    unknown = ErrorCode.invalid_producer_id_mapping
    assert end(None, request(True, version), None, step).error is unknown
    assert end(value, request(True, version, producer_id=1), None, step).error is unknown
    old = request(True, version, EPOCH - 2)
    assert end(value, old, None, step).error is ErrorCode.producer_fenced
    assert step.records == []


def test_the_last_epoch_hands_over_to_another_producer_id() -> None:
    last, step = MAX_EPOCH - 1, new_step()
    value, commit = value_in(ONGOING, epoch=last), request(True, 2, last)
    with pytest.raises(ProducerIdNeeded):
        end(value, commit, None, step)
    assert step.records == []
    assert end(value, commit, SPARE, step) == (ErrorCode.none, producer(0, SPARE))
    ended = written(step)
    assert (ended.producer, ended.next_producer_id) == (producer(MAX_EPOCH), SPARE)


@pytest.mark.parametrize(
    ("is_commit", "error"), [(True, ErrorCode.none), (False, ErrorCode.invalid_txn_state)]
)
def test_the_answer_that_named_the_new_producer_id_was_lost(
    is_commit: bool, error: ErrorCode
) -> None:
    value = value_in(
        COMPLETE_COMMIT, producer_id=SPARE, epoch=0, previous_producer_id=1000, client_version=2
    )
    result = end(value, request(is_commit, 2, MAX_EPOCH - 1), None, new_step())
    assert result == (error, producer(0, SPARE) if is_commit else NO_PRODUCER)
    # An epoch before the last one is another transaction's.
    result = end(value, request(is_commit, 2, MAX_EPOCH - 2), None, new_step())
    assert result.error is ErrorCode.invalid_producer_id_mapping


def test_the_epoch_below_is_fenced_after_a_client_of_version_1() -> None:
    """There the last bump was that of another producer, not that of a transaction's end."""
    value = value_in(COMPLETE_COMMIT, client_version=0)
    result = end(value, request(True, 2, REPEATED), None, new_step())
    assert result.error is ErrorCode.producer_fenced
