"""InitProducerId: who gets which epoch, and who is fenced (the table in `initialize.py`)."""

from __future__ import annotations

import pytest
from tests.transactions.values import EPOCH, ID, TIMEOUT_MS, new_step, producer, value_in, written

from ottla.protocol.errors import ErrorCode
from ottla.shards.step import ProducerEpoch
from ottla.transactions.initialize import begin, initialize
from ottla.transactions.requests import NO_PRODUCER, InitRequest
from ottla.transactions.state import (
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TransactionState,
)
from ottla.transactions.step import ProducerIdNeeded
from ottla.transactions.stored import MAX_EPOCH, NO_EPOCH, NO_TIMESTAMP

SPARE = 2000
LAST = MAX_EPOCH - 1


def request(expected: ProducerEpoch | None = None) -> InitRequest:
    return InitRequest(ID, TIMEOUT_MS * 2, expected, 2)


def test_the_first_producer_gets_a_new_id_even_if_it_names_one() -> None:
    for expected in (None, producer()):
        step = new_step()
        with pytest.raises(ProducerIdNeeded):
            begin(request(expected), None, step)
        assert begin(request(expected), SPARE, step) == (ErrorCode.none, producer(0, SPARE))
        assert written(step).state is EMPTY


@pytest.mark.parametrize(
    ("expected", "epoch", "last_epoch"),
    [
        (None, EPOCH + 1, NO_EPOCH),
        (producer(EPOCH), EPOCH + 1, EPOCH),
        (producer(EPOCH - 1), EPOCH, EPOCH - 1),
    ],
)
def test_the_epoch_by_what_the_producer_names(
    expected: ProducerEpoch | None, epoch: int, last_epoch: int
) -> None:
    step = new_step()
    value = value_in(COMPLETE_COMMIT, last_epoch=EPOCH - 1)
    result = initialize(value, request(expected), SPARE, step)
    assert result == (ErrorCode.none, producer(epoch))
    moved = written(step)
    assert (moved.state, moved.producer, moved.last_epoch) == (EMPTY, result.producer, last_epoch)
    assert (moved.timeout_ms, moved.start_ms) == (TIMEOUT_MS * 2, NO_TIMESTAMP)


@pytest.mark.parametrize(
    "expected",
    [
        producer(EPOCH - 2),
        producer(EPOCH + 1),
        producer(EPOCH, SPARE),
        # The producer id before this one counts with its last epoch only.
        producer(EPOCH, 999),
    ],
)
def test_another_producer_is_fenced(expected: ProducerEpoch) -> None:
    step = new_step()
    value = value_in(EMPTY, last_epoch=EPOCH - 1, previous_producer_id=999)
    result = initialize(value, request(expected), SPARE, step)
    assert result == (ErrorCode.producer_fenced, NO_PRODUCER)
    assert step.records == []


def test_the_answer_that_named_the_new_producer_id_was_lost() -> None:
    """The producer repeats its request, with the producer id that was used up."""
    value = value_in(EMPTY, producer_id=SPARE, epoch=0, last_epoch=LAST)
    result = initialize(value, request(producer(LAST)), None, new_step())
    assert result == (ErrorCode.none, producer(0, SPARE))


@pytest.mark.parametrize(("expected", "last_epoch"), [(None, NO_EPOCH), (producer(LAST), LAST)])
def test_after_the_last_epoch_a_new_producer_id_begins(
    expected: ProducerEpoch | None, last_epoch: int
) -> None:
    value, step = value_in(EMPTY, epoch=LAST), new_step()
    with pytest.raises(ProducerIdNeeded):
        initialize(value, request(expected), None, step)
    assert step.records == []
    result = initialize(value, request(expected), SPARE, step)
    assert result == (ErrorCode.none, producer(0, SPARE))
    moved = written(step)
    assert (moved.last_epoch, moved.previous_producer_id) == (last_epoch, 1000)


def test_an_open_transaction_is_aborted_first() -> None:
    step = new_step()
    result = initialize(value_in(ONGOING), request(), None, step)
    assert result == (ErrorCode.concurrent_transactions, NO_PRODUCER)
    assert (written(step).state, len(step.committed)) == (PREPARE_ABORT, 1)


@pytest.mark.parametrize("state", [PREPARE_COMMIT, PREPARE_ABORT])
def test_a_decided_transaction_is_waited_for(state: TransactionState) -> None:
    step = new_step()
    for expected in (None, producer(), producer(1, 1)):
        result = initialize(value_in(state), request(expected), SPARE, step)
        assert result == (ErrorCode.concurrent_transactions, NO_PRODUCER)
    assert step.records == []
